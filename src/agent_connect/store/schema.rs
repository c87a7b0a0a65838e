//! The database schema.

use rusqlite::{Connection, TransactionBehavior};

/// Marks the relay's databases (SQLite's `application_id`): "ACPR".
const APPLICATION_ID: i64 = 0x4143_5052;

/// The version of the tables (SQLite's `user_version`).
const VERSION: i64 = 2;

const TABLES: &str = "
CREATE TABLE threads (
    id TEXT NOT NULL, agent TEXT, session TEXT, created INTEGER NOT NULL,
    updated INTEGER NOT NULL, metadata TEXT NOT NULL, setup TEXT NOT NULL,
    owner TEXT NOT NULL, PRIMARY KEY (owner, id)
) WITHOUT ROWID;
CREATE INDEX threads_by_session ON threads (session);
CREATE TABLE runs (
    n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, agent TEXT NOT NULL,
    thread TEXT, status TEXT NOT NULL, version INTEGER NOT NULL, created INTEGER NOT NULL,
    updated INTEGER NOT NULL, creation TEXT NOT NULL, outcome TEXT, webhook TEXT,
    owner TEXT NOT NULL
);
CREATE INDEX runs_by_thread ON runs (owner, thread, n);
CREATE INDEX runs_by_status ON runs (status, n);
CREATE TABLE turns (
    n INTEGER PRIMARY KEY AUTOINCREMENT, thread TEXT NOT NULL, run TEXT NOT NULL,
    at INTEGER NOT NULL, vals TEXT NOT NULL, messages TEXT NOT NULL,
    owner TEXT NOT NULL DEFAULT ''
);
CREATE INDEX turns_by_thread ON turns (owner, thread, n);
";

/// Creates the tables in an empty database, and checks those of another. Errors are clauses of a
/// sentence.
pub(super) fn create(connection: &mut Connection) -> Result<(), String> {
    let fails = |error: rusqlite::Error| describe(&error);
    // Before anything is read, so that another process with the database open is detected at once.
    let pragmas = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; \
                   PRAGMA synchronous = NORMAL;";
    connection.execute_batch(pragmas).map_err(fails)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Exclusive)
        .map_err(fails)?;
    let number = |query: &str| -> Result<i64, String> {
        let read = transaction.query_row(query, [], |row| row.get(0));
        read.map_err(fails)
    };
    if number("SELECT count(*) FROM sqlite_schema")? == 0 {
        let marks =
            format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};");
        transaction.execute_batch(TABLES).map_err(fails)?;
        transaction.execute_batch(&marks).map_err(fails)?;
        return transaction.commit().map_err(fails);
    }
    if number("PRAGMA application_id")? != APPLICATION_ID {
        return Err("it is a database of another program".to_owned());
    }
    let age = match number("PRAGMA user_version")? {
        VERSION => return Ok(()),
        version if version > VERSION => format!("{version} is of a newer acp-relay"),
        version => format!("{version} is of an older acp-relay"),
    };
    Err(format!("its version {age} (this one supports {VERSION})"))
}

/// An SQLite error as a clause of a sentence.
pub(super) fn describe(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
            "another relay uses it".to_owned()
        }
        Some(rusqlite::ErrorCode::NotADatabase) => "it is not an SQLite database".to_owned(),
        _ => error.to_string(),
    }
}
