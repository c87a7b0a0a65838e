//! The metrics of one agent, by its name in the configuration.

use std::sync::Arc;

use metrics::Counter;

use super::buckets::Buckets;
use super::registry::{Family, Registry};
use crate::conversation::{StopReason, TokenKind, Tokens, ToolKind, ToolStatus};
use crate::jsonrpc::Exit;

/// How a session was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `session/new`.
    New,
    /// `session/load`.
    Load,
    /// `session/resume`.
    Resume,
}

const HOW: &[&str] = &["new", "load", "resume"];
const EXITS: &[&str] = &["clean", "error", "signal", "killed"];
const STARTS: &[&str] = &["ok", "failed"];
const RESULTS: &[&str] = &["completed", "failed"];
const TOKENS: &[&str] = &[
    TokenKind::Input.name(),
    TokenKind::Output.name(),
    TokenKind::Thought.name(),
    TokenKind::CachedRead.name(),
    TokenKind::CachedWrite.name(),
];

/// The metrics of one agent.
#[derive(Debug)]
pub struct AgentMetrics {
    name: String,
    starts: Family<Counter, 1>,
    exits: Family<Counter, 1>,
    stderr: Family<Counter, 0>,
    pub(super) noise: Family<Counter, 0>,
    sessions: Family<Counter, 1>,
    pub(super) tool_calls: Family<Counter, 1>,
    pub(super) tool_results: Family<Counter, 1>,
    tokens: Family<Counter, 1>,
    pub(super) start: Family<Buckets, 0>,
    pub(super) first_update: Family<Buckets, 0>,
    pub(super) turns: Family<Buckets, 1>,
    pub(super) gaps: Family<Buckets, 0>,
}

impl AgentMetrics {
    pub(super) fn new(registry: &Arc<Registry>, name: &str) -> Self {
        let counter = |metric, values| Family::of_agent(registry, metric, name, [values]);
        let single = |metric| Family::of_agent(registry, metric, name, []);
        let histogram = |metric| Family::of_agent(registry, metric, name, []);
        let turns = "turn_duration_seconds";
        Self {
            name: name.to_owned(),
            starts: counter("agent_spawns_total", STARTS),
            exits: counter("agent_exits_total", EXITS),
            stderr: single("agent_stderr_bytes_total"),
            noise: single("agent_stdout_noise_lines_total"),
            sessions: counter("sessions_total", HOW),
            tool_calls: counter("tool_calls_total", ToolKind::NAMES),
            tool_results: counter("tool_call_results_total", RESULTS),
            tokens: counter("tokens_total", TOKENS),
            start: histogram("agent_start_seconds"),
            first_update: histogram("time_to_first_update_seconds"),
            turns: Family::of_agent(registry, turns, name, [StopReason::NAMES]),
            gaps: histogram("update_gap_seconds"),
        }
    }

    /// Its name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starting it or connecting to it succeeded or failed.
    pub fn started(&self, done: bool) {
        self.starts.at([usize::from(!done)]).increment(1);
    }

    /// It wrote so many bytes to stderr.
    pub fn stderr(&self, bytes: usize) {
        self.stderr.at([]).increment(bytes as u64);
    }

    pub(super) fn exited(&self, exit: Exit, killed: bool) {
        let how = match exit {
            _ if killed => 3,
            Exit::Code(0) => 0,
            Exit::Code(_) => 1,
            Exit::Signal(_) => 2,
        };
        self.exits.at([how]).increment(1);
    }

    pub(super) fn session_opened(&self, how: How) {
        self.sessions.at([how as usize]).increment(1);
    }

    pub(super) fn tokens_used(&self, tokens: &Tokens) {
        for kind in TokenKind::ALL {
            self.tokens.at([kind as usize]).increment(tokens.of(kind));
        }
    }

    /// The index of a final status among the results of tool calls.
    pub(super) const fn result(status: ToolStatus) -> Option<usize> {
        match status {
            ToolStatus::Completed => Some(0),
            ToolStatus::Failed => Some(1),
            ToolStatus::Pending | ToolStatus::InProgress | ToolStatus::Other => None,
        }
    }
}
