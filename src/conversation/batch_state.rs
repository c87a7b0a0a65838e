//! The answers to a batch.

use jsonrpc::{Frame, IdBuf};

/// A batch whose answers are collected.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Requests without an answer.
    pub(super) waiting: Vec<IdBuf>,
    pub(super) answers: Vec<Frame>,
    /// What the answers weigh.
    pub(super) bytes: usize,
}
