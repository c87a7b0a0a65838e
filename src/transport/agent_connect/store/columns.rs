//! What stands in a column, in and out of the database.
//!
//! A column that holds what no relay writes there is an error, never a default. Not here: which
//! columns there are (see `schema`).

use rusqlite::Row;
use rusqlite::types::Type;
use serde_json::{Map, Value};

use crate::agent_connect::uuid::Uuid;

pub(super) type Result<T> = rusqlite::Result<T>;

pub(super) fn uuid(row: &Row<'_>, at: usize) -> Result<Uuid> {
    optional_uuid(row, at)?.ok_or_else(|| odd(at))
}

pub(super) fn optional_uuid(row: &Row<'_>, at: usize) -> Result<Option<Uuid>> {
    let text: Option<String> = row.get(at)?;
    text.map(|text| Uuid::read(&text).ok_or_else(|| odd(at)))
        .transpose()
}

pub(super) fn json(row: &Row<'_>, at: usize) -> Result<Value> {
    let text: String = row.get(at)?;
    serde_json::from_str(&text).map_err(|_| odd(at))
}

pub(super) fn object(row: &Row<'_>, at: usize) -> Result<Map<String, Value>> {
    match json(row, at)? {
        Value::Object(map) => Ok(map),
        _ => Err(odd(at)),
    }
}

pub(super) fn text(map: &Map<String, Value>) -> String {
    Value::Object(map.clone()).to_string()
}

/// A column holds what was never written there.
pub(super) fn odd(at: usize) -> rusqlite::Error {
    let what = "a value that no relay has written".into();
    rusqlite::Error::FromSqlConversionFailure(at, Type::Text, what)
}
