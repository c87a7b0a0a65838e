//! The identity of a client, and what it may do.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::token::Digest;

/// The name of the agent of a relay that has only one and gives it no name.
pub const ONLY_AGENT: &str = "default";

/// An admitted client.
///
/// Two are the same if their `name` and `auth_method` are: a certificate for "alice" is not the
/// token of that name. What a client leaves behind (a connection, an agent that waits for it) is
/// only found by the same principal.
#[derive(Clone, Debug)]
pub struct Principal {
    /// Its name: that of a token, a certificate or a user.
    pub name: Arc<str>,
    /// How it was authenticated.
    pub auth_method: AuthMethod,
    /// What it may do.
    pub grant: Grant,
    /// The digest of its token, so that its connection is closed when the token is revoked.
    pub key: Option<Digest>,
    /// When its credential expires, in seconds since 1970.
    pub expires: Option<u64>,
    /// Of a client that another relay has authenticated: cancelled when that relay says that its
    /// credentials are not valid any more. The keys of this relay do not concern it.
    pub withdrawn: Option<Arc<CancellationToken>>,
}

/// How a client was authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMethod {
    /// Not at all: every client that reaches the listener is admitted.
    Anonymous,
    /// It runs as the user that the relay runs as. The operating system reports it, or it has the
    /// token that only this user can read.
    User,
    /// It has a token that was made for it.
    Token,
    /// It has a certificate signed by one of our authorities.
    Certificate,
}

/// What a principal may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The agents it may use.
    pub agents: Agents,
    /// Whether it may see and change what belongs to others.
    pub admin: bool,
}

/// Agents, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agents {
    /// All there are.
    All,
    /// Only these.
    These(Arc<[String]>),
}

impl Principal {
    /// A client that was not authenticated.
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            name: Arc::from("anonymous"),
            auth_method: AuthMethod::Anonymous,
            grant: Grant::all_agents(false),
            key: None,
            expires: None,
            withdrawn: None,
        }
    }

    /// The user that the relay runs as.
    #[must_use]
    pub fn user(name: Arc<str>) -> Self {
        Self {
            name,
            auth_method: AuthMethod::User,
            grant: Grant::all_agents(true),
            ..Self::anonymous()
        }
    }

    /// Whether it finds what `other` has left behind: the same principal does, except with another
    /// token of the same name, which replaces one that was revoked.
    #[must_use]
    pub fn finds(&self, other: &Self) -> bool {
        let is_same = |(own, other): (Digest, Digest)| own.is(&other);
        self == other && self.key.zip(other.key).is_none_or(is_same)
    }

    /// Whether it may use the agent of that name.
    #[must_use]
    pub fn may_use(&self, agent: &str) -> bool {
        match &self.grant.agents {
            Agents::All => true,
            Agents::These(names) => names.iter().any(|name| name == agent),
        }
    }
}

impl Agents {
    /// Whether all of `others` are among these.
    #[must_use]
    pub fn contains_all(&self, others: &Self) -> bool {
        match (self, others) {
            (Self::All, _) => true,
            (Self::These(_), Self::All) => false,
            (Self::These(ours), Self::These(others)) => {
                others.iter().all(|name| ours.contains(name))
            }
        }
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.auth_method == other.auth_method && self.name == other.name
    }
}

impl Eq for Principal {}

impl Grant {
    /// All agents.
    #[must_use]
    pub const fn all_agents(admin: bool) -> Self {
        Self {
            agents: Agents::All,
            admin,
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.auth_method {
            AuthMethod::Anonymous => return f.write_str(&self.name),
            AuthMethod::User => "user",
            AuthMethod::Token => "token",
            AuthMethod::Certificate => "certificate",
        };
        write!(f, "{by} {}", self.name)
    }
}
