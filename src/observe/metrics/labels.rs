//! The values of labels that do not depend on what peers send: closed lists.
//!
//! Those of methods, stop reasons and the like are in `conversation`.

use conversation::Cause;
use jsonrpc::{FrameFault, Kind, names};
use link::Attach;

names! {
    /// The transport of a connection.
    Transport {
        Stdio = "stdio",
        Process = "process",
        Tcp = "tcp",
        Unix = "unix",
        Ssh = "ssh",
        WebSocket = "ws",
        Http = "http",
        Elephant = "elephant",
        AgentConnect = "agent_connect",
        Replay = "replay",
        Other = "other",
    }
}

names! {
    /// What ended a connection.
    Closing {
        ClientLeft = "client_left",
        AgentExited = "agent_exited",
        AgentLeft = "agent_left",
        Stopped = "stopped",
        Unrecorded = "unrecorded",
        Panicked = "panicked",
        Expelled = "expelled",
    }
}

names! {
    /// The outcome of a recording.
    RecordingResult {
        Begun = "begun",
        Finished = "finished",
        Failed = "failed",
    }
}

names! {
    /// How a session was opened.
    SessionStart {
        New = "new",
        Load = "load",
        Resume = "resume",
    }
}

names! {
    /// The outcome of reading the configuration file again.
    ReloadOutcome {
        Taken = "ok",
        Refused = "error",
    }
}

names! {
    /// Why the admin listener refused a request.
    AdminRefusal {
        Page = "page",
        Recordings = "recordings",
    }
}

names! {
    /// What the policy between two machines did to a message.
    PolicyEffect {
        Denied = "denied",
        Adjusted = "adjusted",
    }
}

impl Transport {
    /// The transport of an endpoint with this scheme.
    #[must_use]
    pub fn of_scheme(scheme: &str) -> Self {
        match scheme {
            "stdio" => Self::Stdio,
            "exec" => Self::Process,
            "tcp" => Self::Tcp,
            "unix" => Self::Unix,
            "ssh" => Self::Ssh,
            "ws" | "wss" => Self::WebSocket,
            "http" | "https" => Self::Http,
            "elephant+http" | "elephant+https" => Self::Elephant,
            "agent-connect+http" | "agent-connect+https" => Self::AgentConnect,
            "replay" => Self::Replay,
            _ => Self::Other,
        }
    }
}

impl Closing {
    /// The value for a conversation that ended for this cause.
    #[must_use]
    pub const fn of(cause: &Cause) -> Self {
        match cause {
            Cause::ClientLeft => Self::ClientLeft,
            Cause::AgentExited => Self::AgentExited,
            Cause::AgentLeft => Self::AgentLeft,
            Cause::Stopped => Self::Stopped,
            Cause::Unrecorded => Self::Unrecorded,
            Cause::Panicked => Self::Panicked,
            Cause::Violation(_) => Self::Expelled,
        }
    }
}

/// Outcomes of authentications.
pub(super) const AUTHENTICATED: &[&str] = &["refused", "ok"];

pub(super) const SIDES: &[&str] = &["client", "agent"];

/// The direction of messages, by the side that sends them.
pub(super) const DIRECTIONS: &[&str] = &["to_agent", "to_client"];

/// Whether a resumable link was attached, or a client of `--on-disconnect detach`.
pub(super) const KEPT: &[&str] = &["link", "detach"];

/// What became of connections that were opened to carry a link; the refusals in the order of
/// [`RefusalCode`](link::RefusalCode).
pub(super) const ATTACHED: &[&str] = &[
    "new",
    "resumed",
    "refused_auth",
    "refused_unknown_link",
    "refused_epoch_changed",
    "refused_gap",
    "refused_busy",
    "refused_version",
    "refused_draining",
    "refused_limit",
    "refused_other",
];

/// The index of an outcome in [`ATTACHED`].
pub(super) const fn attached(how: Attach) -> usize {
    match how {
        Attach::New => 0,
        Attach::Resumed(_) => 1,
        Attach::Refused(code) => 2 + code as usize,
    }
}

/// States of links.
pub(super) const LINKS: &[&str] = &["attached", "detached", "draining"];

/// Whether bytes were received or sent.
pub(super) const FLOWS: &[&str] = &["received", "sent"];

/// Outcomes of spans, as `traces::ExportStats` has them.
pub(super) const SPANS: &[&str] = &["exported", "failed", "dropped"];

/// Whether rules of a dialect were applied.
pub(super) const TRANSLATED: &[&str] = &["no", "yes"];

pub(super) const KINDS: &[&str] = &["request", "notification", "response"];

/// The index of requests in [`KINDS`].
pub(super) const REQUEST: usize = 0;

pub(super) const OUTCOMES: &[&str] = &["ok", "error", "cancelled", "proxy_error"];

/// How a request ended, in the order of [`OUTCOMES`].
#[derive(Clone, Copy)]
pub(super) enum Outcome {
    Ok,
    Error,
    Cancelled,
    ProxyError,
}

pub(super) const EXITS: &[&str] = &["clean", "error", "signal", "killed"];

pub(super) const STARTS: &[&str] = &["ok", "failed"];

pub(super) const RESULTS: &[&str] = &["completed", "failed"];

/// Error codes that have a value of their own: JSON-RPC's, ACP's, ours. The first stands for none,
/// the last for all others.
pub(super) const CODES: &[&str] = &[
    "", "-32700", "-32600", "-32601", "-32602", "-32603", "-32800", "-32000", "-32002", "-32050",
    "-32051", "-32052", "-32053", "-32054", "-32055", "-32056", "-32057", "-32058", "other",
];

/// The index of a code in [`CODES`]; 0 stands for none.
pub(super) fn code(code: i64) -> usize {
    if code == 0 {
        return 0;
    }
    let known = CODES.iter().position(|known| known.parse() == Ok(code));
    known.unwrap_or(CODES.len() - 1)
}

/// Faults of messages that are refused.
pub(super) const FAULTS: &[&str] = &[
    "malformed",
    "duplicate_member",
    "not_a_message",
    "bad_header",
    "batch",
    "reused_id",
];

pub(super) const BATCH: usize = 4;
pub(super) const REUSED_ID: usize = 5;

/// Limits on messages and peers.
pub(super) const LIMITS: &[&str] = &["nesting", "message_bytes", "in_flight"];

pub(super) const IN_FLIGHT: usize = 2;

/// The index of a fault in [`FAULTS`], or the index of a limit in [`LIMITS`].
pub(super) const fn fault(fault: &FrameFault) -> Result<usize, usize> {
    match fault {
        FrameFault::Malformed { .. } => Ok(0),
        FrameFault::Duplicate { .. } => Ok(1),
        FrameFault::NotAMessage { .. } => Ok(2),
        FrameFault::BadHeader { .. } => Ok(3),
        FrameFault::TooDeep { .. } => Err(0),
        FrameFault::TooLong { .. } => Err(1),
    }
}

/// The index of a kind in [`KINDS`].
pub(super) const fn kind(kind: Kind) -> usize {
    match kind {
        Kind::Request => REQUEST,
        Kind::Notification => 1,
        Kind::Result | Kind::Error => 2,
    }
}
