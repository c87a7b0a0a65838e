//! Errors of the Agent Connect API.
//!
//! The body of an error is one JSON string (`ErrorResponse` of the OpenAPI document), so an error
//! is a status and a sentence.

use std::borrow::Cow;

/// An error response: an HTTP status and a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The HTTP status.
    pub status: u16,
    /// What happened, for a person.
    pub what: Cow<'static, str>,
}

impl Fault {
    /// Not found: 404.
    #[must_use]
    pub const fn unknown(what: &'static str) -> Self {
        Self::fixed(404, what)
    }

    /// The request conflicts with the current state: 409.
    #[must_use]
    pub fn conflict(what: impl Into<Cow<'static, str>>) -> Self {
        let what = what.into();
        Self { status: 409, what }
    }

    /// The request is invalid or not supported: 422.
    #[must_use]
    pub fn invalid(what: impl Into<Cow<'static, str>>) -> Self {
        let what = what.into();
        Self { status: 422, what }
    }

    /// A member or a parameter has the wrong type or value: 422.
    #[must_use]
    pub fn mistyped(name: &str, wanted: &str) -> Self {
        Self::invalid(format!("\"{name}\" must be {wanted}"))
    }

    /// Temporarily unavailable; the client may retry: 503.
    #[must_use]
    pub fn later(what: impl Into<Cow<'static, str>>) -> Self {
        let what = what.into();
        Self { status: 503, what }
    }

    const fn fixed(status: u16, what: &'static str) -> Self {
        let what = Cow::Borrowed(what);
        Self { status, what }
    }
}
