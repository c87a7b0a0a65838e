//! The open listeners, and how they change with a new plan.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::accept_loop::{ExitSender, accept_clients};
use super::agent_pool::ListenerState;
use super::server::Server;
use crate::cli::admission::announce;
use crate::cli::announcement::Announcement;
use crate::cli::config::ListenerPart;
use crate::cli::stderr;
use crate::transport::{Endpoint, Listener, OpenError, OpenErrorKind, registry};

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

/// A bound listener that does not accept yet.
type BoundListener = (Endpoint, Box<dyn Listener>, ListenerState);

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
    pub(super) async fn follow(
        &mut self,
        plan: Vec<(ListenerPart, ListenerState)>,
    ) -> Result<(), OpenError> {
        // A listener whose task has ended is closed.
        self.open.retain(|open| !open.state.is_closed());
        let mut bound: Vec<BoundListener> = Vec::new();
        let mut unchanged: Vec<(OpenListener, Arc<ListenerState>)> = Vec::new();
        let mut before: Vec<OpenListener> = std::mem::take(&mut self.open);
        let mut failed = None;
        for (part, state) in plan {
            let same = before
                .iter()
                .position(|open| open.endpoint == part.endpoint);
            if let Some(same) = same {
                unchanged.push((before.remove(same), Arc::new(state)));
                continue;
            }
            match registry::listen(&part.endpoint, &state.setup).await {
                Ok(listener) => bound.push((part.endpoint, listener, state)),
                Err(error) => {
                    failed = Some((error, part.endpoint));
                    break;
                }
            }
        }
        if let Some((error, wanted)) = failed {
            let in_use = error.kind == OpenErrorKind::Unavailable;
            let shares = |open: &&OpenListener| in_use && open.address.shares_port(&wanted);
            let ours = before.iter().find(shares);
            let error = match ours {
                Some(open) => occupied(&wanted, &open.address),
                None => error,
            };
            self.open = before;
            self.open
                .extend(unchanged.into_iter().map(|(open, _)| open));
            return Err(error);
        }
        for (open, state) in unchanged {
            // Fails if the task has just ended.
            let _ = open.state.send(state);
            self.open.push(open);
        }
        for open in before {
            stderr::print(&format!(
                "acp-relay: no longer listening on {}",
                open.address
            ));
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
}

/// A listener cannot be replaced by another one at its port: existing conversations still need it,
/// to answer requests.
fn occupied(wanted: &Endpoint, by: &Endpoint) -> OpenError {
    let what = format!("this relay itself listens there, at {by}");
    OpenError::new(OpenErrorKind::Unavailable, wanted, what).with_remedy(
        "Another path or scheme at the same port takes effect after a restart; \
         choose another port to use it now",
    )
}
