//! A method's name, kept beyond its message.
//!
//! Requests that no rule is for are remembered too, until they are answered; names of the length
//! that ACP's have need no allocation for it.

use std::fmt;
use std::ops::Deref;

use smallvec::SmallVec;

/// A method's name.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Name(SmallVec<[u8; 32]>);

impl Clone for Name {
    fn clone(&self) -> Self {
        // A copy in one piece, where the derived one would copy byte by byte.
        Self(SmallVec::from_slice(&self.0))
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        std::str::from_utf8(&self.0).expect("it was made of a string")
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(SmallVec::from_slice(text.as_bytes()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &**self)
    }
}
