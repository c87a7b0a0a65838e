//! The rows of one owner, which all reads and writes are limited to.

use rusqlite::{Connection, Params, Result};

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
