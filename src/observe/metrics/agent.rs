//! The figures of one agent, by the name it has in the configuration.
//!
//! Not here: its processes (see `transport::process`).

use std::time::Duration;

use super::cells::{Count, Histogram, Table};
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

pub(super) const HOW: [&str; 3] = ["new", "load", "resume"];
pub(super) const EXITS: [&str; 4] = ["clean", "error", "signal", "killed"];
pub(super) const STARTS: [&str; 2] = ["ok", "failed"];

/// Bounds of how long turns take, in seconds.
const TURN: &[f64] = &[
    0.5, 1., 2.5, 5., 10., 30., 60., 120., 300., 600., 1800., 3600., 7200.,
];

/// Bounds of how long a person waits for the first sign of life, in seconds.
const FIRST: &[f64] = &[0.05, 0.1, 0.25, 0.5, 1., 2.5, 5., 10., 30., 60., 120.];

/// Bounds of how long agents take to start, in seconds.
const START: &[f64] = &[0.01, 0.05, 0.1, 0.25, 0.5, 1., 2.5, 5., 10., 30., 60.];

/// Bounds of how long nothing comes between two updates of a turn, in seconds.
pub(super) const GAP: &[f64] = &[
    0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1., 2.5, 5., 10., 30., 60., 120., 300.,
];

/// The figures of one agent.
#[derive(Debug)]
pub struct AgentFigures {
    pub(super) name: String,
    pub(super) running: Count,
    pub(super) starts: [Count; STARTS.len()],
    pub(super) exits: [Count; EXITS.len()],
    pub(super) start: Histogram,
    pub(super) stderr: Count,
    pub(super) noise: Count,
    pub(super) sessions: [Count; HOW.len()],
    pub(super) tool_calls: Table<Count, 1>,
    pub(super) tool_results: [Count; 2],
    pub(super) turns: Vec<Histogram>,
    pub(super) first_update: Histogram,
    /// Of conversations that are over.
    pub(super) gaps: Histogram,
    pub(super) tokens: [Count; TokenKind::ALL.len()],
}

impl AgentFigures {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            running: Count::default(),
            starts: Default::default(),
            exits: Default::default(),
            start: Histogram::new(START),
            stderr: Count::default(),
            noise: Count::default(),
            sessions: Default::default(),
            tool_calls: Table::new([ToolKind::ALL.len()]),
            tool_results: Default::default(),
            turns: StopReason::ALL
                .iter()
                .map(|_| Histogram::new(TURN))
                .collect(),
            first_update: Histogram::new(FIRST),
            gaps: Histogram::new(GAP),
            tokens: Default::default(),
        }
    }

    /// What it is called in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// It was started or connected to, or that failed.
    pub fn started(&self, done: bool) {
        self.starts[usize::from(!done)].add(1);
    }

    /// It wrote so many bytes to stderr.
    pub fn complained(&self, bytes: usize) {
        self.stderr.add(bytes as u64);
    }

    pub(super) fn exited(&self, exit: Exit, killed: bool) {
        let how = match exit {
            _ if killed => 3,
            Exit::Code(0) => 0,
            Exit::Code(_) => 1,
            Exit::Signal(_) => 2,
        };
        self.exits[how].add(1);
    }

    pub(super) fn opened(&self, how: How) {
        self.sessions[how as usize].add(1);
    }

    pub(super) fn called(&self, kind: ToolKind) {
        self.tool_calls.at([kind as usize]).add(1);
    }

    pub(super) fn became(&self, status: ToolStatus) {
        match status {
            ToolStatus::Completed => self.tool_results[0].add(1),
            ToolStatus::Failed => self.tool_results[1].add(1),
            ToolStatus::Pending | ToolStatus::InProgress | ToolStatus::Other => {}
        }
    }

    pub(super) fn spent(&self, tokens: &Tokens) {
        for (kind, count) in TokenKind::ALL.into_iter().zip(&self.tokens) {
            count.add(tokens.of(kind));
        }
    }

    pub(super) fn turned(&self, reason: StopReason, took: Duration) {
        self.turns[reason as usize].observe(took);
    }
}
