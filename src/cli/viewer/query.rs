//! The query of a request from the page.

use std::str::FromStr;

/// The parameters of a query, decoded.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads `a=1&b=x%20y`.
    pub(super) fn new(text: &str) -> Self {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        Self(
            pairs
                .map(|(name, value)| (decoded(name), decoded(value)))
                .collect(),
        )
    }

    pub(super) fn text(&self, name: &str) -> &str {
        let named = |(known, _): &&(String, String)| known == name;
        self.0.iter().find(named).map_or("", |(_, value)| value)
    }

    pub(super) fn number<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name).parse().ok()
    }
}

/// Decodes the escapes of a URL; an invalid one is not changed.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        let escaped = after
            .get(..2)
            .filter(|_| *byte == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(escaped) => {
                bytes.push(escaped);
                rest = &after[2..];
            }
            None if *byte == b'+' => bytes.push(b' '),
            None => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_decoded() {
        let query = Query::new("q=a%20b+c%2fd%zz%&from=12&bad=x&q=second");
        assert_eq!(query.text("q"), "a b c/d%zz%");
        assert_eq!(query.number("from"), Some(12_u64));
        assert_eq!(query.number::<u64>("bad"), None);
        assert_eq!(query.text("none"), "");
    }
}
