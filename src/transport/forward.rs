//! The methods of a link's part that another part answers. The traits of links have no default
//! methods, so each decorator names what it forwards and writes what it overrides beside it; a part
//! that has nothing to answer forwards to `()`.

/// In an `impl` of a trait of links, `forward!(self => self.rx; poll_lost, ended_cleanly)` has
/// `self.rx` answer these methods.
macro_rules! forward {
    ($this:ident => $to:expr; $($method:ident),+ $(,)?) => {
        $(forward! { @$method $this $to })+
    };
    // FrameStream
    (@poll_next $($to:tt)+) => {
        forward! { @of [&mut] poll_next(cx: &mut std::task::Context<'_>) -> std::task::Poll<
            Option<Result<$crate::jsonrpc::framing::Decoded, $crate::transport::LinkError>>
        >; $($to)+ }
    };
    (@poll_lost $($to:tt)+) => {
        forward! { @of [&mut] poll_lost(cx: &mut std::task::Context<'_>)
            -> std::task::Poll<$crate::transport::LinkError>; $($to)+ }
    };
    (@ended_cleanly $($to:tt)+) => { forward! { @of [&] ended_cleanly() -> bool; $($to)+ } };
    (@has_progressed $($to:tt)+) => { forward! { @of [&mut] has_progressed() -> bool; $($to)+ } };
    (@tells_loss $($to:tt)+) => { forward! { @of [&] tells_loss() -> bool; $($to)+ } };
    // FrameSink
    (@poll_ready $($to:tt)+) => { forward! { @poll poll_ready(); $($to)+ } };
    (@start_send $($to:tt)+) => {
        forward! { @of [&mut] start_send(frame: $crate::jsonrpc::Frame)
            -> Result<(), $crate::transport::LinkError>; $($to)+ }
    };
    (@poll_flush $($to:tt)+) => { forward! { @poll poll_flush(); $($to)+ } };
    (@poll_close $($to:tt)+) => {
        forward! { @poll poll_close(why: $crate::transport::CloseReason); $($to)+ }
    };
    // LinkGuard
    (@poll_exit $($to:tt)+) => {
        forward! { @of [&mut] poll_exit(cx: &mut std::task::Context<'_>)
            -> std::task::Poll<$crate::transport::Exit>; $($to)+ }
    };
    (@signal $($to:tt)+) => {
        forward! { @of [&mut] signal(step: $crate::transport::StopStep) -> (); $($to)+ }
    };
    (@capture_stderr $($to:tt)+) => {
        forward! { @of [&mut] capture_stderr(callback: $crate::transport::StderrCallback) -> ();
            $($to)+ }
    };
    (@watch_presence $($to:tt)+) => {
        forward! { @of [&mut] watch_presence(callback: $crate::transport::PresenceCallback) -> ();
            $($to)+ }
    };
    (@away $($to:tt)+) => {
        forward! { @of [&] away() -> Option<(tokio::time::Instant, usize)>; $($to)+ }
    };
    (@longest $($to:tt)+) => { forward! { @of [&] longest() -> Option<usize>; $($to)+ } };
    (@unacknowledged $($to:tt)+) => { forward! { @of [&] unacknowledged() -> usize; $($to)+ } };
    (@log_redaction $($to:tt)+) => {
        forward! { @of [&] log_redaction() -> fn(&str) -> String; $($to)+ }
    };
    (@restart $($to:tt)+) => {
        forward! { @of [&mut] restart() -> Option<$crate::transport::Restart>; $($to)+ }
    };
    (@restarts $($to:tt)+) => { forward! { @of [&] restarts() -> bool; $($to)+ } };
    (@is_relay $($to:tt)+) => { forward! { @of [&] is_relay() -> bool; $($to)+ } };
    (@stderr_tail $($to:tt)+) => { forward! { @of [&] stderr_tail() -> String; $($to)+ } };
    (@poll $method:ident($($arg:ident: $type:ty)?); $($to:tt)+) => {
        forward! { @of [&mut] $method(cx: &mut std::task::Context<'_> $(, $arg: $type)?)
            -> std::task::Poll<Result<(), $crate::transport::LinkError>>; $($to)+ }
    };
    (@of [$($by:tt)+] $method:ident($($arg:ident: $type:ty),*) -> $out:ty;
        $this:ident $to:expr) => {
        fn $method($($by)+ $this $(, $arg: $type)*) -> $out {
            $to.$method($($arg),*)
        }
    };
}

pub(crate) use forward;
