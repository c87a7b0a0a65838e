//! Patterns with `*` for any text.

/// A pattern; letters match ignoring case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glob {
    /// The texts between the stars, in lower case.
    parts: Vec<String>,
}

impl Glob {
    pub(super) fn new(pattern: &str) -> Self {
        let parts = pattern
            .to_lowercase()
            .split('*')
            .map(str::to_owned)
            .collect();
        Self { parts }
    }

    /// Whether a text begins with the pattern; used for ids, which are usually abbreviated.
    pub(super) fn matches_prefix(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.strip(&text).is_some()
    }

    /// Whether the pattern occurs anywhere in the text.
    pub(super) fn matches_within(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let mut rest = text.as_str();
        self.parts
            .iter()
            .all(|part| match rest.find(part.as_str()) {
                Some(at) => {
                    rest = &rest[at + part.len()..];
                    true
                }
                None => false,
            })
    }

    /// Whether the whole text matches the pattern.
    pub(super) fn matches(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        match self.parts.as_slice() {
            [only] => *only == text,
            [.., last] => {
                // The last part has to be at the end, the others before it.
                text.len() >= self.parts.iter().map(String::len).sum()
                    && text.ends_with(last.as_str())
                    && Self {
                        parts: self.parts[..self.parts.len() - 1].to_vec(),
                    }
                    .strip(&text[..text.len() - last.len()])
                    .is_some()
            }
            [] => false,
        }
    }

    /// The rest of the text after the pattern at its beginning.
    fn strip<'a>(&self, text: &'a str) -> Option<&'a str> {
        let (first, others) = self.parts.split_first()?;
        let mut rest = text.strip_prefix(first.as_str())?;
        for part in others {
            let at = rest.find(part.as_str())?;
            rest = &rest[at + part.len()..];
        }
        Some(rest)
    }
}
