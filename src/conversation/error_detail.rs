//! The errors with which the relay answers a request itself.

use crate::jsonrpc::reply::{self, Delivered, ErrorSource, Reason};
use crate::jsonrpc::{Exit, FrameError, Side};

/// How much of a line printed by an agent is quoted in a message, in characters.
const MAX_CHARS: usize = 200;

/// The client has disconnected and cannot answer.
pub(super) fn client_left(delivered: Delivered) -> Reason {
    Reason::new(reply::PEER_LOST, "the client has left and cannot answer")
        .at(ErrorSource::Client)
        .delivered(delivered)
}

/// The link to an agent that we did not start has ended. `why` is appended to the message, such as
/// `: it …`.
pub(super) fn agent_lost(why: &str, delivered: Delivered) -> Reason {
    let message = format!("the connection to the agent has ended{why}");
    Reason::new(reply::PEER_LOST, message)
        .at(ErrorSource::Agent)
        .delivered(delivered)
}

/// The agent's process has ended.
pub(super) fn agent_exited(exit: Option<Exit>, stderr_tail: &str, delivered: Delivered) -> Reason {
    let how = exit.map_or_else(
        || "has closed its output".to_owned(),
        |exit| format!("ended with {exit}"),
    );
    agent_gone(format!("the agent {how}"), exit, stderr_tail, delivered)
}

/// The relay stopped the agent because of what it did.
pub(super) fn agent_stopped(
    cause: &str,
    exit: Option<Exit>,
    stderr_tail: &str,
    delivered: Delivered,
) -> Reason {
    agent_gone(
        format!("the agent was stopped: it {cause}"),
        exit,
        stderr_tail,
        delivered,
    )
}

/// Adds what the agent has printed on stdout instead of messages.
pub(super) fn add_stdout(reason: &mut Reason, printed: Option<String>) {
    let Some(printed) = printed else { return };
    let line = printed.lines().next_back().unwrap_or_default();
    let shown: String = line.chars().take(MAX_CHARS).collect();
    let cut = if shown.len() < line.len() { "…" } else { "" };
    reason.message = format!("{}; it printed: {shown}{cut}", reason.message).into();
    reason.stdout_tail = Some(printed.into());
}

/// The relay was asked to stop, and did not wait for this answer any longer.
pub(super) fn stopped(delivered: Delivered) -> Reason {
    let message = "the relay was asked to stop and has ended the agent";
    Reason {
        retryable: delivered == Delivered::No,
        ..Reason::new(reply::DRAINING, message).delivered(delivered)
    }
}

/// Too many requests of one side are open.
pub(super) fn overloaded(limit: usize) -> Reason {
    let message = format!("too many requests are open (the limit is {limit})");
    Reason::new(reply::OVERLOADED, message).retryable()
}

/// The answer was received, but cannot be forwarded.
pub(super) fn unusable_answer(from: Side, error: &FrameError) -> Reason {
    let source = match from {
        Side::Client => ErrorSource::Client,
        Side::Agent => ErrorSource::Agent,
    };
    Reason {
        message: format!("the answer of the {from} cannot be passed on: {error}").into(),
        source,
        delivered: Delivered::Yes,
        ..Reason::of_fault(&error.fault)
    }
}

fn agent_gone(
    message: String,
    exit: Option<Exit>,
    stderr_tail: &str,
    delivered: Delivered,
) -> Reason {
    Reason {
        source: ErrorSource::Agent,
        delivered,
        exit,
        stderr_tail: (!stderr_tail.is_empty()).then(|| stderr_tail.into()),
        ..Reason::new(reply::AGENT_EXITED, message)
    }
}
