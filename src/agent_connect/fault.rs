//! Why a request of Agent Connect is refused.
//!
//! The body of a refusal is one JSON string (`ErrorResponse` of the OpenAPI document), so a fault
//! is a status and a sentence. Not here: how it is sent.

use std::borrow::Cow;

/// A refusal: an HTTP status, and what is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The HTTP status.
    pub status: u16,
    /// What happened, for a person.
    pub what: Cow<'static, str>,
}

impl Fault {
    /// No such thing: 404.
    #[must_use]
    pub const fn unknown(what: &'static str) -> Self {
        Self::fixed(404, what)
    }

    /// It does not fit what is going on: 409.
    #[must_use]
    pub fn conflict(what: impl Into<Cow<'static, str>>) -> Self {
        let what = what.into();
        Self { status: 409, what }
    }

    /// The request makes no sense, or asks for what cannot be done here: 422.
    #[must_use]
    pub fn invalid(what: impl Into<Cow<'static, str>>) -> Self {
        let what = what.into();
        Self { status: 422, what }
    }

    /// A member or a parameter is not what it must be: 422.
    #[must_use]
    pub fn mistyped(name: &str, wanted: &str) -> Self {
        Self::invalid(format!("\"{name}\" must be {wanted}"))
    }

    /// The same request may do later: 503.
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
