//! Events other than a frame being passed on.
//!
//! Everything that the conversation drops, refuses or creates is noted: each note is counted under
//! its name and logged with its text.

use std::time::Duration;

use smallvec::SmallVec;

use dialect::{DialectEvent, FiredRule, MethodName};
use jsonrpc::{Exit, FrameError, IdBuf, Side};

/// An event that is counted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// The agent printed a line that is not JSON. It was not forwarded.
    #[error("the agent printed a line of {bytes} bytes that is not JSON; not forwarded")]
    Stray {
        /// Its length in bytes.
        bytes: usize,
        /// The beginning of it, printable and redacted, for the log only.
        excerpt: Box<str>,
    },
    /// A line was more than its messages; the rest of it was not forwarded.
    #[error("a line of the {from} is not JSON alone; forwarded what is a message in it")]
    Skipped {
        /// The side that sent it.
        from: Side,
    },
    /// An answer was taken out of something else.
    #[error("took an answer of the {from} out of {how}")]
    Salvaged {
        /// The side that sent it.
        from: Side,
        /// Out of what, for users.
        how: &'static str,
    },
    /// A message could not be passed on; its sender, or the side that waited for it, was sent an
    /// error.
    #[error("refused a message from the {from}: {error}")]
    Refused {
        /// The side that sent it.
        from: Side,
        /// What is wrong with it.
        error: FrameError,
    },
    /// A JSON-RPC batch was refused: many agents crash on one.
    #[error("refused a JSON-RPC batch from the {from}")]
    Batch {
        /// The side that sent it.
        from: Side,
    },
    /// An answer that matches no open request was dropped.
    #[error("dropped an answer from the {from} that matches no open request (id {})", .id.as_id())]
    UnknownAnswer {
        /// The side that sent it.
        from: Side,
        /// Its id.
        id: IdBuf,
    },
    /// A request was refused because its id is still in flight.
    #[error("refused a request from the {from}: id {} is still in flight", .id.as_id())]
    ReusedId {
        /// The side that sent it.
        from: Side,
        /// The id.
        id: IdBuf,
    },
    /// A request was refused because too many of that side are open.
    #[error("refused a request from the {from}: too many are open")]
    Overloaded {
        /// The side that sent it.
        from: Side,
    },
    /// An error without an id was passed on.
    #[error("passed on an error without an id from the {from}")]
    ErrorWithoutId {
        /// The side that sent it.
        from: Side,
    },
    /// An answer's id had lost precision as a double, and was restored.
    #[error("restored the id of an answer from the {from}")]
    RestoredId {
        /// The side that sent it.
        from: Side,
    },
    /// A request could not be answered by the side it was for; the relay answered it.
    #[error("answered {method} of the {to} (id {}) with error {code}", .id.as_id())]
    Answered {
        /// The side that sent the request.
        to: Side,
        /// The id.
        id: IdBuf,
        /// The method, as spelled.
        method: String,
        /// The error code sent.
        code: i32,
    },
    /// A message could not be delivered to a side that is gone, and was dropped.
    #[error("dropped a message for the {to}, which has disconnected")]
    Undeliverable {
        /// The side it was for.
        to: Side,
    },
    /// A message was not sent to a side whose relay does not take one of its length; a request got an
    /// error, and an answer became one.
    #[error("did not send {bytes} bytes to the {to}, whose relay takes {limit} at most")]
    TooLong {
        /// The side it was for.
        to: Side,
        /// Its length.
        bytes: usize,
        /// The longest message that the relay there takes.
        limit: usize,
    },
    /// A side has ended its stream, or its link failed.
    #[error("the {side} {how}")]
    Ended {
        /// Which one.
        side: Side,
        /// What happened, for users.
        how: String,
        /// Whether the agent ended without being asked to.
        lost: bool,
    },
    /// The agent's process has ended.
    #[error("the agent ended with {exit}")]
    AgentExited {
        /// How.
        exit: Exit,
    },
    /// The dialect of a side was recognised.
    #[error("the {side} speaks {dialect}, which its {by} shows")]
    Recognised {
        /// Which side.
        side: Side,
        /// The dialect.
        dialect: String,
        /// By what, for users.
        by: String,
    },
    /// Rules changed a message.
    #[error("{method}, translated for the {side} by {}", list(.rules))]
    Translated {
        /// The side whose dialect it is about.
        side: Side,
        /// The message's method, or that of the request it answers.
        method: MethodName,
        /// The rules, in the order in which they were applied.
        rules: SmallVec<[FiredRule; 1]>,
    },
    /// A translator removed something, answered, held, repaired or could not map something, or
    /// found something that no table names.
    #[error("{what} at the {side} ({}): {detail}", .rule.as_ref().unwrap_or(.dialect))]
    Dialect {
        /// The side whose dialect it is about.
        side: Side,
        /// What happened.
        what: DialectEvent,
        /// The dialect that the side is assumed to use.
        dialect: String,
        /// The rule that was applied, as `table/rule`.
        rule: Option<String>,
        /// What it found, for users.
        detail: String,
    },
    /// A message was not passed on because it is not allowed; where a request waits for an answer, an
    /// error was sent.
    #[error("did not pass on {method} of the {from}: {why}")]
    Denied {
        /// The side that called.
        from: Side,
        /// The method.
        method: String,
        /// Why not, for users.
        why: String,
    },
    /// A message was changed on its way between the two machines.
    #[error("changed {method} of the {from}: {what}")]
    Adjusted {
        /// The side that sent it.
        from: Side,
        /// The method, or that of the request it answers.
        method: String,
        /// What was changed, for users.
        what: String,
    },
    /// The client was told that the connection to the agent is lost or restored.
    #[error(
        "told the client that the connection to the agent is {}",
        if *.is_lost { "lost" } else { "restored" }
    )]
    LinkStatus {
        /// Whether it is lost.
        is_lost: bool,
    },
    /// A notification waits for the answer that gives the client the id of its session.
    #[error(
        "held a notification for a session that the client does not know yet, until session/new or \
         session/fork is answered"
    )]
    HeldUpdate,
    /// Such notifications were passed on before that answer.
    #[error("passed on notifications before the answer that names their session: {why}")]
    EarlyUpdate {
        /// Why, for users.
        why: &'static str,
    },
    /// A prompt that the client had cancelled, or a permission of such a turn, was answered in place
    /// of the side that did not.
    #[error(
        "answered a request of the {to} as cancelled (id {}), because the {} did not",
        .id.as_id(), .to.other()
    )]
    Cancelled {
        /// The side that sent the request.
        to: Side,
        /// The id.
        id: IdBuf,
    },
    /// A request has been open for long, and the side that owes the answer has sent nothing.
    #[error(
        "the {side} has not answered {method} and has sent nothing for {} s{}",
        .after.as_secs(), hint(*.side, .method)
    )]
    Silent {
        /// The side that owes the answer.
        side: Side,
        /// The method of the request, as spelled.
        method: String,
        /// For how long.
        after: Duration,
    },
    /// A side that was silent has sent something.
    #[error("the {side} has sent something again, after {} s", .after.as_secs())]
    Heard {
        /// Which one.
        side: Side,
        /// For how long it had sent nothing.
        after: Duration,
    },
    /// A request was ended because the side that owes the answer was silent.
    #[error("ended {method}, because the {side} was silent (--limit {limit})")]
    GaveUp {
        /// The side that owes the answer.
        side: Side,
        /// The method of the request, as spelled.
        method: String,
        /// The limit that says so.
        limit: &'static str,
    },
    /// An answer that the relay had given in place of that side was dropped.
    #[error("dropped a late answer of the {from} (id {}): the relay had answered for it", .id.as_id())]
    LateAnswer {
        /// The side that sent it.
        from: Side,
        /// Its id.
        id: IdBuf,
    },
    /// The client names an MCP server of a kind that the agent does not offer to connect to.
    #[error(
        "the agent does not offer to connect to MCP servers by {kind}, as {name} is; its tools may be \
         missing"
    )]
    McpServer {
        /// Its name.
        name: String,
        /// Its kind: `http` or `sse`.
        kind: &'static str,
    },
    /// The agent has ended, and the client's next request starts it again.
    #[error("there is no agent until the client asks for something; then it is started again")]
    AgentDown,
    /// The agent is started again.
    #[error("starting the agent again (start {attempt} of 3 within 5 minutes)")]
    Restarting {
        /// How many starts there were within that time.
        attempt: usize,
    },
    /// A session is as it was before the agent was started again.
    #[error("the agent is back and has its session")]
    SessionRestored,
    /// The agent was not started again, or has not brought back a session.
    #[error("the agent is not back as it was: {why}")]
    NotRestored {
        /// Why not, for users.
        why: String,
    },
    /// An update of a session that was brought back was dropped, because the client has it.
    #[error("dropped an update of a session that is brought back, which the client has")]
    RepeatedUpdate,
    /// The agent is being stopped, by this signal.
    #[error("the agent did not end by itself; sending {signal}")]
    Stopping {
        /// `SIGTERM` or `SIGKILL`.
        signal: &'static str,
    },
    /// The conversation had to be recorded and was not, or not to its end.
    #[error("not recorded to its end: {why}")]
    Unrecorded {
        /// Why, for users.
        why: String,
    },
}

impl Note {
    /// The name it is counted under; one of [`Note::NAMES`].
    #[must_use]
    pub const fn name(&self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// All names, in the order of [`Note::index`].
    pub const NAMES: [&'static str; 36] = [
        "stray_line",
        "refused",
        "batch",
        "unknown_answer",
        "reused_id",
        "overloaded",
        "complaint",
        "restored_id",
        "answered_for_peer",
        "undeliverable",
        "ended",
        "agent_exited",
        "stopping",
        "recognised",
        "translated",
        "dialect",
        "unrecorded",
        "denied",
        "adjusted",
        "link_status",
        "held_update",
        "early_update",
        "skipped",
        "salvaged",
        "too_long",
        "cancelled_for_peer",
        "late_answer",
        "silent",
        "heard",
        "gave_up",
        "agent_down",
        "restarting",
        "session_restored",
        "not_restored",
        "repeated_update",
        "mcp_server",
    ];

    /// The index of its name in [`Note::NAMES`].
    #[must_use]
    pub const fn index(&self) -> usize {
        match self {
            Self::Stray { .. } => 0,
            Self::Refused { .. } => 1,
            Self::Batch { .. } => 2,
            Self::UnknownAnswer { .. } => 3,
            Self::ReusedId { .. } => 4,
            Self::Overloaded { .. } => 5,
            Self::ErrorWithoutId { .. } => 6,
            Self::RestoredId { .. } => 7,
            Self::Answered { .. } => 8,
            Self::Undeliverable { .. } => 9,
            Self::Ended { .. } => 10,
            Self::AgentExited { .. } => 11,
            Self::Stopping { .. } => 12,
            Self::Recognised { .. } => 13,
            Self::Translated { .. } => 14,
            Self::Dialect { .. } => 15,
            Self::Unrecorded { .. } => 16,
            Self::Denied { .. } => 17,
            Self::Adjusted { .. } => 18,
            Self::LinkStatus { .. } => 19,
            Self::HeldUpdate => 20,
            Self::EarlyUpdate { .. } => 21,
            Self::Skipped { .. } => 22,
            Self::Salvaged { .. } => 23,
            Self::TooLong { .. } => 24,
            Self::Cancelled { .. } => 25,
            Self::LateAnswer { .. } => 26,
            Self::Silent { .. } => 27,
            Self::Heard { .. } => 28,
            Self::GaveUp { .. } => 29,
            Self::AgentDown => 30,
            Self::Restarting { .. } => 31,
            Self::SessionRestored => 32,
            Self::NotRestored { .. } => 33,
            Self::RepeatedUpdate => 34,
            Self::McpServer { .. } => 35,
        }
    }
}

/// Why a side may be silent.
fn hint(side: Side, method: &str) -> &'static str {
    match (side, method) {
        (Side::Client, "session/request_permission") => {
            "; the question may be hidden in the editor"
        }
        (Side::Client, _) => "",
        (_, "initialize") => "; it may be installing itself, or not be in its ACP mode",
        (_, "session/prompt") => {
            "; the service of its model may not answer, and cancelling ends the turn"
        }
        (_, "session/new" | "session/load" | "session/resume" | "session/fork") => {
            "; an MCP server may not start, or its service may not answer"
        }
        _ => "",
    }
}

fn list(rules: &[FiredRule]) -> String {
    let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
    rules.join(", ")
}
