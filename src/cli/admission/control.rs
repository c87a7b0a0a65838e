//! Creates the gate, and reloads its keys when their files change.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::geteuid;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client_registry::{ClientRegistry, Permit};
use super::{AdmissionArgs, guarded_link, options};
use crate::cli::state::StateError;
use crate::cli::token::{Stamp, Store};
use auth::{Agents, AuthRequirement, Gate, GateRules, KeySource, Keyring, Keys};
use jsonrpc::Limits;
use jsonrpc::reply::Reason;
use panics::SharedMutex;
use transport::{Endpoint, Link, OpenError, OpenErrorKind};

/// Time between two checks of the files.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two warnings of the same kind.
const MINUTE: Duration = Duration::from_secs(60);

/// The admission of a serving relay.
pub(in crate::cli) struct AdmissionControl {
    args: AdmissionArgs,
    listen: Vec<Endpoint>,
    limits: Arc<Limits>,
    gate: Gate,
    /// The initial keys; `None` where no credentials are required.
    keys: Option<Keys>,
    /// The token files, which may change.
    store: Option<Store>,
    clients: ClientRegistry,
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
    seen: SharedMutex<Option<Stamp>>,
}

impl AdmissionControl {
    /// Creates the gate for these listeners, replacing that of `before`, which stays if nothing has
    /// changed. The user's own token is created if it does not exist. The keys are not valid before
    /// [`Self::activate`].
    ///
    /// # Errors
    /// A listener is too exposed, or the token files cannot be used.
    pub(in crate::cli) fn open(
        args: &AdmissionArgs,
        listen: Vec<Endpoint>,
        limits: &Arc<Limits>,
        before: Option<&Arc<Self>>,
    ) -> Result<Arc<Self>, OpenError> {
        let same =
            |same: &&Arc<Self>| (&same.args, &same.listen, &same.limits) == (args, &listen, limits);
        if let Some(same) = before.filter(same) {
            // It counts the connected clients.
            return Ok(Arc::clone(same));
        }
        for endpoint in &listen {
            options::check(endpoint, args)?;
        }
        let rules = GateRules {
            loopback: if args.no_auth_loopback || args.dangerously_no_auth {
                AuthRequirement::Nothing
            } else if args.require_token {
                AuthRequirement::Credential
            } else {
                AuthRequirement::User
            },
            network: match args.dangerously_no_auth {
                true => AuthRequirement::Nothing,
                false => AuthRequirement::Credential,
            },
            user: (geteuid().as_raw(), user_name().into()),
            failures: limits.failures,
        };
        let gate = match before {
            Some(before) => before.gate.with_rules(rules),
            None => Gate::new(rules),
        };
        let names: Names = args.certificates.clone().map(Arc::new);
        let takes_tokens = |at: &&Endpoint| matches!(at, Endpoint::Http(_));
        let (mut keys, mut store) = (None, None);
        if let Some(at) = listen.iter().find(takes_tokens) {
            let needed = args.require_token
                || args.token_file.is_some()
                || !args.dangerously_no_auth && listen.iter().any(|at| !at.is_loopback());
            let found = fetch_keys(args, at, needed, &names)?;
            keys = Some(found.0);
            store = found.1;
        }
        // Clients admitted with a token may still be connected.
        let store = store.or_else(|| before?.store.clone());
        if let Some(store) = store.clone() {
            let seen = SharedMutex::default();
            gate.set_source(Arc::new(TokenFiles { store, names, seen }));
        }
        let over = CancellationToken::new();
        Ok(Arc::new(Self {
            args: args.clone(),
            listen,
            limits: Arc::clone(limits),
            gate,
            keys,
            store,
            clients: ClientRegistry::default(),
            _over: over.clone().drop_guard(),
            over,
        }))
    }

    /// The gate, which decides which clients are admitted.
    pub(in crate::cli) fn gate(&self) -> Gate {
        self.gate.clone()
    }

    /// Sets the keys of the gate, which also replaces those of the one before. Until this value is
    /// dropped, watches the files and repeats the warnings.
    pub(in crate::cli) fn activate(&self) {
        if let Some(keys) = &self.keys {
            self.gate.set_keys(keys.clone());
        }
        let warnings = self.listen.iter();
        let warnings = warnings.filter_map(|at| options::warning(at, &self.args));
        let warnings: Vec<String> = warnings.collect();
        if self.store.is_some() || !warnings.is_empty() {
            let watch = watch(self.gate(), warnings);
            tokio::spawn(self.over.clone().run_until_cancelled_owned(watch));
        }
    }

    /// Has the link of a client that was registered before end when its credentials become invalid,
    /// also one that waits for its client.
    pub(in crate::cli) fn watch(&self, client: Link) -> Link {
        guarded_link::guarded(client, &self.gate, &self.limits)
    }

    /// Registers a client that the gate has admitted. Its link ends when its credentials become
    /// invalid. The client counts until the permit is dropped.
    ///
    /// # Errors
    /// It exceeds a limit: the error it gets, and its link.
    #[expect(clippy::result_large_err, reason = "once for each client")]
    pub(in crate::cli) fn admit(&self, client: Link) -> Result<(Link, Permit), (Link, Reason)> {
        let admitted = self
            .clients
            .admit(client.peer.principal.as_ref(), &self.limits);
        match admitted {
            Ok(permit) => Ok((
                guarded_link::guarded(client, &self.gate, &self.limits),
                permit,
            )),
            Err(reason) => Err((client, reason)),
        }
    }
}

/// The keys in the token files, and the files.
fn fetch_keys(
    args: &AdmissionArgs,
    at: &Endpoint,
    needed: bool,
    names: &Names,
) -> Result<(Keys, Option<Store>), OpenError> {
    let fetched = Store::find(args.token_file.clone()).and_then(|store| {
        let (own, others) = (store.own_or_new()?, store.keyring()?);
        Ok((Keys::new(Some(&own), others, names.clone()), Some(store)))
    });
    fetched.or_else(|fault| {
        let kind = match fault {
            // A machine without a home directory still serves its own user.
            StateError::Unavailable(what) if !needed => {
                tracing::warn!("no token will be accepted: {what}");
                return Ok((Keys::new(None, Keyring::default(), names.clone()), None));
            }
            StateError::Unavailable(_) => OpenErrorKind::CannotCreate,
            StateError::Unsafe(_) => OpenErrorKind::Forbidden,
        };
        Err(OpenError::new(kind, at, fault.to_string()))
    })
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
