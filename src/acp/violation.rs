//! One way in which a message violates the schema.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use jsonrpc::truncated;

/// The kinds of violations. Their names are stable: programs read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViolationKind {
    /// The text is not JSON.
    NotJson,
    /// JSON, but no JSON-RPC message.
    NotJsonRpc,
    /// A JSON-RPC batch, which ACP does not have.
    Batch,
    /// JSON that cannot be parsed into a tree: a lone surrogate, a number out of range.
    Unreadable,
    /// An answer that matches no open request.
    UnmatchedAnswer,
    /// A request with the id of another open request of the same side.
    ReusedId,
    /// A method that is neither in the schema nor begins with `_`.
    UnknownMethod,
    /// A method that the other side handles.
    WrongSide,
    /// A required member is missing.
    MissingMember,
    /// A value of the wrong JSON type.
    WrongType,
    /// A union's discriminator names no variant.
    UnknownVariant,
    /// A string or number that is not one of those allowed.
    UnknownValue,
    /// A number or a text outside of its bounds.
    OutOfRange,
    /// A member that the schema does not name, outside of `_meta` and of free-form objects.
    UnknownMember,
}

/// How a reader built on the official types treats a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Consequence {
    /// It refuses the message.
    Refused,
    /// It reads the message without the value: the member is unknown, or the schema marks it with
    /// `x-deserialize-default-on-error` or its siblings.
    Ignored,
}

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What kind of violation it is.
    pub kind: ViolationKind,
    /// How an official reader treats it.
    pub consequence: Consequence,
    /// Where in the message, as a JSON Pointer (RFC 6901); empty for the message as a whole.
    pub pointer: String,
    /// The value there, shortened; `None` when there is none.
    pub found: Option<String>,
    /// What the schema expects there, as a phrase.
    pub expected: String,
}

impl ViolationKind {
    /// Whether a rule of a mapping table could repair it.
    #[must_use]
    pub const fn is_of_dialect(self) -> bool {
        matches!(
            self,
            Self::UnknownMethod
                | Self::MissingMember
                | Self::WrongType
                | Self::UnknownVariant
                | Self::UnknownValue
                | Self::UnknownMember
        )
    }
}

impl Violation {
    /// One for which an official reader refuses the message.
    pub(super) fn refused(
        kind: ViolationKind,
        pointer: &str,
        value: Option<&Value>,
        expected: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            consequence: Consequence::Refused,
            pointer: pointer.to_owned(),
            found: value.map(shown),
            expected: expected.into(),
        }
    }

    /// The same, where an official reader only ignores the value.
    pub(super) fn ignored(self) -> Self {
        let consequence = Consequence::Ignored;
        Self {
            consequence,
            ..self
        }
    }

    /// Whether it is among those left in a translated message. One of the same kind in a new place
    /// counts as the old one, moved, if the value is the same.
    #[must_use]
    pub fn remains_in(&self, left: &[Self]) -> bool {
        left.iter().any(|left| {
            left.kind == self.kind
                && (left.pointer == self.pointer
                    || (left.found.is_some() && left.found == self.found))
        })
    }
}

impl fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for Consequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A short text for a value: scalars as JSON, truncated; containers by their contents.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(members) => {
            let names: Vec<&str> = members.keys().take(4).map(String::as_str).collect();
            let more = if members.len() > names.len() {
                ", …"
            } else {
                ""
            };
            truncate(&format!("an object {{{}{more}}}", names.join(", ")))
        }
        Value::String(text) => {
            let short: String = text.chars().take(MAX_CHARS).collect();
            truncate(&Value::String(short).to_string())
        }
        scalar => truncate(&scalar.to_string()),
    }
}

const MAX_CHARS: usize = 60;

/// At most 60 characters of a text.
pub(super) fn truncate(text: &str) -> String {
    truncated(text, MAX_CHARS)
}
