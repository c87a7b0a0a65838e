//! Accepts the clients of one listener. `server` serves them.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::Instrument;

use super::agent_pool::ListenerState;
use super::server::Server;
use crate::observe::metrics::Transport;
use crate::transport::{Endpoint, IncomingLink, Listener};

/// Time to wait before accepting again when the operating system refuses (no descriptors left).
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Receives the result of the conversation on our own stdio, which is our exit code.
pub(super) type ExitSender = mpsc::Sender<ExitCode>;

/// Accepts clients until there are no more, the listener is removed (`state` is closed), or the
/// relay is forced to stop. After a stop request the listener stays open for `Limits::drain_min`.
pub(super) async fn accept_clients(
    server: Arc<Server>,
    mut listener: Box<dyn Listener>,
    mut state: watch::Receiver<Arc<ListenerState>>,
    report: ExitSender,
) {
    let address = listener.address();
    let stdio = address == Endpoint::Stdio;
    let transport = Transport::of_scheme(address.scheme());
    let mut until: Option<Instant> = None;
    loop {
        let arrival = tokio::select! {
            arrival = listener.accept() => arrival,
            changed = state.changed() => {
                if changed.is_err() {
                    return;
                }
                let setup = state.borrow_and_update().setup.clone();
                if let Err(error) = listener.update(&setup) {
                    tracing::error!("{error}; the listener is unchanged");
                }
                continue;
            }
            () = server.stop.requested.cancelled(), if until.is_none() => {
                let open = state.borrow().setup.limits.drain_min;
                if stdio || open.is_zero() {
                    return;
                }
                until = Some(Instant::now() + open);
                continue;
            }
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => return,
            () = server.stop.forced.cancelled() => return,
        };
        match arrival {
            None => return,
            Some(Err(error)) => {
                server.count_accept_error(transport);
                let address = listener.address();
                let warning = &server.warnings.accept;
                warning.warn(format_args!("cannot accept on {address}: {error}"));
                sleep(ACCEPT_RETRY).await;
            }
            Some(Ok(arrival)) => {
                let span =
                    tracing::info_span!("client", conn = server.next_number(), from = arrival.from);
                let report = stdio.then(|| report.clone());
                let state = Arc::clone(&state.borrow());
                let worker = arrival.worker.clone();
                let conversation =
                    serve_client(Arc::clone(&server), arrival, state, transport, report);
                let conversation = conversation.instrument(span);
                worker.spawn(server.conversations.track_future(conversation));
            }
        }
    }
}

/// Serves a client, and reports the result.
async fn serve_client(
    server: Arc<Server>,
    arrival: IncomingLink,
    state: Arc<ListenerState>,
    transport: Transport,
    report: Option<ExitSender>,
) {
    let code = server.handle(arrival, &state, transport).await;
    if let Some(report) = report {
        // There is only one conversation on our stdio, so the channel has space.
        let _ = report.try_send(code);
    }
}
