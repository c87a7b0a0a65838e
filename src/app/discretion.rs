//! What we say ourselves, on stderr and in errors of our own, is said without secrets.
//!
//! Agents print keys when they fail, people type them into endpoints, and logs are passed around as
//! recordings are. So the same rules about shapes hold for both, under a key of this process. Not
//! here: the rules (see `recording::redact`). What is forwarded is nobody's business here.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::record::random;
use crate::recording::redact::{Mode, Redactor};

/// Without random numbers its marks could be told by trying, but not the secrets.
static REDACTOR: LazyLock<Redactor> =
    LazyLock::new(|| Redactor::new(Mode::Default, Vec::new(), random().unwrap_or_default()));

/// A text of ours without the secrets that were quoted in it.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    REDACTOR.remark(text)
}

/// The same for a line on its way out.
pub(super) fn clean_line(line: Vec<u8>) -> Vec<u8> {
    REDACTOR.text(&line).unwrap_or(line)
}
