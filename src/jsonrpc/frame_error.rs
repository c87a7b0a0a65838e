//! Errors in a message that make it impossible to pass on.
//!
//! A [`FrameError`] describes what is wrong and keeps the id and the role that were read, so that
//! the side that waits for the message can be answered (see `reply`).

use super::IdBuf;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    /// Not JSON, or not UTF-8.
    #[error("not valid JSON: expected {expected}")]
    Malformed {
        /// What was expected, as a phrase: `a value`, `valid UTF-8`.
        expected: &'static str,
    },
    /// Containers nested deeper than the limit.
    #[error("nested deeper than {limit} levels")]
    TooDeep {
        /// The limit, in levels.
        limit: usize,
    },
    /// Longer than the limit; the rest was discarded unread.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// A member of the envelope occurs twice, and two readers could disagree on which one counts.
    #[error("member \"{member}\" occurs twice")]
    Duplicate {
        /// The member's name.
        member: &'static str,
    },
    /// JSON, but not a JSON-RPC message.
    #[error("not a JSON-RPC message: {why}")]
    NotAMessage {
        /// What is wrong with it, as a phrase.
        why: &'static str,
    },
    /// A header block without a usable length; the stream cannot be followed any more.
    #[error("bad header: {why}")]
    BadHeader {
        /// What is wrong with it, as a phrase.
        why: &'static str,
    },
}

/// Which half of an exchange a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It carries a method.
    Call,
    /// It carries a result or an error.
    Answer,
}

/// A message that cannot be passed on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} (at byte {at})")]
pub struct FrameError {
    /// What is wrong.
    pub fault: FrameFault,
    /// The byte of the message at which it was detected.
    pub at: usize,
    /// The id, as far as the message was read; absent when none was seen.
    pub id: IdBuf,
    /// What the message was going to be, as far as it was read.
    pub role: Option<Role>,
    /// Whether the message begins like a JSON object or array; other text is a stray line.
    pub json_like: bool,
}
