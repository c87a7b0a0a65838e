//! Signals: the first asks for a graceful end, the second does not wait. With a configuration file,
//! SIGHUP has it read again.
//!
//! Without one SIGHUP ends the program like the others: it is what a terminal says that is closed,
//! and a relay that nobody sees any more should not go on.
//!
//! A signal that whoever started us has us ignore (`nohup`, `&` in a script) stays ignored.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use super::{cli, exit};
use crate::proxy::Stop;

/// The signals that end the program; those that we were told to ignore are missing.
struct Signals {
    terminate: Option<Signal>,
    interrupt: Option<Signal>,
    hangup: Option<Signal>,
    /// Who is told of SIGHUP instead.
    again: Option<Arc<Notify>>,
}

/// Listens for SIGTERM, SIGINT and SIGHUP from now on and passes them to `stop`.
///
/// # Errors
/// When the operating system does not let us listen.
pub(super) fn watch(stop: Stop) -> io::Result<()> {
    watch_with(stop, None)
}

/// The same, but for SIGHUP, which goes to `again` when that is given.
///
/// # Errors
/// As above.
pub(super) fn watch_with(stop: Stop, again: Option<Arc<Notify>>) -> io::Result<()> {
    let ignored = ignored();
    let unless_ignored = |kind: SignalKind| {
        let heeded = ignored & (1 << (kind.as_raw_value() - 1)) == 0;
        heeded.then(|| signal(kind)).transpose()
    };
    let mut signals = Signals {
        terminate: Some(signal(SignalKind::terminate())?),
        interrupt: unless_ignored(SignalKind::interrupt())?,
        hangup: unless_ignored(SignalKind::hangup())?,
        again,
    };
    tokio::spawn(async move {
        let name = signals.next().await;
        tracing::info!("{name}: ending; once more to end at once");
        stop.asked.cancel();
        let name = signals.next().await;
        tracing::warn!("{name} again: not waiting any longer");
        stop.forced.cancel();
    });
    Ok(())
}

/// Says that signals cannot be listened for, and gives the exit code.
pub(super) fn failed(error: &io::Error) -> ExitCode {
    cli::fail(exit::SYSTEM, &format!("cannot listen for signals: {error}"))
}

/// The signals that this process was started to ignore, bit n - 1 for signal n (proc(5), `SigIgn`);
/// none where that cannot be found out.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

impl Signals {
    async fn next(&mut self) -> &'static str {
        loop {
            return tokio::select! {
                () = one(&mut self.terminate) => "SIGTERM",
                () = one(&mut self.interrupt) => "SIGINT",
                () = one(&mut self.hangup) => match &self.again {
                    Some(again) => {
                        again.notify_one();
                        continue;
                    }
                    None => "SIGHUP",
                },
            };
        }
    }
}

/// Waits for a signal; for ever, when it is ignored.
async fn one(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
