//! The methods of a link's part that another part answers. The traits of links have no default
//! methods, so each decorator names what it forwards and writes what it overrides beside it; a part
//! that has nothing to answer forwards to `()`.

/// In an `impl` of a trait of links, `forward!(self => self.rx; poll_lost, ended_cleanly)` has
/// `self.rx` answer these methods.
#[macro_export]
macro_rules! forward {
    ($this:ident => $to:expr; $($method:ident),+ $(,)?) => {
        $($crate::forward! { @$method $this $to })+
    };
    // FrameStream
    (@poll_next $($to:tt)+) => {
        $crate::forward! { @of [&mut] poll_next(cx: &mut std::task::Context<'_>) -> std::task::Poll<
            Option<Result<::jsonrpc::framing::Decoded, $crate::LinkError>>
        >; $($to)+ }
    };
    (@poll_lost $($to:tt)+) => {
        $crate::forward! { @of [&mut] poll_lost(cx: &mut std::task::Context<'_>)
            -> std::task::Poll<$crate::LinkError>; $($to)+ }
    };
    (@ended_cleanly $($to:tt)+) => { $crate::forward! { @of [&] ended_cleanly() -> bool; $($to)+ } };
    (@has_progressed $($to:tt)+) => { $crate::forward! { @of [&mut] has_progressed() -> bool; $($to)+ } };
    (@tells_loss $($to:tt)+) => { $crate::forward! { @of [&] tells_loss() -> bool; $($to)+ } };
    // FrameSink
    (@poll_ready $($to:tt)+) => { $crate::forward! { @poll poll_ready(); $($to)+ } };
    (@start_send $($to:tt)+) => {
        $crate::forward! { @of [&mut] start_send(frame: ::jsonrpc::Frame)
            -> Result<(), $crate::LinkError>; $($to)+ }
    };
    (@poll_flush $($to:tt)+) => { $crate::forward! { @poll poll_flush(); $($to)+ } };
    (@poll_close $($to:tt)+) => {
        $crate::forward! { @poll poll_close(why: $crate::CloseReason); $($to)+ }
    };
    // LinkGuard
    (@poll_exit $($to:tt)+) => {
        $crate::forward! { @of [&mut] poll_exit(cx: &mut std::task::Context<'_>)
            -> std::task::Poll<$crate::Exit>; $($to)+ }
    };
    (@signal $($to:tt)+) => {
        $crate::forward! { @of [&mut] signal(step: $crate::StopStep) -> (); $($to)+ }
    };
    (@capture_stderr $($to:tt)+) => {
        $crate::forward! { @of [&mut] capture_stderr(callback: $crate::StderrCallback) -> ();
            $($to)+ }
    };
    (@watch_presence $($to:tt)+) => {
        $crate::forward! { @of [&mut] watch_presence(callback: $crate::PresenceCallback) -> ();
            $($to)+ }
    };
    (@away $($to:tt)+) => {
        $crate::forward! { @of [&] away() -> Option<(tokio::time::Instant, usize)>; $($to)+ }
    };
    (@longest $($to:tt)+) => { $crate::forward! { @of [&] longest() -> Option<usize>; $($to)+ } };
    (@unacknowledged $($to:tt)+) => { $crate::forward! { @of [&] unacknowledged() -> usize; $($to)+ } };
    (@log_redaction $($to:tt)+) => {
        $crate::forward! { @of [&] log_redaction() -> fn(&str) -> String; $($to)+ }
    };
    (@restart $($to:tt)+) => {
        $crate::forward! { @of [&mut] restart() -> Option<$crate::Restart>; $($to)+ }
    };
    (@restarts $($to:tt)+) => { $crate::forward! { @of [&] restarts() -> $crate::Restarts; $($to)+ } };
    (@is_relay $($to:tt)+) => { $crate::forward! { @of [&] is_relay() -> bool; $($to)+ } };
    (@stderr_tail $($to:tt)+) => { $crate::forward! { @of [&] stderr_tail() -> String; $($to)+ } };
    (@poll $method:ident($($arg:ident: $type:ty)?); $($to:tt)+) => {
        $crate::forward! { @of [&mut] $method(cx: &mut std::task::Context<'_> $(, $arg: $type)?)
            -> std::task::Poll<Result<(), $crate::LinkError>>; $($to)+ }
    };
    (@of [$($by:tt)+] $method:ident($($arg:ident: $type:ty),*) -> $out:ty;
        $this:ident $to:expr) => {
        fn $method($($by)+ $this $(, $arg: $type)*) -> $out {
            $to.$method($($arg),*)
        }
    };
}
