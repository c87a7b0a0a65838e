//! Signals: the first one stops the program gracefully, the second one at once. With a
//! configuration file, SIGHUP reloads it.
//!
//! Without one, SIGHUP ends the program like the others: a closed terminal sends it, and a relay
//! without its terminal should not continue.
//!
//! A signal that was ignored when the program started (`nohup`, `&` in a script) stays ignored.

use std::future::poll_fn;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use super::exit;
use proxy::StopSignals;

/// Handles SIGTERM, SIGINT and SIGHUP from now on and cancels the tokens of `stop`; SIGHUP notifies
/// `again` instead if that is given. Errors are printed, and the exit code is returned.
pub(super) fn watch(stop: StopSignals, again: Option<Arc<Notify>>) -> Result<(), ExitCode> {
    let mut signals = listen()
        .map_err(|error| exit::fail(exit::SYSTEM, &format!("cannot handle signals: {error}")))?;
    tokio::spawn(async move {
        let name = next(&mut signals, again.as_deref()).await;
        tracing::info!("{name}: stopping; send a signal once more to stop at once");
        stop.requested.cancel();
        let name = next(&mut signals, again.as_deref()).await;
        tracing::warn!("{name} again: not waiting any longer");
        stop.forced.cancel();
    });
    Ok(())
}

/// The signals that end the program, without those that are ignored.
fn listen() -> io::Result<Vec<(&'static str, Signal)>> {
    let ignored = ignored();
    let all = [
        ("SIGTERM", SignalKind::terminate()),
        ("SIGINT", SignalKind::interrupt()),
        ("SIGHUP", SignalKind::hangup()),
    ];
    all.into_iter()
        .filter(|(_, kind)| {
            let is_ignored = ignored & (1 << (kind.as_raw_value() - 1)) != 0;
            *kind == SignalKind::terminate() || !is_ignored
        })
        .map(|(name, kind)| Ok((name, signal(kind)?)))
        .collect()
}

/// The signals that were ignored when this process started, bit n - 1 for signal n (proc(5),
/// `SigIgn`); none where that cannot be determined.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// The next signal that ends the program. SIGHUP notifies `again` instead, if that is given.
async fn next(signals: &mut [(&'static str, Signal)], again: Option<&Notify>) -> &'static str {
    loop {
        let received = poll_fn(|cx| {
            let ready = signals
                .iter_mut()
                .find_map(|(name, signal)| signal.poll_recv(cx).is_ready().then_some(*name));
            ready.map_or(Poll::Pending, Poll::Ready)
        });
        match (received.await, again) {
            ("SIGHUP", Some(again)) => again.notify_one(),
            (name, _) => return name,
        }
    }
}
