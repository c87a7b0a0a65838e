//! The two sides of a conversation.
//!
//! *Client* is always the editor's side and *agent* the other one, whichever of them opened the
//! connection and whichever way a message travels.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumMessage, IntoStaticStr, VariantArray};

use super::Choice as _;

/// One of the two sides of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, JsonSchema)]
#[derive(EnumMessage, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Side {
    /// The editor's side
    Client,
    /// The coding agent's side
    Agent,
}

impl Side {
    /// The side across the relay.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Agent,
            Self::Agent => Self::Client,
        }
    }

    /// That of two things that belongs to this side: the first is the client's.
    #[must_use]
    pub const fn of<T>(self, [client, agent]: &[T; 2]) -> &T {
        match self {
            Self::Client => client,
            Self::Agent => agent,
        }
    }

    /// The same, to change it.
    pub const fn of_mut<T>(self, [client, agent]: &mut [T; 2]) -> &mut T {
        match self {
            Self::Client => client,
            Self::Agent => agent,
        }
    }

    /// The word used in logs and errors: `client` or `agent`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Agent => "agent",
        }
    }
}

impl FromStr for Side {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::from_name(text)
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
