//! A method's name that outlives its message.
//!
//! Requests without a rule are remembered too, until they are answered, and the method of a
//! translated message is read repeatedly. Nearly all names belong to the protocol and need no
//! allocation.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::{methods, text};
use crate::jsonrpc::{Envelope, Frame};

/// A method's name.
#[derive(Clone)]
pub enum MethodName {
    /// A name of the protocol.
    Known(&'static str),
    /// Any other.
    Other(Arc<str>),
}

impl Default for MethodName {
    fn default() -> Self {
        Self::Known("")
    }
}

impl PartialEq for MethodName {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for MethodName {}

impl Deref for MethodName {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Known(name) => name,
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for MethodName {
    fn from(text: &str) -> Self {
        match methods::canonical(text.as_bytes()) {
            Some(name) => Self::Known(name),
            None => Self::Other(text.into()),
        }
    }
}

impl MethodName {
    /// The method of a message.
    pub(super) fn of(frame: &Frame, at: &Envelope) -> Self {
        // Methods with escapes are rare.
        match methods::canonical(at.raw_method(frame)) {
            Some(name) => Self::Known(name),
            None => (&*at.method(frame)).into(),
        }
    }

    /// Writes it as it is written between its quotes.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Known(name) => out.extend_from_slice(name.as_bytes()),
            Self::Other(name) => text::escape(name, out),
        }
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &**self)
    }
}
