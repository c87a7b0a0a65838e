//! The database schema and its migrations.
//!
//! Each version is the SQL that migrates from the previous one. A released step never changes.

use rusqlite::{Connection, OptionalExtension as _};

/// Marks the relay's databases (SQLite's `application_id`): "ACPR".
const APPLICATION_ID: i64 = 0x4143_5052;

/// The SQL that migrates from version N − 1 to version N; the first one starts from an empty
/// database.
const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE threads (
    id TEXT PRIMARY KEY, agent TEXT, session TEXT, created INTEGER NOT NULL,
    updated INTEGER NOT NULL, metadata TEXT NOT NULL, setup TEXT NOT NULL,
    owner TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE runs (
    n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, agent TEXT NOT NULL,
    thread TEXT, status TEXT NOT NULL, version INTEGER NOT NULL, created INTEGER NOT NULL,
    updated INTEGER NOT NULL, creation TEXT NOT NULL, outcome TEXT, webhook TEXT,
    owner TEXT NOT NULL
);
CREATE INDEX runs_by_thread ON runs (thread, n);
CREATE INDEX runs_by_status ON runs (status, n);
CREATE TABLE turns (
    n INTEGER PRIMARY KEY AUTOINCREMENT, thread TEXT NOT NULL, run TEXT NOT NULL,
    at INTEGER NOT NULL, vals TEXT NOT NULL, messages TEXT NOT NULL
);
CREATE INDEX turns_by_thread ON turns (thread, n);
",
    "
CREATE TABLE own_threads (
    id TEXT NOT NULL, agent TEXT, session TEXT, created INTEGER NOT NULL,
    updated INTEGER NOT NULL, metadata TEXT NOT NULL, setup TEXT NOT NULL,
    owner TEXT NOT NULL, PRIMARY KEY (owner, id)
) WITHOUT ROWID;
INSERT INTO own_threads SELECT * FROM threads;
DROP TABLE threads;
ALTER TABLE own_threads RENAME TO threads;
CREATE INDEX threads_by_session ON threads (session);
ALTER TABLE turns ADD COLUMN owner TEXT NOT NULL DEFAULT '';
UPDATE turns SET owner = coalesce((SELECT owner FROM threads WHERE id = thread), '');
DROP INDEX turns_by_thread;
CREATE INDEX turns_by_thread ON turns (owner, thread, n);
DROP INDEX runs_by_thread;
CREATE INDEX runs_by_thread ON runs (owner, thread, n);
",
];

/// Migrates a database to the latest version. Errors are clauses of a sentence.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), String> {
    let fails = |error: rusqlite::Error| describe(&error);
    // Before anything is read, so that another process with the database open is detected at once.
    let pragmas = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; \
                   PRAGMA synchronous = NORMAL;";
    connection.execute_batch(pragmas).map_err(fails)?;
    let number = |connection: &Connection, pragma: &str| -> Result<i64, String> {
        let read = connection.query_row(pragma, [], |row| row.get(0));
        read.map_err(fails)
    };
    let (owner, version) = (
        number(connection, "PRAGMA application_id")?,
        number(connection, "PRAGMA user_version")?,
    );
    let tables = connection.query_row("SELECT 1 FROM sqlite_schema LIMIT 1", [], |_| Ok(()));
    let is_empty = tables.optional().map_err(fails)?.is_none();
    if owner != APPLICATION_ID && !is_empty {
        return Err("it is a database of another program".to_owned());
    }
    let latest = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let Ok(done) = usize::try_from(version) else {
        return Err(format!("its version {version} is invalid"));
    };
    if version > latest {
        return Err(format!(
            "its version {version} is of a newer acp-relay (this one supports {latest})"
        ));
    }
    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive)
        .map_err(fails)?;
    for step in &MIGRATIONS[done..] {
        transaction.execute_batch(step).map_err(fails)?;
    }
    let marks =
        format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {latest};");
    transaction.execute_batch(&marks).map_err(fails)?;
    transaction.commit().map_err(fails)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_migrates_to_the_latest() {
        for version in 0..=MIGRATIONS.len() {
            let mut connection = Connection::open_in_memory().expect("memory");
            for step in &MIGRATIONS[..version] {
                connection.execute_batch(step).expect("a step");
            }
            if version > 0 {
                let marks = format!(
                    "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version}"
                );
                connection.execute_batch(&marks).expect("marks");
                connection
                    .execute(
                        "INSERT INTO threads VALUES ('t', NULL, NULL, 1, 1, '{}', '{}', 'o')",
                        [],
                    )
                    .expect("a row");
            }
            migrate(&mut connection).expect("settled");
            migrate(&mut connection).expect("settled twice");
            let rows: i64 = connection
                .query_row("SELECT count(*) FROM threads", [], |row| row.get(0))
                .expect("threads");
            assert_eq!(rows, i64::from(version > 0));
        }
    }

    #[test]
    fn foreign_databases_are_rejected() {
        let mut connection = Connection::open_in_memory().expect("memory");
        connection
            .execute_batch("CREATE TABLE x (y)")
            .expect("a table");
        assert!(
            migrate(&mut connection)
                .expect_err("not ours")
                .contains("another program")
        );
        let mut connection = Connection::open_in_memory().expect("memory");
        migrate(&mut connection).expect("settled");
        connection
            .execute_batch("PRAGMA user_version = 99")
            .expect("a mark");
        assert!(
            migrate(&mut connection)
                .expect_err("too new")
                .contains("newer")
        );
    }
}
