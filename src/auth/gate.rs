//! Authenticates clients: a client's credentials become a principal, or it is refused.
//!
//! All listeners of a process share one [`Gate`], which is cheap to clone; its keys can be
//! exchanged while it is in use. `transport` reads the credentials from a connection.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::RwLock;

use super::token::Digest;
use super::{
    AuthEvents, AuthMethod, CredentialKind, FailedAttempts, Grant, KeySource, Keys, PassSource,
    Principal, RejectReason,
};
use panics::SharedMutex;

/// Decides which clients are admitted.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rules: GateRules,
    /// Shared by all gates derived from one another.
    keys: Arc<RwLock<Arc<Keys>>>,
    source: OnceLock<Arc<dyn KeySource>>,
    passes: OnceLock<Arc<dyn PassSource>>,
    attempts: SharedMutex<FailedAttempts>,
    events: OnceLock<Arc<dyn AuthEvents>>,
    anonymous: Arc<Principal>,
    user: Arc<Principal>,
}

/// What has to be proved on which listeners.
#[derive(Clone, Debug)]
pub struct GateRules {
    /// On a listener that only this machine can reach.
    pub loopback: AuthRequirement,
    /// On any other.
    pub network: AuthRequirement,
    /// The user that the relay runs as: the system's number and name.
    pub user: (u32, Arc<str>),
    /// Failures of one address a minute before it has to wait.
    pub failures: usize,
}

/// What a listener requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthRequirement {
    /// Nothing.
    Nothing,
    /// That the client runs as the relay's own user; or a credential.
    User,
    /// A credential: a token or a certificate.
    Credential,
}

/// What can reach the listener that a client connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reachability {
    /// A Unix socket: the system reports the client's user.
    Socket,
    /// A listener that only this machine can reach.
    Loopback,
    /// Any other.
    Network,
}

/// What is known of a client.
#[derive(Clone, Copy, Debug)]
pub struct Credentials<'a> {
    /// What can reach its listener.
    pub reachability: Reachability,
    /// Its address; none on a Unix socket.
    pub address: Option<IpAddr>,
    /// The user it runs as, if the system can report that.
    pub user: Option<u32>,
    /// Its certificate, already verified.
    pub certificate: Option<&'a Certificate>,
    /// The token that it sent.
    pub token: Option<&'a [u8]>,
}

/// The content of a client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Its subject's name.
    pub name: Arc<str>,
    /// When it expires, in seconds since 1970.
    pub expires: u64,
}

/// The current time.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// For durations.
    pub instant: Instant,
    /// Seconds since 1970, for expiry dates.
    pub unix: u64,
}

/// Why a client is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// It sent no credentials.
    Missing,
    /// Its credentials are not valid. Whether they ever were is not disclosed.
    Wrong,
    /// They are not valid, and were wrong too often: it has to wait for this long.
    TooOften(Duration),
}

impl Gate {
    /// A gate with these rules, and no keys yet.
    #[must_use]
    pub fn new(rules: GateRules) -> Self {
        Self::with_keys(rules, Arc::default())
    }

    /// A gate with other rules, to replace this one. The two share their keys from then on, so that
    /// clients admitted by this one are closed when their key is removed in the other.
    #[must_use]
    pub fn with_rules(&self, rules: GateRules) -> Self {
        Self::with_keys(rules, Arc::clone(&self.0.keys))
    }

    fn with_keys(rules: GateRules, keys: Arc<RwLock<Arc<Keys>>>) -> Self {
        Self(Arc::new(Inner {
            attempts: SharedMutex::new(FailedAttempts::new(rules.failures)),
            source: OnceLock::new(),
            passes: OnceLock::new(),
            events: OnceLock::new(),
            anonymous: Arc::new(Principal::anonymous()),
            user: Arc::new(Principal::user(Arc::clone(&rules.user.1))),
            keys,
            rules,
        }))
    }

    /// Exchanges the keys. Credentials accepted before are checked against the new ones from now
    /// on.
    pub fn set_keys(&self, keys: Keys) {
        *self.0.keys.write() = Arc::new(keys);
    }

    /// Asks `source` for new keys before a token is refused. The first source stays.
    pub fn set_source(&self, source: Arc<dyn KeySource>) {
        // A gate is made for one key store.
        let _ = self.0.source.set(source);
    }

    /// Has tokens accepted that are valid once. The first source stays.
    pub fn set_passes(&self, passes: Arc<dyn PassSource>) {
        // A relay is one host.
        let _ = self.0.passes.set(passes);
    }

    /// Loads the keys of its source, if they have changed; returns whether they had.
    pub fn refresh(&self) -> bool {
        let keys = self.0.source.get().and_then(|source| source.changed());
        keys.map(|keys| self.set_keys(keys)).is_some()
    }

    /// Whether it has the keys that tokens are checked with.
    #[must_use]
    pub fn has_source(&self) -> bool {
        self.0.source.get().is_some()
    }

    /// Reports every client to `events` from now on. The first one stays.
    pub fn set_events(&self, events: Arc<dyn AuthEvents>) {
        // There is one set of metrics in a process.
        let _ = self.0.events.set(events);
    }

    /// Reports that a client of a listener of that scheme was rejected.
    pub fn rejected(&self, scheme: &str, why: RejectReason) {
        if let Some(events) = self.0.events.get() {
            events.rejected(scheme, why);
        }
    }

    /// What a listener of that kind requires.
    #[must_use]
    pub fn requirement(&self, reachability: Reachability) -> AuthRequirement {
        match reachability {
            Reachability::Network => self.0.rules.network,
            Reachability::Loopback => self.0.rules.loopback,
            Reachability::Socket if self.0.rules.loopback == AuthRequirement::Nothing => {
                AuthRequirement::Nothing
            }
            Reachability::Socket => AuthRequirement::User,
        }
    }

    /// Whether the client's user is needed there.
    #[must_use]
    pub fn requires_user(&self, reachability: Reachability) -> bool {
        self.requirement(reachability) == AuthRequirement::User
    }

    /// Whether that is the user that the relay runs as.
    #[must_use]
    pub fn is_user(&self, user: Option<u32>) -> bool {
        user == Some(self.0.rules.user.0)
    }

    /// The name of that user.
    #[must_use]
    pub fn user_name(&self) -> Arc<str> {
        Arc::clone(&self.0.rules.user.1)
    }

    /// Authenticates a client.
    ///
    /// # Errors
    /// When the client is not admitted.
    pub fn authenticate(
        &self,
        credentials: &Credentials<'_>,
        now: Now,
    ) -> Result<Arc<Principal>, Denial> {
        let (kind, result) = self.check(credentials, now);
        if let Some(events) = self.0.events.get() {
            events.authenticated(kind, result.is_ok());
        }
        result
    }

    fn check(
        &self,
        credentials: &Credentials<'_>,
        now: Now,
    ) -> (CredentialKind, Result<Arc<Principal>, Denial>) {
        let requirement = self.requirement(credentials.reachability);
        let open = requirement == AuthRequirement::Nothing;
        if let Some(token) = credentials.token {
            let known = self.bearer(token, now.unix);
            let pass = || self.0.passes.get()?.take(token);
            let known = known.or_else(pass);
            let known = known.or_else(|| self.refresh().then(|| self.bearer(token, now.unix))?);
            return match known {
                Some(principal) => (CredentialKind::Token, Ok(principal)),
                None if open => (CredentialKind::Nothing, Ok(Arc::clone(&self.0.anonymous))),
                None => (
                    CredentialKind::Token,
                    Err(self.failed(credentials.address, now.instant)),
                ),
            };
        }
        if let Some(certificate) = credentials.certificate
            && let Some(agents) = self.keys().agents_of(&certificate.name)
        {
            let principal = Arc::new(Principal {
                name: Arc::clone(&certificate.name),
                auth_method: AuthMethod::Certificate,
                grant: Grant {
                    agents,
                    admin: false,
                },
                key: None,
                expires: Some(certificate.expires),
                withdrawn: None,
            });
            return (CredentialKind::Certificate, Ok(principal));
        }
        if requirement == AuthRequirement::User && self.is_user(credentials.user) {
            return (CredentialKind::User, Ok(Arc::clone(&self.0.user)));
        }
        if open {
            return (CredentialKind::Nothing, Ok(Arc::clone(&self.0.anonymous)));
        }
        (CredentialKind::Nothing, Err(Denial::Missing))
    }

    /// Whether a client that was admitted would still be admitted.
    #[must_use]
    pub fn is_still_valid(&self, principal: &Principal, now: Now) -> bool {
        if principal.expires.is_some_and(|at| at <= now.unix) {
            return false;
        }
        if let Some(withdrawn) = &principal.withdrawn {
            return !withdrawn.is_cancelled();
        }
        let keys = self.keys();
        if principal.auth_method == AuthMethod::Certificate {
            let agents = keys.agents_of(&principal.name);
            return agents.is_some_and(|agents| agents.contains_all(&principal.grant.agents));
        }
        let Some(digest) = &principal.key else {
            return true;
        };
        if principal.auth_method == AuthMethod::User {
            return keys.own.is_some_and(|own| own.is(digest));
        }
        let key = keys.ring.find(digest);
        key.is_some_and(|key| *key.name == *principal.name && !key.has_expired(now.unix))
    }

    /// The principal of that token.
    fn bearer(&self, token: &[u8], now: u64) -> Option<Arc<Principal>> {
        let digest = Digest::of(token);
        let keys = self.keys();
        if keys.own.is_some_and(|own| own.is(&digest)) {
            return Some(Arc::new(Principal {
                key: Some(digest),
                ..Principal::clone(&self.0.user)
            }));
        }
        let key = keys.ring.find(&digest);
        let key = key.filter(|key| !key.has_expired(now))?;
        Some(Arc::new(Principal {
            name: Arc::from(&*key.name),
            auth_method: AuthMethod::Token,
            grant: key.grant.clone(),
            key: Some(digest),
            expires: key.expires,
            withdrawn: None,
        }))
    }

    fn failed(&self, address: Option<IpAddr>, now: Instant) -> Denial {
        let Some(address) = address else {
            return Denial::Wrong;
        };
        let attempts = &self.0.attempts;
        let mut attempts = attempts.lock();
        match attempts.record(address, now) {
            Ok(()) => Denial::Wrong,
            Err(wait) => Denial::TooOften(wait),
        }
    }

    fn keys(&self) -> Arc<Keys> {
        let keys = self.0.keys.read();
        Arc::clone(&keys)
    }
}

/// A gate that admits every client.
impl Default for Gate {
    fn default() -> Self {
        Self::new(GateRules {
            loopback: AuthRequirement::Nothing,
            network: AuthRequirement::Nothing,
            user: (u32::MAX, Arc::from("")),
            failures: 1,
        })
    }
}
