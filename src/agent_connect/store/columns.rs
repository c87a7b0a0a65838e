//! Converts column values.
//!
//! A column with an unexpected value is an error, never a default.

use rusqlite::types::Type;
use rusqlite::{Result, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a column that holds a word or an id; SQL's `NULL` is read as JSON's `null`.
pub(super) fn word<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> Result<T> {
    let text: Option<String> = row.get(at)?;
    serde_json::from_value(Value::from(text)).map_err(|_| invalid(at))
}

/// Reads a column that holds JSON; SQL's `NULL` is read as JSON's `null`.
pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> Result<T> {
    let text: Option<String> = row.get(at)?;
    serde_json::from_str(text.as_deref().unwrap_or("null")).map_err(|_| invalid(at))
}

/// The text of a column that holds JSON.
pub(super) fn json_text(value: &impl Serialize) -> String {
    serde_json::json!(value).to_string()
}

/// The error for a column with an unexpected value.
fn invalid(at: usize) -> rusqlite::Error {
    let message = "an unexpected value".into();
    rusqlite::Error::FromSqlConversionFailure(at, Type::Text, message)
}
