//! Creates the gate, and reloads its keys when their files change.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::geteuid;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::guests::{Guests, Stay};
use super::{DoorArgs, exposure, pass};
use crate::auth::{Admission, Agents, Gate, Keyring, Keys, Rules, Source};
use crate::cli::state::Fault;
use crate::cli::token::{Stamp, Store};
use crate::jsonrpc::Limits;
use crate::jsonrpc::reply::Reason;
use crate::transport::{Endpoint, Link, OpenError, OpenErrorKind};

/// Time between two checks of the files.
const LOOK: Duration = Duration::from_secs(1);
/// Time between two warnings of the same kind.
const MINUTE: Duration = Duration::from_secs(60);

/// The admission of a serving relay.
pub(in crate::cli) struct Door {
    gate: Gate,
    /// The initial keys; `None` where no credentials are required.
    keys: Option<Keys>,
    names: Names,
    store: Option<Store>,
    warnings: Vec<String>,
    guests: Arc<Guests>,
    limits: Arc<Limits>,
    /// Ends the background task when this value is replaced.
    over: CancellationToken,
    _over: DropGuard,
}

/// The names accepted in certificates, and their agents.
type Names = Option<Arc<BTreeMap<String, Agents>>>;

/// The token files.
#[derive(Debug)]
struct Files {
    store: Store,
    names: Names,
    /// Their state when they were last read.
    seen: Mutex<Option<Stamp>>,
}

impl Door {
    /// Creates the gate for these listeners, replacing that of `before`. The user's own token is
    /// created if it does not exist. The keys are not valid before [`Self::activate`].
    ///
    /// # Errors
    /// A listener is too exposed, or the token files cannot be used.
    pub(in crate::cli) fn open(
        args: &DoorArgs,
        listen: &[Endpoint],
        limits: &Arc<Limits>,
        before: Option<&Self>,
    ) -> Result<Self, OpenError> {
        for endpoint in listen {
            exposure::check(endpoint, args)?;
        }
        let warnings = listen.iter().filter_map(|at| exposure::warning(at, args));
        let rules = Rules {
            loopback: if args.no_auth_loopback || args.dangerously_no_auth {
                Admission::Anybody
            } else if args.require_token {
                Admission::Credential
            } else {
                Admission::User
            },
            network: if args.dangerously_no_auth {
                Admission::Anybody
            } else {
                Admission::Credential
            },
            user: (geteuid().as_raw(), user_name().into()),
            failures: limits.failures,
        };
        let gate = match before {
            Some(before) => before.gate.with_rules(rules),
            None => Gate::new(rules),
        };
        let names: Names = args.certificates.clone().map(Arc::new);
        let over = CancellationToken::new();
        let mut door = Self {
            _over: over.clone().drop_guard(),
            over,
            gate,
            keys: None,
            names,
            // Clients admitted with a token may still be connected.
            store: before.and_then(|before| before.store.clone()),
            warnings: warnings.collect(),
            guests: Guests::new(limits),
            limits: Arc::clone(limits),
        };
        let takes_tokens = |at: &&Endpoint| matches!(at, Endpoint::Web(_));
        if let Some(at) = listen.iter().find(takes_tokens) {
            let needed = args.require_token
                || args.token_file.is_some()
                || !args.dangerously_no_auth && listen.iter().any(|at| !at.is_loopback());
            door.fetch_keys(args, at, needed)?;
        }
        if let Some(store) = door.store.clone() {
            let (names, seen) = (door.names.clone(), Mutex::default());
            door.gate.ask(Arc::new(Files { store, names, seen }));
        }
        Ok(door)
    }

    /// The gate, which decides whom to admit.
    pub(in crate::cli) fn gate(&self) -> Gate {
        self.gate.clone()
    }

    /// Sets the keys of the gate, which also replaces those of `before`.
    pub(in crate::cli) fn stand(&self) {
        if let Some(keys) = &self.keys {
            self.gate.set_keys(keys.clone());
        }
    }

    /// Watches the files, and repeats the warnings, until this value is dropped.
    pub(in crate::cli) fn watch(&self) {
        if self.store.is_some() || !self.warnings.is_empty() {
            let over = self.over.clone();
            let watch = watch(self.gate(), self.warnings.clone());
            tokio::spawn(over.run_until_cancelled_owned(watch));
        }
    }

    /// Registers a client that the gate has admitted. Its link ends when its credentials become
    /// invalid. The client counts until the permit is dropped.
    ///
    /// # Errors
    /// It exceeds a limit: the error it gets, and its link.
    #[expect(clippy::result_large_err, reason = "once for each client")]
    pub(in crate::cli) fn receive(&self, client: Link) -> Result<(Link, Stay), (Link, Reason)> {
        match self.guests.enter(client.peer.principal.as_ref()) {
            Ok(stay) => Ok((pass::watch(client, &self.gate, &self.limits), stay)),
            Err(reason) => Err((client, reason)),
        }
    }

    fn fetch_keys(
        &mut self,
        args: &DoorArgs,
        at: &Endpoint,
        needed: bool,
    ) -> Result<(), OpenError> {
        let fetched = Store::find(args.token_file.clone()).and_then(|store| {
            let (own, others) = (store.own_or_new()?, store.others()?);
            self.keys = Some(Keys::new(Some(&own), others, self.names.clone()));
            Ok(store)
        });
        match fetched {
            Ok(store) => self.store = Some(store),
            // A machine without a home directory still serves its own user.
            Err(Fault::Unavailable(what)) if !needed => {
                tracing::warn!("no token will be accepted: {what}");
                self.keys = Some(Keys::new(None, Keyring::default(), self.names.clone()));
            }
            Err(fault) => {
                let (kind, what) = match fault {
                    Fault::Unavailable(what) => (OpenErrorKind::CannotCreate, what),
                    Fault::Unsafe(what) => (OpenErrorKind::Forbidden, what),
                };
                return Err(OpenError {
                    kind,
                    endpoint: at.to_string(),
                    what,
                    remedy: None,
                });
            }
        }
        Ok(())
    }
}

impl Source for Files {
    fn changed(&self) -> Option<Keys> {
        let stamp = self.store.stamp();
        let mut seen = self.seen.lock();
        if seen.as_ref() == Some(&stamp) {
            return None;
        }
        let first = seen.replace(stamp).is_none();
        let own = self.store.own();
        match own.and_then(|own| Ok((own, self.store.others()?))) {
            Ok((own, others)) => {
                if !first {
                    tracing::info!("the tokens were reloaded");
                }
                Some(Keys::new(own.as_ref(), others, self.names.clone()))
            }
            Err(fault) => {
                tracing::error!("the tokens cannot be reloaded, the previous ones stay valid: {fault}");
                None
            }
        }
    }
}

async fn watch(gate: Gate, warnings: Vec<String>) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut warned: Option<Instant> = None;
    loop {
        let now = ticks.tick().await;
        if warned.is_none_or(|at| now - at >= MINUTE) {
            warned = Some(now);
            for warning in &warnings {
                tracing::warn!("{warning}");
            }
        }
        // A revoked token becomes invalid, and its clients are disconnected.
        gate.refresh();
    }
}

/// The name of this user, or else the number.
fn user_name() -> String {
    let number = geteuid().as_raw();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut named = users.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        (id.parse() == Ok(number)).then(|| name.to_owned())
    });
    named.next().unwrap_or_else(|| number.to_string())
}
