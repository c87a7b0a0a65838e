//! Who is there: a client's claim is judged, and it becomes a principal or is refused.
//!
//! A [`Gate`] is one for all listeners of a process and cheap to clone; its keys can be exchanged
//! while it stands. Not here: where a claim is taken from (see `transport`).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use super::token::Digest;
use super::{
    Agents, Attempts, Grant, KeyId, Keyring, Means, Principal, Proof, Shown, Source, Token, Turned,
    Witness,
};

/// Judges who may come in.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rules: Rules,
    /// Shared by all gates that came of one another.
    keys: Arc<RwLock<Arc<Keys>>>,
    source: OnceLock<Arc<dyn Source>>,
    attempts: Mutex<Attempts>,
    witness: OnceLock<Arc<dyn Witness>>,
    nobody: Arc<Principal>,
    user: Arc<Principal>,
}

/// What opens a gate.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    own: Option<Digest>,
    ring: Keyring,
    names: Option<Arc<BTreeMap<String, Agents>>>,
}

/// What has to be shown where.
#[derive(Clone, Debug)]
pub struct Rules {
    /// On a listener that only this machine can reach.
    pub loopback: Admission,
    /// On any other.
    pub network: Admission,
    /// The user that the relay runs as: the system's number and name.
    pub user: (u32, Arc<str>),
    /// Failures of one address a minute before it is told to wait.
    pub failures: usize,
}

/// What a listener wants to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Nothing.
    Anybody,
    /// That the client is a program of the relay's own user; or a credential.
    User,
    /// A credential: a token or a certificate.
    Credential,
}

/// Where a client came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A Unix socket: the system says whose the client is.
    Socket,
    /// A listener that only this machine can reach.
    Loopback,
    /// Any other.
    Network,
}

/// What is known of a client.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// Where it came in.
    pub place: Place,
    /// Its address; none on a Unix socket.
    pub address: Option<IpAddr>,
    /// The user whose program it is, where the system can say that.
    pub user: Option<u32>,
    /// Its certificate, which has been verified.
    pub certificate: Option<&'a Certificate>,
    /// The token that it shows.
    pub token: Option<&'a [u8]>,
}

/// What a certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Whose it is.
    pub name: Arc<str>,
    /// When it ceases to be good, in seconds since 1970.
    pub expires: u64,
}

/// What time it is.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// For how long ago something was.
    pub instant: Instant,
    /// Seconds since 1970, for when something expires.
    pub unix: u64,
}

/// Why a client may not come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// It shows nothing.
    Missing,
    /// What it shows is not good. Whether it ever was is not said.
    Wrong,
    /// The same, and it was wrong too often: it is to wait for so long.
    TooOften(Duration),
}

impl Gate {
    /// A gate with these rules, and no keys yet.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self::with_keys(rules, Arc::default())
    }

    /// A gate with other rules, to take the place of this one. The two share their keys from then
    /// on, so that who came in through this one leaves when its key is taken away in the other.
    #[must_use]
    pub fn with_rules(&self, rules: Rules) -> Self {
        Self::with_keys(rules, Arc::clone(&self.0.keys))
    }

    fn with_keys(rules: Rules, keys: Arc<RwLock<Arc<Keys>>>) -> Self {
        Self(Arc::new(Inner {
            attempts: Mutex::new(Attempts::new(rules.failures)),
            source: OnceLock::new(),
            witness: OnceLock::new(),
            nobody: Arc::new(Principal::nobody()),
            user: Arc::new(Principal::user(Arc::clone(&rules.user.1))),
            keys,
            rules,
        }))
    }

    /// Exchanges the keys. What was shown before is judged by the new ones from now on.
    pub fn set_keys(&self, keys: Keys) {
        *self.0.keys.write() = Arc::new(keys);
    }

    /// Has `source` asked before a token is called wrong. The first one stays.
    pub fn ask(&self, source: Arc<dyn Source>) {
        // A gate is made for one store of keys.
        let _ = self.0.source.set(source);
    }

    /// Takes the keys of its source, if there are new ones; whether there were.
    pub fn refresh(&self) -> bool {
        let keys = self.0.source.get().and_then(|source| source.changed());
        keys.map(|keys| self.set_keys(keys)).is_some()
    }

    /// Has everybody who comes counted by `witness` from now on. The first one stays.
    pub fn be_watched(&self, witness: Arc<dyn Witness>) {
        // There is one registry of metrics in a process.
        let _ = self.0.witness.set(witness);
    }

    /// Tells the witness that somebody who came to a listener of that scheme was turned away.
    pub fn turned_away(&self, scheme: &str, why: Turned) {
        if let Some(witness) = self.0.witness.get() {
            witness.turned_away(scheme, why);
        }
    }

    /// What is wanted at a place.
    #[must_use]
    pub fn admission(&self, place: Place) -> Admission {
        match place {
            Place::Network => self.0.rules.network,
            Place::Loopback => self.0.rules.loopback,
            Place::Socket if self.0.rules.loopback == Admission::Anybody => Admission::Anybody,
            Place::Socket => Admission::User,
        }
    }

    /// Whether a client is asked there whose program it is.
    #[must_use]
    pub fn asks_for_user(&self, place: Place) -> bool {
        self.admission(place) == Admission::User
    }

    /// Whether that is the user that the relay runs as.
    #[must_use]
    pub fn is_user(&self, user: Option<u32>) -> bool {
        user == Some(self.0.rules.user.0)
    }

    /// What that user is called.
    #[must_use]
    pub fn user_name(&self) -> Arc<str> {
        Arc::clone(&self.0.rules.user.1)
    }

    /// Judges a claim.
    ///
    /// # Errors
    /// When the client may not come in.
    pub fn judge(&self, claim: &Claim<'_>, now: Moment) -> Result<Arc<Principal>, Denial> {
        let (proof, judged) = self.weigh(claim, now);
        if let Some(witness) = self.0.witness.get() {
            witness.judged(proof, judged.is_ok());
        }
        judged
    }

    fn weigh(&self, claim: &Claim<'_>, now: Moment) -> (Proof, Result<Arc<Principal>, Denial>) {
        let admission = self.admission(claim.place);
        let open = admission == Admission::Anybody;
        if let Some(shown) = claim.token {
            let known = self.bearer(shown, now.unix);
            let known = known.or_else(|| self.refresh().then(|| self.bearer(shown, now.unix))?);
            return match known {
                Some(principal) => (Proof::Token, Ok(principal)),
                None if open => (Proof::Nothing, Ok(Arc::clone(&self.0.nobody))),
                None => (Proof::Token, Err(self.failed(claim.address, now.instant))),
            };
        }
        if let Some(certificate) = claim.certificate
            && let Some(agents) = self.keys().agents_of(&certificate.name)
        {
            let principal = Arc::new(Principal {
                name: Arc::clone(&certificate.name),
                means: Means::Certificate,
                grant: Grant {
                    agents,
                    admin: false,
                },
                key: None,
                expires: Some(certificate.expires),
            });
            return (Proof::Certificate, Ok(principal));
        }
        if admission == Admission::User && self.is_user(claim.user) {
            return (Proof::User, Ok(Arc::clone(&self.0.user)));
        }
        if open {
            return (Proof::Nothing, Ok(Arc::clone(&self.0.nobody)));
        }
        (Proof::Nothing, Err(Denial::Missing))
    }

    /// Whether a client that was let in would still be let in.
    #[must_use]
    pub fn still_admits(&self, principal: &Principal, now: Moment) -> bool {
        if principal.expires.is_some_and(|at| at <= now.unix) {
            return false;
        }
        let keys = self.keys();
        if principal.means == Means::Certificate {
            let agents = keys.agents_of(&principal.name);
            return agents.is_some_and(|agents| agents.cover(&principal.grant.agents));
        }
        match &principal.key {
            None => true,
            Some(Shown::Own(shown)) => keys.own.is_some_and(|own| own.is(shown)),
            Some(Shown::Key(id)) => keys
                .ring
                .find(*id)
                .is_some_and(|key| *key.name == *principal.name && !key.has_expired(now.unix)),
        }
    }

    /// Whose token that is. The same work is done whether there is a key of that id or not.
    fn bearer(&self, shown: &[u8], now: u64) -> Option<Arc<Principal>> {
        let digest = Digest::of(shown);
        let keys = self.keys();
        let nothing = Digest::of(b"");
        let own = keys.own.as_ref().unwrap_or(&nothing).is(&digest);
        let key = KeyId::of(shown).and_then(|id| keys.ring.find(id));
        let kept = key.map_or(&nothing, |key| &key.digest).is(&digest);
        if own && keys.own.is_some() {
            return Some(Arc::new(Principal {
                key: Some(Shown::Own(digest)),
                ..Principal::clone(&self.0.user)
            }));
        }
        let key = key.filter(|key| kept && !key.has_expired(now))?;
        Some(Arc::new(Principal {
            name: Arc::from(&*key.name),
            means: Means::Token,
            grant: key.grant.clone(),
            key: Some(Shown::Key(key.id)),
            expires: key.expires,
        }))
    }

    fn failed(&self, address: Option<IpAddr>, now: Instant) -> Denial {
        let Some(address) = address else {
            return Denial::Wrong;
        };
        let attempts = &self.0.attempts;
        let mut attempts = attempts.lock();
        match attempts.fail(address, now) {
            Ok(()) => Denial::Wrong,
            Err(wait) => Denial::TooOften(wait),
        }
    }

    fn keys(&self) -> Arc<Keys> {
        let keys = self.0.keys.read();
        Arc::clone(&keys)
    }
}

impl Keys {
    /// The user's own token, which has no place in the ring because it may be any text, all other
    /// tokens, and the names that are good in certificates, with the agents of each. Without names
    /// every certificate is good that an authority of ours has signed, and for every agent.
    #[must_use]
    pub fn new(
        own: Option<&Token>,
        ring: Keyring,
        names: Option<Arc<BTreeMap<String, Agents>>>,
    ) -> Self {
        let own = own.map(Token::digest);
        Self { own, ring, names }
    }

    /// What a certificate of that name is good for; `None` when it is not.
    fn agents_of(&self, name: &str) -> Option<Agents> {
        match &self.names {
            None => Some(Agents::All),
            Some(names) => names.get(name).cloned(),
        }
    }
}

/// A gate that stands open.
impl Default for Gate {
    fn default() -> Self {
        Self::new(Rules {
            loopback: Admission::Anybody,
            network: Admission::Anybody,
            user: (u32::MAX, Arc::from("")),
            failures: 1,
        })
    }
}
