//! The names of the members of a JSON-RPC message.

use super::key::Key;

/// The names of the members that make an envelope, in the order of [`Member`].
pub const MEMBER_NAMES: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// The members that make an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
}

impl Member {
    #[inline]
    pub(super) fn of(key: Key<'_>) -> Option<Self> {
        match &*key.name() {
            b"jsonrpc" => Some(Self::Jsonrpc),
            b"id" => Some(Self::Id),
            b"method" => Some(Self::Method),
            b"params" => Some(Self::Params),
            b"result" => Some(Self::Result),
            b"error" => Some(Self::Error),
            _ => None,
        }
    }

    /// The member whose name and colon `text` begins with, when they are spelled in the usual way,
    /// and their length. Comparing is quicker than searching for the closing quote.
    #[inline(always)]
    pub(super) fn next(text: &[u8]) -> Option<(Self, usize)> {
        match text.get(1)? {
            b'm' if text.starts_with(b"\"method\":") => Some((Self::Method, 9)),
            b'p' if text.starts_with(b"\"params\":") => Some((Self::Params, 9)),
            b'i' if text.starts_with(b"\"id\":") => Some((Self::Id, 5)),
            b'r' if text.starts_with(b"\"result\":") => Some((Self::Result, 9)),
            b'e' if text.starts_with(b"\"error\":") => Some((Self::Error, 8)),
            b'j' if text.starts_with(b"\"jsonrpc\":") => Some((Self::Jsonrpc, 10)),
            _ => None,
        }
    }

    pub(super) const fn bit(self) -> u8 {
        1 << self as u8
    }
}
