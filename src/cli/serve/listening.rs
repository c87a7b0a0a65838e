//! The open listeners, and how they change with a new plan.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::house::House;
use super::reception::{Report, receive};
use super::roster::Station;
use crate::cli::config::ListenerPart;
use crate::cli::door::Sign;
use crate::cli::stderr;
use crate::transport::{Endpoint, Listener, OpenError, OpenErrorKind, registry};

/// All open listeners.
pub(super) struct Listening {
    house: Arc<House>,
    report: Report,
    open: Vec<Open>,
    tasks: JoinSet<()>,
}

/// One open listener, under its configured endpoint.
struct Open {
    endpoint: Endpoint,
    /// Its actual address.
    address: Endpoint,
    station: watch::Sender<Arc<Station>>,
    /// Announces it to this user's `connect`.
    _sign: Option<Sign>,
}

/// A bound listener that does not accept yet.
type Bound = (Endpoint, Box<dyn Listener>, Station);

impl Listening {
    pub(super) fn new(house: Arc<House>, report: Report) -> Self {
        Self {
            house,
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
        plan: Vec<(ListenerPart, Station)>,
    ) -> Result<(), OpenError> {
        // A listener whose task has ended is closed.
        self.open.retain(|open| !open.station.is_closed());
        let mut bound: Vec<Bound> = Vec::new();
        let mut kept: Vec<(Open, Arc<Station>)> = Vec::new();
        let mut before: Vec<Open> = std::mem::take(&mut self.open);
        let mut failed = None;
        for (part, station) in plan {
            let same = before
                .iter()
                .position(|open| open.endpoint == part.endpoint);
            if let Some(same) = same {
                kept.push((before.remove(same), Arc::new(station)));
                continue;
            }
            match registry::listen(&part.endpoint, &station.setup).await {
                Ok(listener) => bound.push((part.endpoint, listener, station)),
                Err(error) => {
                    failed = Some((error, part.endpoint));
                    break;
                }
            }
        }
        if let Some((error, wanted)) = failed {
            let in_use = error.kind == OpenErrorKind::Unavailable;
            let shares = |open: &&Open| in_use && open.address.shares_port(&wanted);
            let ours = before.iter().find(shares);
            let error = match ours {
                Some(open) => occupied(&wanted, &open.address),
                None => error,
            };
            self.open = before;
            self.open.extend(kept.into_iter().map(|(open, _)| open));
            return Err(error);
        }
        for (open, station) in kept {
            // Fails if the task has just ended.
            let _ = open.station.send(station);
            self.open.push(open);
        }
        for open in before {
            stderr::say(&format!(
                "acp-relay: no longer listening on {}",
                open.address
            ));
        }
        for (endpoint, listener, station) in bound {
            self.start(endpoint, listener, station);
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
        let open = self.open.iter().filter(|one| !one.station.is_closed());
        open.map(|one| one.address.to_string()).collect()
    }

    fn start(&mut self, endpoint: Endpoint, listener: Box<dyn Listener>, station: Station) {
        let address = listener.address();
        let sign = Sign::hang_out(&address);
        if address != Endpoint::Stdio {
            stderr::say(&format!("acp-relay: listening on {address}"));
        }
        let (send, station) = watch::channel(Arc::new(station));
        let (house, report) = (Arc::clone(&self.house), self.report.clone());
        self.tasks.spawn(receive(house, listener, station, report));
        self.open.push(Open {
            endpoint,
            station: send,
            _sign: sign,
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
