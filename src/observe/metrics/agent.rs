//! The metrics of one agent, by its name in the configuration.

use std::sync::Arc;

use super::catalogue::AgentSeries;
use super::labels::SessionStart;
use super::registry::Registry;
use conversation::{TokenKind, Tokens, ToolStatus};
use jsonrpc::Exit;

/// The metrics of one agent.
#[derive(Debug)]
pub struct AgentMetrics {
    name: String,
    pub(super) series: AgentSeries,
}

impl AgentMetrics {
    pub(super) fn new(registry: &Arc<Registry>, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            series: AgentSeries::new(registry, Some(name)),
        }
    }

    /// Its name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starting it or connecting to it succeeded or failed.
    pub fn started(&self, done: bool) {
        self.series.starts.count([usize::from(!done)]);
    }

    /// It wrote so many bytes to stderr.
    pub fn stderr(&self, bytes: usize) {
        self.series.stderr.at([]).increment(bytes as u64);
    }

    pub(super) fn exited(&self, exit: Exit, killed: bool) {
        let how = match exit {
            _ if killed => 3,
            Exit::Code(0) => 0,
            Exit::Code(_) => 1,
            Exit::Signal(_) => 2,
        };
        self.series.exits.count([how]);
    }

    pub(super) fn session_opened(&self, how: SessionStart) {
        self.series.sessions.count([how as usize]);
    }

    pub(super) fn tokens_used(&self, tokens: &Tokens) {
        for kind in TokenKind::ALL {
            let counter = self.series.tokens.at([*kind as usize]);
            counter.increment(tokens.of(*kind));
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
