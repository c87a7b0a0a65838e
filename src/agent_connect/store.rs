//! The database of threads and runs: SQLite, in a file or in memory.
//!
//! Jobs run on the only connection, in threads for blocking work, each on the rows of one owner. Every state of a run is committed before a client
//! receives it, so a relay that is killed loses nothing that it has reported.
//!
//! # Decisions
//!
//! **One connection, for reads as well.** Jobs run in order, so a client that has received a change
//! finds it in a search. The state of a run is read inside the job that writes it, so an older one
//! never replaces a newer one.
//!
//! **The write-ahead log is not synchronised at each commit.** A killed process loses nothing by
//! that; a power failure loses at most the last moments, and never consistency.

use std::fs::OpenOptions;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use rusqlite::types::Type;
use rusqlite::{
    Connection, ErrorCode, OptionalExtension as _, Params, Result as SqlResult, Row,
    TransactionBehavior, params,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::api::error::{ApiError, ApiResult, RpcError};
use super::api::run::{RunOutcome, RunRecord, RunStatus, Timestamp};
use super::api::search::{RunFilter, Search, ThreadFilter, contains_all};
use super::api::thread::{Thread, ThreadMetadata, ThreadStatus, TurnRecord};

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

/// The error of a run that an earlier process has not finished.
const INTERRUPTED: &str = "the relay stopped during the run";

const RUN: &str = "id, agent, thread, status, created, updated, creation, outcome";
const THREAD: &str = "id, agent, session, created, updated, metadata, setup";

/// The database. The lock is fair, so jobs run in order.
#[derive(Clone, Debug)]
pub(super) struct RunStore(Arc<Mutex<Connection>>);

/// The rows of one owner.
pub(super) struct Rows<'a> {
    connection: &'a Connection,
    owner: &'a str,
}

impl RunStore {
    /// Opens the database, in memory if there is no `path`. Runs that an earlier process has not
    /// finished become errors; those with a webhook are returned, with its URL.
    pub(super) fn open(
        path: Option<&Path>,
        now: Timestamp,
    ) -> Result<(Self, Vec<(RunRecord, String)>), String> {
        let opened = match path {
            Some(path) => {
                make_private(path)?;
                Connection::open(path)
            }
            None => Connection::open_in_memory(),
        };
        let mut connection = opened.map_err(|error| describe(&error))?;
        let refused = create(&mut connection).map_err(|error| describe(&error))?;
        if let Some(refused) = refused {
            return Err(refused);
        }
        let orphans = fail_unfinished(&connection, now).map_err(|error| describe(&error))?;
        Ok((Self(Arc::new(Mutex::new(connection))), orphans))
    }

    /// Runs `job` for this owner and commits it. A job that fails is rolled back; one that has
    /// begun ends also when its caller stops waiting.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        owner: &Arc<str>,
        job: impl FnOnce(&Rows<'_>) -> ApiResult<T> + Send + 'static,
    ) -> ApiResult<T> {
        let owner = owner.clone();
        let mut connection = self.0.clone().lock_owned().await;
        let ran = spawn_blocking(move || {
            let transaction = connection.transaction()?;
            let done = job(&Rows {
                connection: &transaction,
                owner: &owner,
            })?;
            transaction.commit()?;
            Ok(done)
        });
        let closed = |_| ApiError::unavailable("the store is closed");
        ran.await.map_err(closed)?
    }
}

impl Rows<'_> {
    /// Inserts a run; of the ended ones of all owners only the last `keep` are kept.
    pub(super) fn insert_run(
        &self,
        run: &RunRecord,
        webhook: Option<&str>,
        keep: usize,
    ) -> ApiResult<()> {
        self.execute(
            "INSERT INTO runs (id, agent, thread, status, version, created, updated, creation, \
             webhook, owner) VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, ?7, ?8, ?9)",
            params![
                run.id.to_string(),
                run.agent.to_string(),
                run.thread.map(|id| id.to_string()),
                run.status.to_string(),
                run.created.0,
                run.updated.0,
                run.creation.to_string(),
                webhook,
                self.owner,
            ],
        )?;
        let oldest = self.connection.last_insert_rowid() - i64::try_from(keep).unwrap_or(i64::MAX);
        let sql = "DELETE FROM runs WHERE n <= ?1 AND status NOT IN ('pending', 'interrupted')";
        self.execute(sql, [oldest])?;
        Ok(())
    }

    /// Writes the state of a run.
    pub(super) fn update_run(&self, run: &RunRecord) -> ApiResult<()> {
        self.execute(
            "UPDATE runs SET status = ?2, updated = ?3, outcome = ?4 WHERE id = ?1",
            params![
                run.id.to_string(),
                run.status.to_string(),
                run.updated.0,
                run.outcome.as_ref().map(text),
            ],
        )?;
        Ok(())
    }

    /// A run.
    ///
    /// # Errors
    /// 404, when the owner has no such run.
    pub(super) fn run(&self, id: Uuid) -> ApiResult<RunRecord> {
        let sql = format!("SELECT {RUN} FROM runs WHERE id = ?1 AND owner = ?2");
        let found = self.find(&sql, id, run)?;
        found.ok_or(ApiError::not_found("there is no such run"))
    }

    /// Deletes a run.
    pub(super) fn delete_run(&self, id: Uuid) -> ApiResult<()> {
        let of = [&*id.to_string(), self.owner];
        self.execute("DELETE FROM runs WHERE id = ?1 AND owner = ?2", of)?;
        Ok(())
    }

    /// The runs that match a search, of one thread if it is named, the latest first.
    pub(super) fn find_runs(
        &self,
        thread: Option<Uuid>,
        search: &Search<RunFilter>,
    ) -> ApiResult<Vec<RunRecord>> {
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT {RUN} FROM runs WHERE (?1 IS NULL OR thread = ?1) \
             AND (?2 IS NULL OR status = ?2) AND (?3 IS NULL OR agent = ?3) AND owner = ?4 \
             ORDER BY n DESC"
        ))?;
        let wanted = &search.wanted;
        let [thread, agent] = [thread, wanted.agent].map(|id| id.map(|id| id.to_string()));
        let status = wanted.status.map(|status| status.to_string());
        let found = statement.query_map(params![thread, status, agent, self.owner], run)?;
        let fits = |run: &SqlResult<RunRecord>| {
            let metadata = run.as_ref().map(|run| run.creation["metadata"].as_object());
            let has = |all| contains_all(all, &wanted.metadata);
            wanted.metadata.is_empty() || metadata.map_or(true, |all| all.is_some_and(has))
        };
        Ok(search
            .page
            .slice(found.filter(fits))
            .collect::<SqlResult<_>>()?)
    }

    /// Inserts a thread; `false` when there are `max` already, or the owner has one of that id.
    pub(super) fn insert_thread(&self, thread: &Thread, max: usize) -> ApiResult<bool> {
        let inserted = self.execute(
            "INSERT OR IGNORE INTO threads SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?9 \
             WHERE (SELECT count(*) FROM threads) < ?8",
            params![
                thread.id.to_string(),
                thread.agent.map(|id| id.to_string()),
                thread.metadata.session,
                thread.created.0,
                thread.updated.0,
                text(&thread.metadata.given),
                thread.setup.to_string(),
                i64::try_from(max).unwrap_or(i64::MAX),
                self.owner,
            ],
        )?;
        Ok(inserted == 1)
    }

    /// Changes a thread and returns it.
    ///
    /// # Errors
    /// 404, when the owner has no such thread.
    pub(super) fn update_thread(
        &self,
        id: Uuid,
        change: impl FnOnce(&mut Thread),
    ) -> ApiResult<Thread> {
        let mut thread = self.thread(id)?;
        change(&mut thread);
        self.execute(
            "UPDATE threads SET agent = ?2, session = ?3, updated = ?4, metadata = ?5, setup = ?6 \
             WHERE id = ?1 AND owner = ?7",
            params![
                thread.id.to_string(),
                thread.agent.map(|id| id.to_string()),
                thread.metadata.session,
                thread.updated.0,
                text(&thread.metadata.given),
                thread.setup.to_string(),
                self.owner,
            ],
        )?;
        Ok(thread)
    }

    /// A thread.
    ///
    /// # Errors
    /// 404, when the owner has no such thread.
    pub(super) fn thread(&self, id: Uuid) -> ApiResult<Thread> {
        let sql = format!("SELECT {THREAD} FROM threads WHERE id = ?1 AND owner = ?2");
        let found = self.find(&sql, id, |row| self.read_thread(row))?;
        found.ok_or(ApiError::not_found("there is no such thread"))
    }

    /// Whether a thread of any owner has this session.
    pub(super) fn has_session(&self, agent: Uuid, session: &str) -> ApiResult<bool> {
        let sql = "SELECT 1 FROM threads WHERE agent = ?1 AND session = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.exists([&*agent.to_string(), session])?)
    }

    /// Deletes a thread, its turns and its runs.
    pub(super) fn delete_thread(&self, id: Uuid) -> ApiResult<()> {
        for (table, column) in [("runs", "thread"), ("turns", "thread"), ("threads", "id")] {
            let sql = format!("DELETE FROM {table} WHERE {column} = ?1 AND owner = ?2");
            self.execute(&sql, [&*id.to_string(), self.owner])?;
        }
        Ok(())
    }

    /// The threads that match a search, the latest first.
    pub(super) fn find_threads(&self, search: &Search<ThreadFilter>) -> ApiResult<Vec<Thread>> {
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT {THREAD} FROM threads WHERE owner = ?1 ORDER BY created DESC, id"
        ))?;
        let found = statement.query_map([self.owner], |row| self.read_thread(row))?;
        let wanted = &search.wanted;
        let fits = |thread: &SqlResult<Thread>| {
            thread.as_ref().map_or(true, |thread| {
                contains_all(&thread.metadata.given, &wanted.metadata)
                    && wanted.status.is_none_or(|status| status == thread.status)
                    && contains_all(&thread.values.clone().unwrap_or_default(), &wanted.values)
            })
        };
        Ok(search
            .page
            .slice(found.filter(fits))
            .collect::<SqlResult<_>>()?)
    }

    /// Adds a turn to a thread.
    pub(super) fn insert_turn(&self, of: Uuid, turn: &TurnRecord) -> ApiResult<()> {
        let of = of.to_string();
        self.execute(
            "INSERT INTO turns (thread, run, at, vals, messages, owner) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                of,
                turn.run.to_string(),
                turn.ended.0,
                text(&turn.values),
                text(&turn.messages),
                self.owner,
            ],
        )?;
        let sql = "UPDATE threads SET updated = ?2 WHERE id = ?1 AND owner = ?3";
        self.execute(sql, params![of, turn.ended.0, self.owner])?;
        Ok(())
    }

    /// The turns of a thread, the oldest first.
    pub(super) fn turns(&self, of: Uuid) -> SqlResult<Vec<TurnRecord>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT run, at, vals, messages FROM turns WHERE thread = ?1 AND owner = ?2 ORDER BY n",
        )?;
        let turn = |row: &Row<'_>| {
            Ok(TurnRecord {
                run: word(row, 0)?,
                ended: Timestamp(row.get(1)?),
                values: json(row, 2)?,
                messages: json(row, 3)?,
            })
        };
        statement
            .query_map([&*of.to_string(), self.owner], turn)?
            .collect()
    }

    /// Copies the turns of a thread to another.
    pub(super) fn copy_turns(&self, from: Uuid, to: Uuid) -> ApiResult<()> {
        self.execute(
            "INSERT INTO turns (thread, run, at, vals, messages, owner) SELECT ?2, run, at, vals, \
             messages, owner FROM turns WHERE thread = ?1 AND owner = ?3 ORDER BY n",
            [&*from.to_string(), &*to.to_string(), self.owner],
        )?;
        Ok(())
    }

    /// Reads a thread, with the status that follows from its runs, and its turns.
    fn read_thread(&self, row: &Row<'_>) -> SqlResult<Thread> {
        let id = word(row, 0)?;
        let sql = "SELECT status FROM runs WHERE thread = ?1 AND owner = ?2 \
                   ORDER BY status = 'interrupted' DESC, status = 'pending' DESC, n DESC LIMIT 1";
        let status: Option<RunStatus> = self.find(sql, id, |row| word(row, 0))?;
        let mut turns = self.turns(id)?;
        Ok(Thread {
            id,
            agent: word(row, 1)?,
            metadata: ThreadMetadata {
                given: json(row, 5)?,
                session: row.get(2)?,
            },
            created: Timestamp(row.get(3)?),
            updated: Timestamp(row.get(4)?),
            setup: json(row, 6)?,
            status: ThreadStatus::after(status),
            values: turns
                .last_mut()
                .map(|turn| std::mem::take(&mut turn.values)),
            messages: turns.into_iter().flat_map(|turn| turn.messages).collect(),
        })
    }

    /// The first row that a query by an id and the owner returns.
    fn find<T>(
        &self,
        sql: &str,
        id: Uuid,
        read: impl FnOnce(&Row<'_>) -> SqlResult<T>,
    ) -> SqlResult<Option<T>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let of = [&*id.to_string(), self.owner];
        statement.query_row(of, read).optional()
    }

    /// Executes a statement and returns how many rows it has changed.
    fn execute(&self, sql: &str, params: impl Params) -> SqlResult<usize> {
        self.connection.prepare_cached(sql)?.execute(params)
    }
}

impl From<rusqlite::Error> for ApiError {
    fn from(error: rusqlite::Error) -> Self {
        let what = describe(&error);
        tracing::error!("the store of threads and runs failed: {what}");
        Self::unavailable(format!("the store failed: {what}"))
    }
}

/// Creates the tables in an empty database, and checks those of another; returns why that cannot be
/// used, as a clause of a sentence.
fn create(connection: &mut Connection) -> rusqlite::Result<Option<String>> {
    // Before anything is read, so that another process with the database open is detected at once.
    connection.execute_batch(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;",
    )?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    let number = |query: &str| transaction.query_row(query, [], |row| row.get::<_, i64>(0));
    if number("SELECT count(*) FROM sqlite_schema")? == 0 {
        transaction.execute_batch(&format!(
            "{TABLES} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};"
        ))?;
        transaction.commit()?;
        return Ok(None);
    }
    if number("PRAGMA application_id")? != APPLICATION_ID {
        return Ok(Some("it is a database of another program".to_owned()));
    }
    let version = number("PRAGMA user_version")?;
    let age = if version > VERSION {
        "a newer"
    } else {
        "an older"
    };
    Ok((version != VERSION).then(|| {
        format!("its version {version} is of {age} acp-relay (this one supports {VERSION})")
    }))
}

/// An SQLite error as a clause of a sentence.
fn describe(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another relay uses it".to_owned()
        }
        Some(ErrorCode::NotADatabase) => "it is not an SQLite database".to_owned(),
        _ => error.to_string(),
    }
}

/// Creates the file, private to this user, because it holds prompts. The other files that SQLite
/// creates beside it have the same mode.
fn make_private(path: &Path) -> Result<(), String> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let about = options.open(path).and_then(|file| file.metadata());
    let mode = about.map_err(|error| error.to_string())?;
    let mode = mode.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let path = path.display();
    Err(format!(
        "other users can read or write it (mode {mode:04o}); run `chmod go-rwx {path}`"
    ))
}

/// Marks the runs that an earlier process has not finished as errors. Those with a webhook are
/// returned, with its URL.
pub(super) fn fail_unfinished(
    connection: &Connection,
    now: Timestamp,
) -> SqlResult<Vec<(RunRecord, String)>> {
    let lost = RunOutcome::Error(RpcError::internal(INTERRUPTED));
    let mut update = connection.prepare(&format!(
        "UPDATE runs SET status = 'error', updated = ?1, outcome = ?2 \
         WHERE status IN ('pending', 'interrupted') RETURNING {RUN}, webhook"
    ))?;
    let failed = update.query_map(params![now.0, text(&lost)], |row| {
        let webhook: Option<String> = row.get(8)?;
        webhook.map(|webhook| Ok((run(row)?, webhook))).transpose()
    })?;
    failed.filter_map(Result::transpose).collect()
}

fn run(row: &Row<'_>) -> SqlResult<RunRecord> {
    Ok(RunRecord {
        id: word(row, 0)?,
        agent: word(row, 1)?,
        thread: word(row, 2)?,
        status: word(row, 3)?,
        created: Timestamp(row.get(4)?),
        updated: Timestamp(row.get(5)?),
        creation: json(row, 6)?,
        outcome: json(row, 7)?,
    })
}

/// Reads a column that holds a word or an id; SQL's `NULL` is read as JSON's `null`.
fn word<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> SqlResult<T> {
    let text: Option<String> = row.get(at)?;
    serde_json::from_value(Value::from(text)).map_err(|_| invalid(at))
}

/// Reads a column that holds JSON; SQL's `NULL` is read as JSON's `null`.
fn json<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> SqlResult<T> {
    let text: Option<String> = row.get(at)?;
    serde_json::from_str(text.as_deref().unwrap_or("null")).map_err(|_| invalid(at))
}

/// The text of a column that holds JSON.
fn text(value: &impl Serialize) -> String {
    serde_json::json!(value).to_string()
}

/// The error for a column with an unexpected value.
fn invalid(at: usize) -> rusqlite::Error {
    let message = "an unexpected value".into();
    rusqlite::Error::FromSqlConversionFailure(at, Type::Text, message)
}
