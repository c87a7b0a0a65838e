//! The query parameters of the page's requests.

use std::convert::Infallible;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

/// The parameters, decoded. Of several with one name the first counts.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads `a=1&b=x%20y`.
    fn new(text: &str) -> Self {
        let parameters = form_urlencoded::parse(text.as_bytes());
        Self(parameters.into_owned().collect())
    }

    pub(super) fn text(&self, name: &str) -> &str {
        let named = |(known, _): &&(String, String)| known == name;
        self.0.iter().find(named).map_or("", |(_, value)| value)
    }

    pub(super) fn number<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name).parse().ok()
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::new(parts.uri.query().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = Query::new("q=a%20b+c%2fd%zz%&from=12&bad=x&q=second");
        assert_eq!(query.text("q"), "a b c/d%zz%");
        assert_eq!(query.number("from"), Some(12_u64));
        assert_eq!(query.number::<u64>("bad"), None);
        assert_eq!(query.text("none"), "");
    }
}
