//! The only connection to the database, and the jobs on it.

use std::fs::OpenOptions;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::owned_rows::OwnedRows;
use super::runs;
use super::schema::{create, describe};
use crate::agent_connect::api::api_error::ApiError;
use crate::agent_connect::api::record::RunRecord;
use crate::agent_connect::api::timestamp::Timestamp;

/// The database. The lock is fair, so jobs run in order.
#[derive(Clone, Debug)]
pub(in crate::agent_connect) struct RunStore(Arc<Mutex<Connection>>);

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
        create(&mut connection)?;
        let orphans = runs::fail_unfinished(&connection, now).map_err(|error| describe(&error))?;
        Ok((Self(Arc::new(Mutex::new(connection))), orphans))
    }

    /// Runs `job` for this owner and commits it. A job that fails is rolled back; one that has
    /// begun ends also when its caller stops waiting.
    pub(in crate::agent_connect) async fn run<T: Send + 'static>(
        &self,
        owner: &Arc<str>,
        job: impl FnOnce(&OwnedRows<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        let owner = owner.clone();
        let mut connection = self.0.clone().lock_owned().await;
        let ran = spawn_blocking(move || {
            let transaction = connection.transaction()?;
            let done = job(&OwnedRows {
                connection: &transaction,
                owner: &owner,
            })?;
            transaction.commit().map(|()| done)
        });
        let done = match ran.await {
            Ok(done) => done.map_err(|error| describe(&error)),
            Err(_) => Err("it is closed".to_owned()),
        };
        done.map_err(|what| {
            tracing::error!("the store of threads and runs failed: {what}");
            ApiError::unavailable(format!("the store failed: {what}"))
        })
    }
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
