//! The database of threads and runs: SQLite, in a file or in memory.
//!
//! A row is a JSON document, from which SQLite derives the columns that queries need. Jobs run on
//! the only connection, in threads for blocking work, each on the rows of one owner. Every state of
//! a run is committed before a client receives it, so a relay that is killed loses nothing that it
//! has reported.
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
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::api::error::{ApiError, ApiResult, RpcError};
use super::api::page::ResultPage;
use super::api::run::{RunOutcome, RunRecord, RunStatus, Timestamp};
use super::api::search::{RunFilter, Search, ThreadFilter, contains_all};
use super::api::thread::{Thread, ThreadStatus, TurnRecord};

/// Marks the relay's databases (SQLite's `application_id`): "ACPR".
const APPLICATION_ID: i64 = 0x4143_5052;

/// The version of the tables (SQLite's `user_version`).
const VERSION: i64 = 3;

const TABLES: &str = "
CREATE TABLE threads (
    owner TEXT NOT NULL, doc TEXT NOT NULL,
    id AS (doc ->> 'id'), agent AS (doc ->> 'agent'), session AS (doc ->> 'session')
);
CREATE UNIQUE INDEX threads_by_id ON threads (owner, id);
CREATE INDEX threads_by_session ON threads (session);
CREATE TABLE runs (
    n INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, doc TEXT NOT NULL, webhook TEXT,
    id AS (doc ->> 'run_id'), agent AS (doc ->> 'agent_id'), thread AS (doc ->> 'thread_id'),
    status AS (doc ->> 'status')
);
CREATE UNIQUE INDEX runs_by_id ON runs (id);
CREATE INDEX runs_by_thread ON runs (owner, thread, n);
CREATE INDEX runs_by_status ON runs (status, n);
CREATE TABLE turns (
    n INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, thread TEXT NOT NULL,
    doc TEXT NOT NULL
);
CREATE INDEX turns_by_thread ON turns (owner, thread, n);
";

/// The error of a run that an earlier process has not finished.
const INTERRUPTED: &str = "the relay stopped during the run";

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
        now: &Timestamp,
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
        let sql = "INSERT INTO runs (owner, doc, webhook) VALUES (?1, ?2, ?3)";
        self.execute(sql, params![self.owner, text(run), webhook])?;
        let oldest = self.connection.last_insert_rowid() - i64::try_from(keep).unwrap_or(i64::MAX);
        let sql = "DELETE FROM runs WHERE n <= ?1 AND status NOT IN ('pending', 'interrupted')";
        self.execute(sql, [oldest])?;
        Ok(())
    }

    /// Writes the state of a run.
    pub(super) fn update_run(&self, run: &RunRecord) -> ApiResult<()> {
        let sql = "UPDATE runs SET doc = ?2 WHERE id = ?1";
        self.execute(sql, [run.id.to_string(), text(run)])?;
        Ok(())
    }

    /// A run.
    ///
    /// # Errors
    /// 404, when the owner has no such run.
    pub(super) fn run(&self, id: Uuid) -> ApiResult<RunRecord> {
        let found = self.find("SELECT doc FROM runs WHERE id = ?1 AND owner = ?2", id, doc)?;
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
        let wanted = &search.wanted;
        let [thread, agent] = [thread, wanted.agent].map(|id| id.map(|id| id.to_string()));
        let status = wanted.status.map(|status| status.to_string());
        let fits = |run: &RunRecord| {
            let metadata = run.creation["metadata"].as_object();
            wanted.metadata.is_empty()
                || metadata.is_some_and(|all| contains_all(all, &wanted.metadata))
        };
        let sql = "SELECT doc FROM runs WHERE (?1 IS NULL OR thread = ?1) \
             AND (?2 IS NULL OR status = ?2) AND (?3 IS NULL OR agent = ?3) AND owner = ?4 \
             ORDER BY n DESC";
        let of = params![thread, status, agent, self.owner];
        self.list(sql, of, doc, fits, search.page)
    }

    /// Inserts a thread; `false` when there are `max` already, or the owner has one of that id.
    pub(super) fn insert_thread(&self, thread: &Thread, max: usize) -> ApiResult<bool> {
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let sql = "INSERT OR IGNORE INTO threads (owner, doc) SELECT ?1, ?2 \
             WHERE (SELECT count(*) FROM threads) < ?3";
        let inserted = self.execute(sql, params![self.owner, text(thread), max])?;
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
        let sql = "UPDATE threads SET doc = ?3 WHERE id = ?1 AND owner = ?2";
        self.execute(sql, [&*id.to_string(), self.owner, &text(&thread)])?;
        Ok(thread)
    }

    /// A thread.
    ///
    /// # Errors
    /// 404, when the owner has no such thread.
    pub(super) fn thread(&self, id: Uuid) -> ApiResult<Thread> {
        let sql = "SELECT doc FROM threads WHERE id = ?1 AND owner = ?2";
        let found = self.find(sql, id, |row| self.read_thread(row))?;
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
        let wanted = &search.wanted;
        let fits = |thread: &Thread| {
            contains_all(&thread.metadata, &wanted.metadata)
                && wanted.status.is_none_or(|status| status == thread.status)
                && contains_all(&thread.values.clone().unwrap_or_default(), &wanted.values)
        };
        let sql = "SELECT doc FROM threads WHERE owner = ?1 ORDER BY doc ->> 'created_at' DESC, id";
        let read = |row: &Row<'_>| self.read_thread(row);
        self.list(sql, [self.owner], read, fits, search.page)
    }

    /// Adds a turn to a thread.
    pub(super) fn insert_turn(&self, of: Uuid, turn: &TurnRecord) -> ApiResult<()> {
        let of = of.to_string();
        let sql = "INSERT INTO turns (thread, owner, doc) VALUES (?1, ?2, ?3)";
        self.execute(sql, [&*of, self.owner, &text(turn)])?;
        let sql = "UPDATE threads SET doc = json_set(doc, '$.updated_at', ?3) \
             WHERE id = ?1 AND owner = ?2";
        self.execute(sql, [&*of, self.owner, &turn.ended.to_string()])?;
        Ok(())
    }

    /// The turns of a thread, the oldest first.
    pub(super) fn turns(&self, of: Uuid) -> SqlResult<Vec<TurnRecord>> {
        let sql = "SELECT doc FROM turns WHERE thread = ?1 AND owner = ?2 ORDER BY n";
        let mut statement = self.connection.prepare_cached(sql)?;
        let of = [&*of.to_string(), self.owner];
        statement.query_map(of, doc)?.collect()
    }

    /// Copies the turns of a thread to another.
    pub(super) fn copy_turns(&self, from: Uuid, to: Uuid) -> ApiResult<()> {
        self.execute(
            "INSERT INTO turns (thread, owner, doc) SELECT ?2, owner, doc FROM turns \
             WHERE thread = ?1 AND owner = ?3 ORDER BY n",
            [&*from.to_string(), &*to.to_string(), self.owner],
        )?;
        Ok(())
    }

    /// Reads a thread, with the status that follows from its runs, and its turns.
    fn read_thread(&self, row: &Row<'_>) -> SqlResult<Thread> {
        let mut thread: Thread = doc(row)?;
        let sql = "SELECT doc -> 'status' FROM runs WHERE thread = ?1 AND owner = ?2 \
                   ORDER BY status = 'interrupted' DESC, status = 'pending' DESC, n DESC LIMIT 1";
        let status: Option<RunStatus> = self.find(sql, thread.id, doc)?;
        thread.status = ThreadStatus::after(status);
        let mut turns = self.turns(thread.id)?;
        thread.values = (turns.last_mut()).map(|turn| std::mem::take(&mut turn.values));
        thread.messages = turns.into_iter().flat_map(|turn| turn.messages).collect();
        Ok(thread)
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

    /// A part of the rows that a query returns and that fit.
    fn list<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl Fn(&Row<'_>) -> SqlResult<T>,
        fits: impl Fn(&T) -> bool,
        page: ResultPage,
    ) -> ApiResult<Vec<T>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_map(params, read)?;
        let found = found.filter(|row| row.as_ref().map_or(true, &fits));
        Ok(page.slice(found).collect::<SqlResult<_>>()?)
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
fn fail_unfinished(
    connection: &Connection,
    now: &Timestamp,
) -> SqlResult<Vec<(RunRecord, String)>> {
    let lost = json!(RunOutcome::Error(RpcError::internal(INTERRUPTED)));
    let mut update = connection.prepare(
        "UPDATE runs SET doc = json_set(doc, '$.status', 'error', '$.updated_at', ?1, \
         '$.outcome', json(?2)) WHERE status IN ('pending', 'interrupted') RETURNING doc, webhook",
    )?;
    let failed = update.query_map([now.to_string(), lost.to_string()], |row| {
        let webhook: Option<String> = row.get(1)?;
        webhook.map(|webhook| Ok((doc(row)?, webhook))).transpose()
    })?;
    failed.filter_map(Result::transpose).collect()
}

/// Reads the document that is the first column of a row.
fn doc<T: DeserializeOwned>(row: &Row<'_>) -> SqlResult<T> {
    let text: String = row.get(0)?;
    serde_json::from_str(&text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, error.into()))
}

/// The text of a document.
fn text(value: &impl Serialize) -> String {
    let value: Value = json!(value);
    value.to_string()
}
