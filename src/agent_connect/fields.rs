//! The members of a request's body, each read with a required type.
//!
//! Every error names the member. A member that is `null` counts as absent.

use serde_json::{Map, Value};

use super::api_error::ApiError;
use super::uuid::Uuid;

/// A JSON object of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestFields<'a>(&'a Map<String, Value>);

impl<'a> RequestFields<'a> {
    /// The fields of a request's body.
    ///
    /// # Errors
    /// When it is not an object.
    pub fn new(body: &'a Value) -> Result<Self, ApiError> {
        match body {
            Value::Object(map) => Ok(Self(map)),
            _ => Err(ApiError::invalid("the body must be a JSON object")),
        }
    }

    /// A member of any type.
    #[must_use]
    pub fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// A string.
    ///
    /// # Errors
    /// When it is of another type.
    pub fn text(self, name: &str) -> Result<Option<&'a str>, ApiError> {
        self.typed(name, "a string", Value::as_str)
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// When it is of another type.
    pub fn boolean(self, name: &str) -> Result<Option<bool>, ApiError> {
        self.typed(name, "true or false", Value::as_bool)
    }

    /// A number without a sign or a fraction.
    ///
    /// # Errors
    /// When it is of another type.
    pub fn number(self, name: &str) -> Result<Option<u64>, ApiError> {
        // JSON does not distinguish 1.0 from 1, and JSON Schema calls both integers.
        let whole = |value: &Value| {
            let float = value
                .as_f64()
                .filter(|f| f.fract() == 0.0 && (0.0..9e15).contains(f));
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is whole and in range"
            )]
            let float = float.map(|f| f as u64);
            value.as_u64().or(float)
        };
        self.typed(name, "a whole number, 0 or more", whole)
    }

    /// An array.
    ///
    /// # Errors
    /// When it is of another type.
    pub fn list(self, name: &str) -> Result<Option<&'a [Value]>, ApiError> {
        self.typed(name, "an array", |value| {
            value.as_array().map(Vec::as_slice)
        })
    }

    /// An object.
    ///
    /// # Errors
    /// When it is of another type.
    pub fn object(self, name: &str) -> Result<Option<&'a Map<String, Value>>, ApiError> {
        self.typed(name, "an object", Value::as_object)
    }

    /// An object, as fields.
    ///
    /// # Errors
    /// When it is of another type.
    pub fn nested(self, name: &str) -> Result<Option<Self>, ApiError> {
        Ok(self.object(name)?.map(Self))
    }

    /// A UUID.
    ///
    /// # Errors
    /// When it is not a UUID.
    pub fn uuid(self, name: &str) -> Result<Option<Uuid>, ApiError> {
        self.typed(name, "a UUID", |value| Uuid::parse(value.as_str()?))
    }

    /// One of these words, as its index.
    ///
    /// # Errors
    /// When it is another value.
    pub fn choice(self, name: &str, words: &[&str]) -> Result<Option<usize>, ApiError> {
        let index = |value: &Value| {
            let text = value.as_str()?;
            words.iter().position(|word| *word == text)
        };
        self.typed(name, &format!("one of {}", words.join(", ")), index)
    }

    /// The names of all members.
    pub fn names(self) -> impl Iterator<Item = &'a str> {
        self.0.keys().map(String::as_str)
    }

    fn typed<T>(
        self,
        name: &str,
        wanted: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match read(value) {
            Some(read) => Ok(Some(read)),
            None => Err(ApiError::wrong_type(name, wanted)),
        }
    }
}
