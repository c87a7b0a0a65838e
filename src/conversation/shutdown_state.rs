//! How far the end of a conversation has come, and why it ends.

use std::time::Instant;

use jsonrpc::{CloseReason, Exit, Side};

/// Why a conversation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The client ended its stream or was lost.
    ClientLeft,
    /// The agent's process ended by itself.
    AgentExited,
    /// The agent's link ended or failed.
    AgentLeft,
    /// The relay was asked to stop.
    Stopped,
    /// The conversation has to be recorded and could not be any more.
    Unrecorded,
    /// A panic of the relay.
    Panicked,
    /// A side broke the rules too often, or in a way that cannot be followed any more.
    Violation(Side),
}

/// The state of a conversation's shutdown.
#[derive(Debug, Default)]
pub(super) struct Shutdown {
    /// Which sides send nothing more.
    pub(super) silent: [bool; 2],
    /// Which sides can receive nothing more.
    pub(super) unreachable: [bool; 2],
    pub(super) step: Step,
    pub(super) deadline: Option<Instant>,
    /// When the time for turns is over, once the relay was asked to stop.
    pub(super) drained: Option<Instant>,
    pub(super) cause: Option<Cause>,
    /// Why the agent was rejected, stopped or lost, for the errors that answer its open requests.
    pub(super) agent_error: Option<String>,
    /// Whether the agent was lost before a shutdown began.
    pub(super) lost: bool,
    /// The relay was asked to stop, and ended its stream to the agent for that.
    pub(super) stop_closed: bool,
    /// It has also signalled the agent, so that the agent's exit may be the relay's doing.
    pub(super) signalled: bool,
    pub(super) exit: Option<Exit>,
    pub(super) stderr_tail: String,
}

/// How far the shutdown has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// Not begun.
    #[default]
    None,
    /// The relay was asked to stop: turns may end, nothing new begins.
    Draining,
    /// The client has ended its stream; the agent may finish its answers first, because its link
    /// cannot be half-closed.
    Finishing,
    /// The relay's stream to the agent is ended.
    Closed,
    /// SIGTERM was sent.
    Terminated,
    /// SIGKILL was sent.
    Killed,
    /// The agent has exited; its pipes may still deliver.
    Exited,
    /// Everything was sent.
    Over,
}

impl Shutdown {
    /// Whether a side may still send.
    pub(super) fn sends(&self, side: Side) -> bool {
        !self.silent[side as usize]
    }

    /// Whether a side can still receive.
    pub(super) fn receives(&self, side: Side) -> bool {
        !self.unreachable[side as usize]
    }

    /// Whether it was asked to stop, for any reason.
    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.cause, Some(Cause::Stopped | Cause::Unrecorded))
    }

    /// The reason a side is closed with when the relay was asked to stop.
    pub(super) fn stop_reason(&self) -> CloseReason {
        if self.cause == Some(Cause::Unrecorded) {
            CloseReason::Unrecorded
        } else {
            CloseReason::Shutdown
        }
    }

    /// Advances to `step`, unless that or a later one is reached.
    pub(super) fn advance(&mut self, step: Step, deadline: Option<Instant>) {
        if self.step < step {
            self.step = step;
            self.deadline = deadline;
        }
    }
}
