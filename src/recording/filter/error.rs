//! An error in a filter, which points at the position in the text.

use std::fmt;
use std::ops::Range;

/// An error in a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    text: String,
    /// The position, in bytes of the text.
    pub at: Range<usize>,
    /// What is wrong there, and what is expected.
    pub reason: String,
}

impl FilterError {
    pub(super) fn new(text: &str, at: Range<usize>, reason: impl Into<String>) -> Self {
        Self {
            text: text.to_owned(),
            at,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for FilterError {
    /// Three lines: the problem, the text, and marks under the position.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Control characters would shift the marks.
        let plain = |text: &str| -> String {
            let plain = |c: char| if c.is_control() { ' ' } else { c };
            text.chars().map(plain).collect()
        };
        let before = self.text[..self.at.start].chars().count();
        let marked = self.text[self.at.clone()].chars().count().max(1);
        let (reason, text) = (&self.reason, plain(&self.text));
        write!(f, "{reason}\n  {text}\n  {:before$}{:^<marked$}", "", "")
    }
}

impl std::error::Error for FilterError {}
