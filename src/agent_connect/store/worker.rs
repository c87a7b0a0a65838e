//! The thread that owns the database connection.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::owned_rows::OwnedRows;
use super::runs;
use super::schema::{describe, migrate};
use crate::agent_connect::api::api_error::ApiError;
use crate::agent_connect::api::record::RunRecord;
use crate::agent_connect::api::timestamp::Timestamp;

/// Jobs that may be queued.
const WAITING: usize = 1024;
/// Jobs that are committed together.
const BATCH: usize = 256;

/// A handle to the database.
#[derive(Clone, Debug)]
pub(in crate::agent_connect) struct RunStore {
    jobs: mpsc::Sender<Job>,
}

/// Runs on the connection; returns what is to be done after the commit.
type Job = Box<dyn FnOnce(&Connection) -> Reply + Send>;
type Reply = Box<dyn FnOnce(Result<(), String>) + Send>;

impl RunStore {
    /// Opens the database, in memory if there is no `path`. Runs that an earlier process has not
    /// finished become errors; those with a webhook are returned, with its URL.
    pub(in crate::agent_connect) fn open(
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
        migrate(&mut connection)?;
        let orphans = runs::fail_unfinished(&connection, now).map_err(|error| describe(&error))?;
        let (jobs, waiting) = mpsc::channel(WAITING);
        thread::Builder::new()
            .name("agent-connect-store".to_owned())
            .spawn(move || serve(&connection, waiting))
            .map_err(|error: io::Error| error.to_string())?;
        Ok((Self { jobs }, orphans))
    }

    /// Runs `job` for this owner and commits it. A job that fails is rolled back.
    pub(in crate::agent_connect) async fn run<T: Send + 'static>(
        &self,
        owner: &Arc<str>,
        job: impl FnOnce(&OwnedRows<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        let owner = owner.clone();
        let (tx, rx) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let rows = OwnedRows {
                connection,
                owner: &owner,
            };
            let done = in_savepoint(&rows, job).map_err(|error| describe(&error));
            Box::new(move |committed| {
                // The caller may have stopped waiting.
                let _ = tx.send(committed.and(done));
            })
        });
        let fails = |what: &str| {
            tracing::error!("the store of threads and runs failed: {what}");
            ApiError::unavailable(format!("the store failed: {what}"))
        };
        self.jobs
            .send(job)
            .await
            .map_err(|_| fails("it is closed"))?;
        match rx.await {
            Ok(done) => done.map_err(|what| fails(&what)),
            Err(_) => Err(fails("it is closed")),
        }
    }
}

/// Runs a job in a savepoint, which is rolled back when the job fails.
fn in_savepoint<T>(
    rows: &OwnedRows<'_>,
    job: impl FnOnce(&OwnedRows<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    rows.connection.execute_batch("SAVEPOINT job")?;
    let done = job(rows);
    rows.connection.execute_batch(match done {
        Ok(_) => "RELEASE job",
        Err(_) => "ROLLBACK TO job; RELEASE job",
    })?;
    done
}

/// Creates the file, private to this user, because it holds prompts. The other files that SQLite
/// creates beside it have the same mode.
fn make_private(path: &Path) -> Result<(), String> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let about = options.open(path).and_then(|file| file.metadata());
    let mode = about
        .map_err(|error| error.to_string())?
        .permissions()
        .mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let (mode, path) = (mode & 0o777, path.display());
    Err(format!(
        "other users can read or write it (mode {mode:04o}); run `chmod go-rwx {path}`"
    ))
}

fn serve(connection: &Connection, mut waiting: mpsc::Receiver<Job>) {
    while let Some(first) = waiting.blocking_recv() {
        let begun = connection.execute_batch("BEGIN IMMEDIATE");
        let mut replies = vec![first(connection)];
        while replies.len() < BATCH
            && let Ok(job) = waiting.try_recv()
        {
            replies.push(job(connection));
        }
        let committed = begun.and_then(|()| connection.execute_batch("COMMIT"));
        if committed.is_err() {
            // ROLLBACK fails if BEGIN failed.
            let _ = connection.execute_batch("ROLLBACK");
        }
        let committed = committed.map_err(|error| describe(&error));
        for reply in replies {
            reply(committed.clone());
        }
    }
}
