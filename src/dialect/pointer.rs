//! A JSON Pointer (RFC 6901) of a table, parsed once.
//!
//! `jsonptr` parses it; the names are also stored unescaped, because rules walk them for every
//! message.

use std::fmt;

use jsonptr::PointerBuf;
use schemars::JsonSchema;
use serde::Deserialize;

/// A JSON Pointer (RFC 6901), relative to params, result or error.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", extend("pattern" = "^(/|$)"))]
pub struct JsonPointer {
    pointer: PointerBuf,
    names: Box<[Box<str>]>,
}

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
        &self.names
    }

    /// Whether one of the two pointers is equal to the other or inside it.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.names
            .iter()
            .zip(&other.names)
            .all(|(one, two)| one == two)
    }

    /// Whether `self` is inside `other` or equal to it.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.names.len() >= other.names.len() && self.overlaps(other)
    }
}

/// Parses a pointer that is written in this source.
pub(super) fn own_pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).expect("a pointer of ours parses")
}

/// The names follow from the pointer.
impl PartialEq for JsonPointer {
    fn eq(&self, other: &Self) -> bool {
        self.pointer == other.pointer
    }
}

impl Eq for JsonPointer {}

impl From<PointerBuf> for JsonPointer {
    fn from(pointer: PointerBuf) -> Self {
        let names = pointer
            .tokens()
            .map(|token| token.decoded().into())
            .collect();
        Self { pointer, names }
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
        f.write_str(self.pointer.as_str())
    }
}

impl fmt::Debug for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonPointer({:?})", self.pointer.as_str())
    }
}
