//! Redaction rules of the user: JSON Pointers (RFC 6901) in which `*` matches any one step.

use std::fmt;
use std::str::FromStr;

/// A place in messages, such as `/params/_meta/acme/*`, including everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointerPattern(Vec<String>);

impl PointerPattern {
    /// Whether `path` leads to this place.
    pub(in crate::recording) fn matches<'a>(
        &self,
        path: impl ExactSizeIterator<Item = &'a str>,
    ) -> bool {
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
        let steps = text
            .strip_prefix('/')
            .ok_or("a JSON Pointer begins with `/`, such as /params/_meta/*")?;
        steps
            .split('/')
            .map(|step| {
                let escapes = step.matches('~').count();
                let known = step.matches("~0").count() + step.matches("~1").count();
                if escapes > known {
                    return Err("in a JSON Pointer `~` is allowed only in `~0` and `~1`".to_owned());
                }
                Ok(step.replace("~1", "/").replace("~0", "~"))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl fmt::Display for PointerPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.0 {
            write!(f, "/{}", escape_step(step))?;
        }
        Ok(())
    }
}

/// A step in the escaped form of pointers.
pub(super) fn escape_step(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}
