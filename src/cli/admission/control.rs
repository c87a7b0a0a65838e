//! Creates the gate, and reloads its keys when their files change.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::geteuid;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client_registry::{ClientRegistry, Permit};
use super::{AdmissionArgs, exposure, guarded_link};
use crate::auth::{Agents, AuthRequirement, Gate, GateRules, KeySource, Keyring, Keys};
use crate::cli::state::StateError;
use crate::cli::token::{Stamp, Store};
use crate::jsonrpc::Limits;
use crate::jsonrpc::reply::Reason;
use crate::transport::{Endpoint, Link, OpenError, OpenErrorKind};

/// Time between two checks of the files.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two warnings of the same kind.
const MINUTE: Duration = Duration::from_secs(60);

/// The admission of a serving relay.
pub(in crate::cli) struct AdmissionControl {
    gate: Gate,
    /// The initial keys; `None` where no credentials are required.
    keys: Option<Keys>,
    names: Names,
    store: Option<Store>,
    warnings: Vec<String>,
    clients: Arc<ClientRegistry>,
    limits: Arc<Limits>,
    /// Ends the background task when this value is replaced.
    over: CancellationToken,
    _over: DropGuard,
}

/// The names accepted in certificates, and their agents.
type Names = Option<Arc<BTreeMap<String, Agents>>>;

/// The token files.
#[derive(Debug)]
struct TokenFiles {
    store: Store,
    names: Names,
    /// Their state when they were last read.
    seen: Mutex<Option<Stamp>>,
}

impl AdmissionControl {
    /// Creates the gate for these listeners, replacing that of `before`. The user's own token is
    /// created if it does not exist. The keys are not valid before [`Self::activate`].
    ///
    /// # Errors
    /// A listener is too exposed, or the token files cannot be used.
    pub(in crate::cli) fn open(
        args: &AdmissionArgs,
        listen: &[Endpoint],
        limits: &Arc<Limits>,
        before: Option<&Self>,
    ) -> Result<Self, OpenError> {
        for endpoint in listen {
            exposure::check(endpoint, args)?;
        }
        let warnings = listen.iter().filter_map(|at| exposure::warning(at, args));
        let rules = GateRules {
            loopback: if args.no_auth_loopback || args.dangerously_no_auth {
                AuthRequirement::Nothing
            } else if args.require_token {
                AuthRequirement::Credential
            } else {
                AuthRequirement::User
            },
            network: if args.dangerously_no_auth {
                AuthRequirement::Nothing
            } else {
                AuthRequirement::Credential
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
        let mut control = Self {
            _over: over.clone().drop_guard(),
            over,
            gate,
            keys: None,
            names,
            // Clients admitted with a token may still be connected.
            store: before.and_then(|before| before.store.clone()),
            warnings: warnings.collect(),
            clients: ClientRegistry::new(limits),
            limits: Arc::clone(limits),
        };
        let takes_tokens = |at: &&Endpoint| matches!(at, Endpoint::Http(_));
        if let Some(at) = listen.iter().find(takes_tokens) {
            let needed = args.require_token
                || args.token_file.is_some()
                || !args.dangerously_no_auth && listen.iter().any(|at| !at.is_loopback());
            control.fetch_keys(args, at, needed)?;
        }
        if let Some(store) = control.store.clone() {
            let (names, seen) = (control.names.clone(), Mutex::default());
            control
                .gate
                .set_source(Arc::new(TokenFiles { store, names, seen }));
        }
        Ok(control)
    }

    /// The gate, which decides which clients are admitted.
    pub(in crate::cli) fn gate(&self) -> Gate {
        self.gate.clone()
    }

    /// Sets the keys of the gate, which also replaces those of `before`.
    pub(in crate::cli) fn activate(&self) {
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
    pub(in crate::cli) fn admit(&self, client: Link) -> Result<(Link, Permit), (Link, Reason)> {
        match self.clients.admit(client.peer.principal.as_ref()) {
            Ok(permit) => Ok((
                guarded_link::watch(client, &self.gate, &self.limits),
                permit,
            )),
            Err(reason) => Err((client, reason)),
        }
    }

    fn fetch_keys(
        &mut self,
        args: &AdmissionArgs,
        at: &Endpoint,
        needed: bool,
    ) -> Result<(), OpenError> {
        let fetched = Store::find(args.token_file.clone()).and_then(|store| {
            let (own, others) = (store.own_or_new()?, store.keyring()?);
            self.keys = Some(Keys::new(Some(&own), others, self.names.clone()));
            Ok(store)
        });
        match fetched {
            Ok(store) => self.store = Some(store),
            // A machine without a home directory still serves its own user.
            Err(StateError::Unavailable(what)) if !needed => {
                tracing::warn!("no token will be accepted: {what}");
                self.keys = Some(Keys::new(None, Keyring::default(), self.names.clone()));
            }
            Err(fault) => {
                let (kind, what) = match fault {
                    StateError::Unavailable(what) => (OpenErrorKind::CannotCreate, what),
                    StateError::Unsafe(what) => (OpenErrorKind::Forbidden, what),
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

impl KeySource for TokenFiles {
    fn changed(&self) -> Option<Keys> {
        let stamp = self.store.stamp();
        let mut seen = self.seen.lock();
        if seen.as_ref() == Some(&stamp) {
            return None;
        }
        let first = seen.replace(stamp).is_none();
        let own = self.store.own_token();
        match own.and_then(|own| Ok((own, self.store.keyring()?))) {
            Ok((own, others)) => {
                if !first {
                    tracing::info!("the tokens were reloaded");
                }
                Some(Keys::new(own.as_ref(), others, self.names.clone()))
            }
            Err(fault) => {
                tracing::error!(
                    "the tokens cannot be reloaded, the previous ones stay valid: {fault}"
                );
                None
            }
        }
    }
}

async fn watch(gate: Gate, warnings: Vec<String>) {
    let mut ticks = interval(POLL_INTERVAL);
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
