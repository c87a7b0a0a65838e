//! Who a client is, and what it may do.
//!
//! Not here: how that is found out (see `gate`).

use std::fmt;
use std::sync::Arc;

use super::token::Digest;

/// The name of the agent of a relay that has one alone and gives it none.
pub const ONLY_AGENT: &str = "default";

/// A client that was let in.
///
/// Two are the same if their `name` and `means` are: a certificate for "alice" is not the token
/// of that name. What a client leaves behind (a connection, an agent that waits for it) is found by
/// the same principal only.
#[derive(Clone, Debug)]
pub struct Principal {
    /// What it is called: a token's name, a certificate's, a user's.
    pub name: Arc<str>,
    /// How it has shown that.
    pub means: Means,
    /// What it may do.
    pub grant: Grant,
    /// The key it came with; none when it came without.
    pub key: Option<Shown>,
    /// When what it has shown ceases to be good, in seconds since 1970.
    pub expires: Option<u64>,
}

/// How a client has shown who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Means {
    /// Not at all: whoever reaches the listener may come in.
    Nobody,
    /// It runs as the user that the relay runs as. The operating system says so, or it knows the
    /// token that only this user can read.
    User,
    /// It has a token that was made for it.
    Token,
    /// It has a certificate that an authority of ours has signed.
    Certificate,
}

/// What a principal may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The agents it may use.
    pub agents: Agents,
    /// Whether it may see and change what is not its own.
    pub admin: bool,
}

/// Agents, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agents {
    /// All there are.
    All,
    /// These alone.
    These(Arc<[String]>),
}

/// The token that a client came with, so that it leaves when that is no longer good.
#[derive(Clone, Copy, Debug)]
pub enum Shown {
    /// The user's own, which was this one then.
    Own(Digest),
    /// One of the ring.
    Key(KeyId),
}

/// The part of a token by which its key is found. It is no secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub(super) [u8; 6]);

impl Principal {
    /// Whoever comes to an open door.
    #[must_use]
    pub fn nobody() -> Self {
        Self {
            name: Arc::from("anybody"),
            means: Means::Nobody,
            grant: Grant::everything(false),
            key: None,
            expires: None,
        }
    }

    /// The user that the relay runs as.
    #[must_use]
    pub fn user(name: Arc<str>) -> Self {
        Self {
            name,
            means: Means::User,
            grant: Grant::everything(true),
            key: None,
            expires: None,
        }
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
    /// Whether whoever may use these may use all of `others` as well.
    #[must_use]
    pub fn cover(&self, others: &Self) -> bool {
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
        self.means == other.means && self.name == other.name
    }
}

impl Eq for Principal {}

impl Grant {
    /// All agents.
    #[must_use]
    pub const fn everything(admin: bool) -> Self {
        Self {
            agents: Agents::All,
            admin,
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.means {
            Means::Nobody => return f.write_str(&self.name),
            Means::User => "user",
            Means::Token => "token",
            Means::Certificate => "certificate",
        };
        write!(f, "{by} {}", self.name)
    }
}
