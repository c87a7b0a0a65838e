//! Converts column values.
//!
//! A column with an unexpected value is an error, never a default.

use rusqlite::Row;
use rusqlite::types::Type;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::agent_connect::api::ids;

pub(super) type Result<T> = rusqlite::Result<T>;

pub(super) fn uuid(row: &Row<'_>, at: usize) -> Result<Uuid> {
    optional_uuid(row, at)?.ok_or_else(|| invalid(at))
}

pub(super) fn optional_uuid(row: &Row<'_>, at: usize) -> Result<Option<Uuid>> {
    let text: Option<String> = row.get(at)?;
    text.map(|text| ids::parse(&text).ok_or_else(|| invalid(at)))
        .transpose()
}

pub(super) fn json(row: &Row<'_>, at: usize) -> Result<Value> {
    let text: String = row.get(at)?;
    serde_json::from_str(&text).map_err(|_| invalid(at))
}

pub(super) fn object(row: &Row<'_>, at: usize) -> Result<Map<String, Value>> {
    match json(row, at)? {
        Value::Object(map) => Ok(map),
        _ => Err(invalid(at)),
    }
}

pub(super) fn json_text(map: &Map<String, Value>) -> String {
    Value::Object(map.clone()).to_string()
}

/// The error for a column with an unexpected value.
pub(super) fn invalid(at: usize) -> rusqlite::Error {
    let message = "an unexpected value".into();
    rusqlite::Error::FromSqlConversionFailure(at, Type::Text, message)
}
