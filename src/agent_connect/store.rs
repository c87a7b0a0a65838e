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
//! never replaces a newer one. At most one job of an owner waits for the connection, so the jobs of
//! one delay those of another by one job each.
//!
//! **What an owner stores takes nothing from others.** Triggers count the rows and bytes of each.
//! Only an owner's own runs are deleted for its new rows, and [`has_room`] keeps some room for others.
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
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::api::body::check_metadata;
use super::api::error::{ApiError, ApiResult, RpcError};
use super::api::page::{MAX_BYTES, ResultPage};
use super::api::run::{RunOutcome, RunRecord, RunStatus, Timestamp};
use super::api::search::{RunFilter, Search, ThreadFilter, contains_all};
use super::api::thread::{Thread, ThreadStatus, TurnRecord};
use super::shares::{Shares, has_room};
use jsonrpc::Limits;

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

/// Indexes that databases of this version may lack.
const INDEXES: &str = "
CREATE INDEX IF NOT EXISTS threads_by_owner ON threads (owner);
CREATE INDEX IF NOT EXISTS runs_by_owner ON runs (owner);
";

/// What a row takes beside its document: columns, and entries of indexes; in bytes, about.
const ROW_BYTES: usize = 512;

/// Longest document of a thread, in bytes; its metadata has a limit of its own.
const MAX_THREAD_LEN: usize = 256 << 10;

/// The latest rows of an owner that a search looks at.
const MAX_SCANNED: i64 = 10_000;

/// The error of a run that an earlier process has not finished.
const INTERRUPTED: &str = "the relay stopped during the run";

/// The database. The lock is fair, so jobs run in order.
#[derive(Clone, Debug)]
pub(super) struct RunStore {
    connection: Arc<Mutex<Connection>>,
    /// The jobs of each owner that run or wait for the connection.
    jobs: Shares,
    limits: Arc<Limits>,
}

/// The rows of one owner.
pub(super) struct Rows<'a> {
    connection: &'a Connection,
    owner: &'a str,
    limits: &'a Limits,
}

/// A run of an earlier process: its owner, the run, and the URL of its webhook.
type Orphan = (Arc<str>, RunRecord, String);

impl RunStore {
    /// Opens the database, in memory if there is no `path`. Runs that an earlier process has not
    /// finished become errors; those with a webhook are returned, with its URL.
    pub(super) fn open(
        path: Option<&Path>,
        now: &Timestamp,
        limits: Arc<Limits>,
    ) -> Result<(Self, Vec<Orphan>), String> {
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
        count_usage(&connection).map_err(|error| describe(&error))?;
        let orphans = fail_unfinished(&connection, now).map_err(|error| describe(&error))?;
        let store = Self {
            connection: Arc::new(Mutex::new(connection)),
            jobs: Shares::new(1),
            limits,
        };
        Ok((store, orphans))
    }

    /// Runs `job` for this owner and commits it. A job that fails is rolled back; one that has
    /// begun ends also when its caller stops waiting.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        owner: &Arc<str>,
        job: impl FnOnce(&Rows<'_>) -> ApiResult<T> + Send + 'static,
    ) -> ApiResult<T> {
        let (owner, limits) = (owner.clone(), self.limits.clone());
        let turn = self.jobs.of(&owner).acquire_owned().await;
        let mut connection = self.connection.clone().lock_owned().await;
        let ran = spawn_blocking(move || {
            let _turn = turn;
            let transaction = connection.transaction()?;
            let done = job(&Rows {
                connection: &transaction,
                owner: &owner,
                limits: &limits,
            })?;
            transaction.commit()?;
            Ok(done)
        });
        let closed = |_| ApiError::unavailable("the store is closed");
        ran.await.map_err(closed)?
    }
}

impl Rows<'_> {
    /// Inserts a run; if there are too many, the oldest ended ones of the owner are deleted.
    ///
    /// # Errors
    /// 503, when there is no room for it.
    pub(super) fn insert_run(&self, run: &RunRecord, webhook: Option<&str>) -> ApiResult<()> {
        let max = self.limits.agent_connect_kept_runs;
        while !self.has_room("runs", 1, max)? && self.delete_oldest_run()? {}
        let text = text(run);
        self.reserve(text.len())?;
        let sql = "INSERT INTO runs (owner, doc, webhook) VALUES (?1, ?2, ?3)";
        self.execute(sql, params![self.owner, text, webhook])?;
        Ok(())
    }

    /// Makes room for a document of this length; the oldest ended runs of the owner are deleted for
    /// it.
    ///
    /// # Errors
    /// 503, when there is too little room.
    pub(super) fn reserve(&self, len: usize) -> ApiResult<()> {
        let max = self.limits.agent_connect_bytes;
        while !self.has_room("bytes", len + ROW_BYTES, max)? {
            if !self.delete_oldest_run()? {
                tracing::warn!(
                    owner = self.owner,
                    "too many bytes of Agent Connect are stored"
                );
                let what =
                    "too much is stored already (agent-connect-bytes); delete threads or runs";
                return Err(ApiError::unavailable(what));
            }
        }
        Ok(())
    }

    /// Whether the owner may add so many of what a column of `usage` counts, of which there may be
    /// `max`.
    fn has_room(&self, column: &str, more: usize, max: usize) -> SqlResult<bool> {
        let sql = format!(
            "SELECT ifnull(sum({column}) FILTER (WHERE owner = ?1), 0), ifnull(sum({column}), 0) \
             FROM usage"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        statement.query_row([self.owner], |row| {
            let (own, total) = (number(row, 0)?, number(row, 1)?);
            Ok(has_room(self.owner, own, total, more, max))
        })
    }

    /// Deletes the owner's oldest run that has ended; `false` if there is none.
    fn delete_oldest_run(&self) -> SqlResult<bool> {
        let sql = "DELETE FROM runs WHERE n = (SELECT n FROM runs INDEXED BY runs_by_owner \
             WHERE owner = ?1 AND status NOT IN ('pending', 'interrupted') ORDER BY n LIMIT 1)";
        Ok(self.execute(sql, [self.owner])? == 1)
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
        let status = wanted.status.map(|status| status.to_string());
        let agent = wanted.agent.map(|id| id.to_string());
        let read = |row: &Row<'_>| {
            let fits = wanted.metadata.is_empty() || {
                let metadata: Option<String> = row.get(1)?;
                let metadata = metadata.and_then(|text| serde_json::from_str(&text).ok());
                contains_all(&metadata.unwrap_or_default(), &wanted.metadata)
            };
            fits.then(|| row.get::<_, String>(0)).transpose()
        };
        let of_thread = thread.map_or("", |_| "AND thread = ?2");
        let sql = format!(
            "SELECT doc, doc -> '$.creation.metadata' FROM ( \
             SELECT * FROM runs WHERE owner = ?1 {of_thread} ORDER BY n DESC LIMIT ?3) \
             WHERE (?4 IS NULL OR status = ?4) AND (?5 IS NULL OR agent = ?5) ORDER BY n DESC"
        );
        let thread = thread.map(|id| id.to_string());
        let of = params![self.owner, thread, MAX_SCANNED, status, agent];
        let complete = |text: String| Ok((parsed(&text)?, text.len()));
        self.list(&sql, of, read, complete, search.page)
    }

    /// Inserts a thread; `false` when the owner has one of that id.
    ///
    /// # Errors
    /// 503, when there is no room for it; 422, when it is too long.
    pub(super) fn insert_thread(&self, thread: &Thread) -> ApiResult<bool> {
        let sql = "SELECT doc FROM threads WHERE id = ?1 AND owner = ?2";
        if self.find(sql, thread.id, |_| Ok(()))?.is_some() {
            return Ok(false);
        }
        if !self.has_room("threads", 1, self.limits.agent_connect_threads)? {
            return Err(ApiError::unavailable("too many threads are stored already"));
        }
        let text = thread_text(thread)?;
        self.reserve(text.len())?;
        let sql = "INSERT INTO threads (owner, doc) VALUES (?1, ?2)";
        self.execute(sql, [self.owner, &text])?;
        Ok(true)
    }

    /// Changes a thread and returns it.
    ///
    /// # Errors
    /// 404, when the owner has no such thread; 422, when it becomes too long; 503, when there is no
    /// room for what is added.
    pub(super) fn update_thread(
        &self,
        id: Uuid,
        change: impl FnOnce(&mut Thread),
    ) -> ApiResult<Thread> {
        let mut thread = self.thread(id)?;
        let before = text(&thread).len();
        change(&mut thread);
        let text = thread_text(&thread)?;
        if text.len() > before {
            self.reserve(text.len() - before)?;
        }
        let sql = "UPDATE threads SET doc = ?3 WHERE id = ?1 AND owner = ?2";
        self.execute(sql, [&*id.to_string(), self.owner, &text])?;
        Ok(thread)
    }

    /// A thread.
    ///
    /// # Errors
    /// 404, when the owner has no such thread.
    pub(super) fn thread(&self, id: Uuid) -> ApiResult<Thread> {
        let sql = "SELECT doc FROM threads WHERE id = ?1 AND owner = ?2";
        let found = self.find(sql, id, |row| Ok(self.with_turns(doc(row)?)?.0))?;
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
        let read = |row: &Row<'_>| {
            let thread: Thread = doc(row)?;
            let id = thread.id;
            let fits = contains_all(&thread.metadata, &wanted.metadata)
                && (wanted.status.is_none() || wanted.status == Some(self.status(id)?))
                && (wanted.values.is_empty() || contains_all(&self.values(id)?, &wanted.values));
            Ok(fits.then_some(thread))
        };
        let sql = "SELECT doc FROM threads WHERE owner = ?1 ORDER BY rowid DESC LIMIT ?2";
        let of = params![self.owner, MAX_SCANNED];
        let complete = |thread| self.with_turns(thread);
        self.list(sql, of, read, complete, search.page)
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
        self.reserve(self.turns_len(from)?)?;
        self.execute(
            "INSERT INTO turns (thread, owner, doc) SELECT ?2, owner, doc FROM turns \
             WHERE thread = ?1 AND owner = ?3 ORDER BY n",
            [&*from.to_string(), &*to.to_string(), self.owner],
        )?;
        Ok(())
    }

    /// A thread with its status and its turns, and how long these are.
    fn with_turns(&self, mut thread: Thread) -> SqlResult<(Thread, usize)> {
        thread.status = self.status(thread.id)?;
        let len = self.turns_len(thread.id)?;
        let mut turns = self.turns(thread.id)?;
        thread.values = (turns.last_mut()).map(|turn| std::mem::take(&mut turn.values));
        thread.messages = turns.into_iter().flat_map(|turn| turn.messages).collect();
        Ok((thread, len))
    }

    /// The status of a thread, which follows from its runs.
    fn status(&self, of: Uuid) -> SqlResult<ThreadStatus> {
        let sql = "SELECT doc -> 'status' FROM runs WHERE thread = ?1 AND owner = ?2 \
                   ORDER BY status = 'interrupted' DESC, status = 'pending' DESC, n DESC LIMIT 1";
        let status: Option<RunStatus> = self.find(sql, of, doc)?;
        Ok(ThreadStatus::after(status))
    }

    /// The values of the last turn of a thread.
    fn values(&self, of: Uuid) -> SqlResult<Map<String, Value>> {
        let sql = "SELECT doc -> 'values' FROM turns WHERE thread = ?1 AND owner = ?2 \
                   ORDER BY n DESC LIMIT 1";
        Ok(self.find(sql, of, doc)?.unwrap_or_default())
    }

    /// The length of the turns of a thread, in bytes.
    fn turns_len(&self, of: Uuid) -> SqlResult<usize> {
        let sql = format!(
            "SELECT ifnull(sum(octet_length(doc) + {ROW_BYTES}), 0) FROM turns \
             WHERE thread = ?1 AND owner = ?2"
        );
        let len = self.find(&sql, of, |row| number(row, 0))?;
        Ok(len.unwrap_or(0))
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

    /// A part of the rows that a query returns and that fit: `read` returns `None` for others.
    /// `complete` returns the result and its length; what exceeds [`MAX_BYTES`] is left out.
    fn list<T, U>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl Fn(&Row<'_>) -> SqlResult<Option<T>>,
        complete: impl Fn(T) -> SqlResult<(U, usize)>,
        page: ResultPage,
    ) -> ApiResult<Vec<U>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_map(params, read)?;
        let (mut results, mut bytes) = (Vec::new(), 0);
        for row in page.slice(found.filter_map(Result::transpose)) {
            let (result, len) = complete(row?)?;
            bytes += len;
            if bytes > MAX_BYTES && !results.is_empty() {
                break;
            }
            results.push(result);
        }
        Ok(results)
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
    if version != VERSION {
        let what =
            format!("its version {version} is of {age} acp-relay (this one supports {VERSION})");
        return Ok(Some(what));
    }
    transaction.execute_batch(INDEXES)?;
    transaction.commit()?;
    Ok(None)
}

/// Counts what each owner stores, now and from now on.
fn count_usage(connection: &Connection) -> SqlResult<()> {
    connection.execute_batch(
        "CREATE TEMP TABLE usage (owner TEXT PRIMARY KEY, threads INT, runs INT, bytes INT)",
    )?;
    for (table, threads, runs) in [("threads", 1, 0), ("runs", 0, 1), ("turns", 0, 0)] {
        let len = format!("octet_length(doc) + {ROW_BYTES}");
        let add = "ON CONFLICT (owner) DO UPDATE SET threads = threads + excluded.threads, \
                   runs = runs + excluded.runs, bytes = bytes + excluded.bytes";
        connection.execute_batch(&format!(
            "INSERT INTO usage SELECT owner, {threads} * count(*), {runs} * count(*), sum({len}) \
                 FROM {table} WHERE true GROUP BY owner {add};
             CREATE TEMP TRIGGER {table}_inserted AFTER INSERT ON {table} BEGIN \
                 INSERT INTO usage VALUES \
                     (new.owner, {threads}, {runs}, octet_length(new.doc) + {ROW_BYTES}) {add}; END;
             CREATE TEMP TRIGGER {table}_updated AFTER UPDATE ON {table} BEGIN \
                 UPDATE usage SET bytes = bytes + octet_length(new.doc) - octet_length(old.doc) \
                     WHERE owner = new.owner; END;
             CREATE TEMP TRIGGER {table}_deleted AFTER DELETE ON {table} BEGIN \
                 UPDATE usage SET threads = threads - {threads}, runs = runs - {runs}, \
                     bytes = bytes - octet_length(old.doc) - {ROW_BYTES} WHERE owner = old.owner; END;"
        ))?;
    }
    Ok(())
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
fn fail_unfinished(connection: &Connection, now: &Timestamp) -> SqlResult<Vec<Orphan>> {
    let lost = json!(RunOutcome::Error(RpcError::internal(INTERRUPTED)));
    let mut update = connection.prepare(
        "UPDATE runs SET doc = json_set(doc, '$.status', 'error', '$.updated_at', ?1, \
         '$.outcome', json(?2)) WHERE status IN ('pending', 'interrupted') \
         RETURNING doc, webhook, owner",
    )?;
    let failed = update.query_map([now.to_string(), lost.to_string()], |row| {
        let webhook: Option<String> = row.get(1)?;
        let orphan = |webhook| Ok((row.get(2)?, doc(row)?, webhook));
        webhook.map(orphan).transpose()
    })?;
    failed.filter_map(Result::transpose).collect()
}

/// Reads a column that counts.
fn number(row: &Row<'_>, at: usize) -> SqlResult<usize> {
    let number: i64 = row.get(at)?;
    Ok(usize::try_from(number).unwrap_or(0))
}

/// Reads the document that is the first column of a row.
fn doc<T: DeserializeOwned>(row: &Row<'_>) -> SqlResult<T> {
    parsed(&row.get::<_, String>(0)?)
}

fn parsed<T: DeserializeOwned>(text: &str) -> SqlResult<T> {
    serde_json::from_str(text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, error.into()))
}

/// The text of a thread.
///
/// # Errors
/// 422, when it is too long.
fn thread_text(thread: &Thread) -> ApiResult<String> {
    check_metadata(&thread.metadata)?;
    let text = text(thread);
    match text.len() <= MAX_THREAD_LEN {
        true => Ok(text),
        false => Err(ApiError::invalid(format!(
            "the thread is longer than {MAX_THREAD_LEN} bytes"
        ))),
    }
}

/// The text of a document.
fn text(value: &impl Serialize) -> String {
    let value: Value = json!(value);
    value.to_string()
}
