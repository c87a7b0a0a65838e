//! Redaction rules of the user: JSON Pointers (RFC 6901) in which `*` matches any one step.

use std::fmt;
use std::str::FromStr;

use jsonptr::{Pointer, Token};

/// A place in messages, such as `/params/_meta/acme/*`, including everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointerPattern(Vec<String>);

impl PointerPattern {
    /// The steps of the path, decoded.
    pub(in crate::recording) fn steps(&self) -> &[String] {
        &self.0
    }

    /// Whether `path` leads to this place.
    pub(super) fn matches<'a>(&self, path: impl ExactSizeIterator<Item = &'a str>) -> bool {
        path.len() == self.0.len()
            && self
                .0
                .iter()
                .zip(path)
                .all(|(own, step)| own == "*" || own == step)
    }
}

impl FromStr for PointerPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.starts_with('/') {
            return Err("a JSON Pointer begins with `/`, such as /params/_meta/*".to_owned());
        }
        let pointer = Pointer::parse(text)
            .map_err(|_| "in a JSON Pointer `~` is allowed only in `~0` and `~1`".to_owned())?;
        let steps = pointer.tokens().map(|step| step.decoded().into_owned());
        Ok(Self(steps.collect()))
    }
}

impl fmt::Display for PointerPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|step| write!(f, "/{}", Token::new(step).encoded()))
    }
}
