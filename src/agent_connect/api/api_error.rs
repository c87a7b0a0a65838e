//! Errors of the Agent Connect API.
//!
//! The body of an error is one JSON string (`ErrorResponse` of the OpenAPI document), so an error
//! is a status and a sentence.

use std::borrow::Cow;

/// An error response: an HTTP status and a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// What happened, for a person.
    pub message: Cow<'static, str>,
}

impl ApiError {
    /// Not found: 404.
    #[must_use]
    pub const fn not_found(message: &'static str) -> Self {
        let message = Cow::Borrowed(message);
        Self {
            status: 404,
            message,
        }
    }

    /// The request conflicts with the current state: 409.
    #[must_use]
    pub fn conflict(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(409, message)
    }

    /// The request is invalid or not supported: 422.
    #[must_use]
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(422, message)
    }

    /// A member or a parameter has the wrong type or value: 422.
    #[must_use]
    pub fn wrong_type(name: &str, expected: &str) -> Self {
        Self::invalid(format!("\"{name}\" must be {expected}"))
    }

    /// Temporarily unavailable; the client may retry: 503.
    #[must_use]
    pub fn unavailable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(503, message)
    }

    fn new(status: u16, message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        Self { status, message }
    }
}
