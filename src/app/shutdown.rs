//! Signals: the first asks for a graceful end, the second does not wait.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::relay::Stop;

/// The signals that end the program.
struct Signals([Signal; 3]);

/// Listens for SIGTERM, SIGINT and SIGHUP from now on and passes them to `stop`.
///
/// # Errors
/// When the operating system does not let us listen.
pub(super) fn watch(stop: Stop) -> io::Result<()> {
    let mut signals = Signals([
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
        signal(SignalKind::hangup())?,
    ]);
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

impl Signals {
    async fn next(&mut self) -> &'static str {
        let [terminate, interrupt, hangup] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            _ = hangup.recv() => "SIGHUP",
        }
    }
}
