//! Signals: the first one stops the program gracefully, the second one at once. With a
//! configuration file, SIGHUP reloads it.
//!
//! Without one, SIGHUP ends the program like the others: a closed terminal sends it, and a relay
//! without its terminal should not continue.
//!
//! A signal that was ignored when the program started (`nohup`, `&` in a script) stays ignored.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use super::exit;
use crate::proxy::StopSignals;

/// The signals that end the program; those that are ignored are `None`.
struct Signals {
    terminate: Option<Signal>,
    interrupt: Option<Signal>,
    hangup: Option<Signal>,
    /// Notified of SIGHUP, if SIGHUP does not end the program.
    again: Option<Arc<Notify>>,
}

/// Handles SIGTERM, SIGINT and SIGHUP from now on and cancels the tokens of `stop`; SIGHUP notifies
/// `again` instead if that is given. Errors are printed, and the exit code is returned.
pub(super) fn watch(stop: StopSignals, again: Option<Arc<Notify>>) -> Result<(), ExitCode> {
    let mut signals = Signals::listen(again)
        .map_err(|error| exit::fail(exit::SYSTEM, &format!("cannot handle signals: {error}")))?;
    tokio::spawn(async move {
        let name = signals.next().await;
        tracing::info!("{name}: stopping; send a signal once more to stop at once");
        stop.requested.cancel();
        let name = signals.next().await;
        tracing::warn!("{name} again: not waiting any longer");
        stop.forced.cancel();
    });
    Ok(())
}

/// The signals that were ignored when this process started, bit n - 1 for signal n (proc(5),
/// `SigIgn`); none where that cannot be determined.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

impl Signals {
    fn listen(again: Option<Arc<Notify>>) -> io::Result<Self> {
        let ignored = ignored();
        let unless_ignored = |kind: SignalKind| {
            let is_heeded = ignored & (1 << (kind.as_raw_value() - 1)) == 0;
            is_heeded.then(|| signal(kind)).transpose()
        };
        Ok(Self {
            terminate: Some(signal(SignalKind::terminate())?),
            interrupt: unless_ignored(SignalKind::interrupt())?,
            hangup: unless_ignored(SignalKind::hangup())?,
            again,
        })
    }

    async fn next(&mut self) -> &'static str {
        loop {
            return tokio::select! {
                () = received(&mut self.terminate) => "SIGTERM",
                () = received(&mut self.interrupt) => "SIGINT",
                () = received(&mut self.hangup) => match &self.again {
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

/// Waits for a signal; forever if it is ignored.
async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
