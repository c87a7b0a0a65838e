//! The words that stand in labels and are not a peer's: closed lists, all of them.
//!
//! Not here: those that peers say (see `conversation::Method` and its like).

use crate::conversation::Cause;
use crate::jsonrpc::reply::{self, Reason};
use crate::jsonrpc::{FrameFault, Kind};

/// Makes a list of words.
macro_rules! list {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`")] $variant,)*
        }

        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

list! {
    /// How a peer is connected.
    Transport {
        Stdio = "stdio",
        Process = "process",
        Tcp = "tcp",
        Unix = "unix",
        WebSocket = "ws",
        Http = "http",
        Elephant = "elephant",
        AgentConnect = "agent_connect",
        Replay = "replay",
        Other = "other",
    }
}

list! {
    /// What ended a connection.
    Closing {
        ClientLeft = "client_left",
        AgentExited = "agent_exited",
        AgentLeft = "agent_left",
        Stopped = "stopped",
        Unrecorded = "unrecorded",
        Expelled = "expelled",
    }
}

list! {
    /// What became of a recording.
    Recorded {
        Begun = "begun",
        Finished = "finished",
        Failed = "failed",
    }
}

list! {
    /// What somebody who came stood on.
    Proof {
        Nothing = "none",
        User = "peercred",
        Token = "token",
        Certificate = "mtls",
    }
}

list! {
    /// What became of it.
    Judged {
        Admitted = "ok",
        Refused = "refused",
    }
}

list! {
    /// What became of a configuration file that was to be read again.
    Reloaded {
        Taken = "ok",
        Refused = "error",
    }
}

list! {
    /// How a client that may come back has come.
    Come {
        New = "new",
        Resumed = "resumed",
    }
}

list! {
    /// Why the admin listener did not answer.
    Unwanted {
        Page = "page",
        Recordings = "recordings",
    }
}

list! {
    /// What the border between two machines did to a message.
    Decision {
        Denied = "denied",
        Adjusted = "adjusted",
    }
}

list! {
    /// Why somebody was turned away at the door.
    Rejection {
        Auth = "auth",
        Origin = "origin",
        Host = "host",
        Tls = "tls",
        Limit = "limit",
        Timeout = "timeout",
        Draining = "draining",
        Policy = "policy",
        Unknown = "unknown",
        Handshake = "handshake",
        NoAgent = "no_agent",
    }
}

impl Transport {
    /// That of an endpoint with this scheme.
    #[must_use]
    pub fn of_scheme(scheme: &str) -> Self {
        match scheme {
            "stdio" => Self::Stdio,
            "exec" => Self::Process,
            "tcp" => Self::Tcp,
            "unix" => Self::Unix,
            "ws" | "wss" => Self::WebSocket,
            "http" | "https" => Self::Http,
            "elephant+http" | "elephant+https" => Self::Elephant,
            "agent-connect+http" | "agent-connect+https" => Self::AgentConnect,
            "replay" => Self::Replay,
            _ => Self::Other,
        }
    }
}

impl Rejection {
    /// That of a client which is told `reason`.
    #[must_use]
    pub const fn of(reason: &Reason) -> Self {
        match reason.code {
            reply::OVERLOADED => Self::Limit,
            reply::DRAINING => Self::Draining,
            reply::TIMEOUT => Self::Timeout,
            _ => Self::Policy,
        }
    }
}

impl Closing {
    /// That of a conversation.
    #[must_use]
    pub const fn of(cause: &Cause) -> Self {
        match cause {
            Cause::ClientLeft => Self::ClientLeft,
            Cause::AgentExited => Self::AgentExited,
            Cause::AgentLeft => Self::AgentLeft,
            Cause::Stopped => Self::Stopped,
            Cause::Unrecorded => Self::Unrecorded,
            Cause::Violation(_) => Self::Expelled,
        }
    }
}

pub(super) const SIDES: [&str; 2] = ["client", "agent"];

/// Where messages go, by who says them.
pub(super) const DIRECTIONS: [&str; 2] = ["to_agent", "to_client"];

/// How a link to a client stands.
pub(super) const LINKS: [&str; 3] = ["attached", "detached", "draining"];

/// Received, and sent.
pub(super) const FLOWS: [&str; 2] = ["received", "sent"];

/// What became of spans, as `traces::Tally` has it.
pub(super) const SPANS: [&str; 3] = ["exported", "failed", "dropped"];

/// Whether rules of a dialect were at work.
pub(super) const TRANSLATED: [&str; 2] = ["no", "yes"];

pub(super) const KINDS: [&str; 3] = ["request", "notification", "response"];

pub(super) const OUTCOMES: [&str; 4] = ["ok", "error", "cancelled", "proxy_error"];

/// How a request ended.
#[derive(Clone, Copy)]
pub(super) enum Outcome {
    Ok,
    Error,
    Cancelled,
    ProxyError,
}

/// Codes of errors that are told apart: JSON-RPC's, ACP's, ours. 0 stands for none.
pub(super) const CODES: [i64; 18] = [
    0, -32700, -32600, -32601, -32602, -32603, -32800, -32000, -32002, -32050, -32051, -32052,
    -32053, -32054, -32055, -32056, -32057, -32058,
];

/// What is wrong with messages that are refused.
pub(super) const FAULTS: [&str; 6] = [
    "malformed",
    "duplicate_member",
    "not_a_message",
    "bad_header",
    "batch",
    "reused_id",
];

/// The bounds that messages and peers run into.
pub(super) const BOUNDS: [&str; 3] = ["nesting", "message_bytes", "in_flight"];

/// Where a fault is counted: among those of spelling, or of bounds.
pub(super) enum Wrong {
    Fault(usize),
    Bound(usize),
}

impl Wrong {
    pub(super) const BATCH: usize = 4;
    pub(super) const REUSED: usize = 5;
    pub(super) const IN_FLIGHT: usize = 2;

    pub(super) const fn of(fault: &FrameFault) -> Self {
        match fault {
            FrameFault::Malformed { .. } => Self::Fault(0),
            FrameFault::Duplicate { .. } => Self::Fault(1),
            FrameFault::NotAMessage { .. } => Self::Fault(2),
            FrameFault::BadHeader { .. } => Self::Fault(3),
            FrameFault::TooDeep { .. } => Self::Bound(0),
            FrameFault::TooLong { .. } => Self::Bound(1),
        }
    }
}

pub(super) const fn kind(kind: Kind) -> usize {
    match kind {
        Kind::Request => 0,
        Kind::Notification => 1,
        Kind::Result | Kind::Error => 2,
    }
}

/// The place of a code; the last one, past all of them, for those that are not told apart.
pub(super) fn code(code: i64) -> usize {
    let known = CODES.iter().position(|known| *known == code);
    known.unwrap_or(CODES.len())
}

pub(super) fn code_name(place: usize) -> String {
    match CODES.get(place) {
        Some(0) => String::new(),
        Some(code) => code.to_string(),
        None => "other".to_owned(),
    }
}
