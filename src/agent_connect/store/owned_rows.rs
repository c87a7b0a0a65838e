//! The rows of one owner, which all reads and writes are limited to, and the values of columns.
//!
//! A column with an unexpected value is an error, never a default.

use rusqlite::types::Type;
use rusqlite::{Connection, Params, Result, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The rows of one owner.
pub(in crate::agent_connect) struct OwnedRows<'a> {
    pub(super) connection: &'a Connection,
    pub(super) owner: &'a str,
}

impl OwnedRows<'_> {
    /// Executes a statement and returns how many rows it has changed.
    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        self.connection.prepare_cached(sql)?.execute(params)
    }
}

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
