//! The query parameters of the page's requests.

use std::collections::HashMap;
use std::convert::Infallible;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

/// The parameters, decoded.
#[derive(Debug)]
pub(super) struct Query(HashMap<String, String>);

impl Query {
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    pub(super) fn number<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name).parse().ok()
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let text = parts.uri.query().unwrap_or_default();
        let parameters = form_urlencoded::parse(text.as_bytes());
        Ok(Self(parameters.into_owned().collect()))
    }
}
