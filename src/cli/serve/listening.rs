//! The open listeners: how they change with a new plan, and how they accept clients. `server` serves
//! those.

use std::mem::take;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::Instrument as _;

use super::agent_pool::ListenerState;
use super::plan::Listeners;
use super::server::Server;
use super::terminal;
use crate::cli::admission::announce;
use crate::cli::announcement::Announcement;
use crate::cli::{exit, stderr};
use observe::metrics::Transport;
use panics::{self, Place};
use transport::{Endpoint, Listener, OpenError, OpenErrorKind, registry};

/// Time to wait before accepting again when the operating system refuses (no descriptors left).
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Receives the result of the conversation on our own stdio, which is our exit code.
type ExitSender = mpsc::Sender<ExitCode>;

/// All open listeners.
pub(super) struct OpenListeners {
    server: Arc<Server>,
    report: ExitSender,
    open: Vec<OpenListener>,
    tasks: JoinSet<()>,
}

/// One open listener, under its configured endpoint.
struct OpenListener {
    endpoint: Endpoint,
    /// Its actual address.
    address: Endpoint,
    state: watch::Sender<Arc<ListenerState>>,
    /// Announces it to this user's `connect`.
    _file: Option<Announcement>,
}

impl OpenListeners {
    pub(super) fn new(server: Arc<Server>, report: ExitSender) -> Self {
        Self {
            server,
            report,
            open: Vec::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Applies a plan: opens new listeners, updates those that stay, closes the others. If a new
    /// one cannot be opened, nothing changes.
    ///
    /// # Errors
    /// What cannot be opened, and why.
    pub(super) async fn follow(&mut self, plan: Listeners) -> Result<(), OpenError> {
        // A listener whose task has ended is closed.
        self.open.retain(|open| !open.state.is_closed());
        let mut kept: Vec<Option<ListenerState>> = self.open.iter().map(|_| None).collect();
        let mut bound = Vec::new();
        for (endpoint, state) in plan {
            let mut same = self.open.iter().zip(&mut kept);
            let same = same.find(|(open, kept)| kept.is_none() && open.endpoint == endpoint);
            if let Some((_, kept)) = same {
                *kept = Some(state);
                continue;
            }
            match registry::listen(&endpoint, &state.setup).await {
                Ok(listener) => bound.push((endpoint, listener, state)),
                Err(error) => return Err(self.or_occupied(error, &endpoint)),
            }
        }
        for (open, state) in take(&mut self.open).into_iter().zip(kept) {
            if let Some(state) = state {
                // Fails if the task has just ended.
                let _ = open.state.send(Arc::new(state));
                self.open.push(open);
            } else {
                let address = &open.address;
                stderr::print(&format!("acp-relay: no longer listening on {address}"));
            }
        }
        for (endpoint, listener, state) in bound {
            self.start(endpoint, listener, state);
        }
        Ok(())
    }

    /// Waits until all have ended.
    pub(super) async fn ended(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }

    /// How many are open.
    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    /// Where they are.
    pub(super) fn addresses(&self) -> Vec<String> {
        let open = self.open.iter().filter(|one| !one.state.is_closed());
        open.map(|one| one.address.to_string()).collect()
    }

    fn start(&mut self, endpoint: Endpoint, listener: Box<dyn Listener>, state: ListenerState) {
        let address = listener.address();
        let file = announce(&address);
        if address != Endpoint::Stdio {
            stderr::print(&format!("acp-relay: listening on {address}"));
            terminal::explain(&address, &state.agents);
        }
        let (send, state) = watch::channel(Arc::new(state));
        let (server, report) = (Arc::clone(&self.server), self.report.clone());
        self.tasks
            .spawn(accept_clients(server, listener, state, report));
        self.open.push(OpenListener {
            endpoint,
            state: send,
            _file: file,
            address,
        });
    }

    /// A listener cannot be replaced by another one at its port: existing conversations still need
    /// it, to answer requests.
    fn or_occupied(&self, error: OpenError, wanted: &Endpoint) -> OpenError {
        let mut open = self.open.iter().map(|open| &open.address);
        match open.find(|address| address.shares_port(wanted)) {
            Some(by) if error.kind == OpenErrorKind::Unavailable => {
                let what = format!("this relay itself listens there, at {by}");
                OpenError::new(OpenErrorKind::Unavailable, wanted, what).with_remedy(
                    "Another path or scheme at the same port takes effect after a restart; \
                     choose another port to use it now",
                )
            }
            _ => error,
        }
    }
}

/// Accepts clients until there are no more, the listener is removed (`state` is closed), or the
/// relay is forced to stop. After a stop request the listener stays open for `Limits::drain_min`.
async fn accept_clients(
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
                server.accept_failed(transport, &listener.address(), &error);
                sleep(ACCEPT_RETRY).await;
            }
            Some(Ok(arrival)) => {
                let (conn, from) = (server.next_number(), &arrival.from);
                let span = tracing::info_span!("client", conn, from);
                let report = stdio.then(|| report.clone());
                let (own, state) = (Arc::clone(&server), Arc::clone(&state.borrow()));
                let worker = arrival.worker.clone();
                let conversation = async move {
                    let handled = Box::pin(own.handle(arrival, &state, transport));
                    let code = panics::confine(Place::Conversation, handled).await;
                    let code = code.unwrap_or_else(|| ExitCode::from(exit::SOFTWARE));
                    if let Some(report) = report {
                        // There is only one conversation on our stdio, so the channel has space.
                        let _ = report.try_send(code);
                    }
                };
                let conversation = conversation.instrument(span);
                worker.spawn(server.conversations.track_future(conversation));
            }
        }
    }
}
