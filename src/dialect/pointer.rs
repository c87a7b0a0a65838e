//! A JSON Pointer (RFC 6901) of a table, parsed once.
//!
//! `jsonptr` parses and prints it; the names are stored unescaped, because rules walk them for every
//! message.

use std::fmt;

use jsonptr::PointerBuf;
use schemars::JsonSchema;
use serde::Deserialize;

/// A JSON Pointer (RFC 6901), relative to params, result or error.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", extend("pattern" = "^(/|$)"))]
pub struct JsonPointer(Box<[Box<str>]>);

impl JsonPointer {
    /// Parses a pointer.
    ///
    /// # Errors
    /// A description of what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        match PointerBuf::parse(text) {
            Ok(pointer) => Ok(Self::from(pointer)),
            Err(_) if !text.starts_with('/') => {
                Err(format!("`{text}` is no JSON Pointer: begin it with `/`"))
            }
            Err(_) => Err(format!(
                "`{text}` is no JSON Pointer: write `~` as `~0` and `/` inside a name as `~1`"
            )),
        }
    }

    /// The names on the path, unescaped.
    #[must_use]
    pub fn names(&self) -> &[Box<str>] {
        &self.0
    }

    /// Whether one of the two pointers is equal to the other or inside it.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(one, two)| one == two)
    }

    /// Whether `self` is inside `other` or equal to it.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.0.len() >= other.0.len() && self.overlaps(other)
    }
}

/// A pointer that is written in this source, without escapes.
pub(super) fn own_pointer(text: &str) -> JsonPointer {
    JsonPointer(own_names(text).map(Box::from).collect())
}

/// The names in such a pointer.
pub(super) fn own_names(text: &str) -> impl Iterator<Item = &str> {
    text.split('/').skip(1)
}

impl From<PointerBuf> for JsonPointer {
    fn from(pointer: PointerBuf) -> Self {
        Self(
            pointer
                .tokens()
                .map(|token| token.decoded().into())
                .collect(),
        )
    }
}

impl TryFrom<String> for JsonPointer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = PointerBuf::from_tokens(self.0.iter().map(|name| &**name));
        f.write_str(pointer.as_str())
    }
}

impl fmt::Debug for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonPointer({self})")
    }
}
