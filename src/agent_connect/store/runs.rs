//! Reads and writes runs.

use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};
use serde_json::Value;
use uuid::Uuid;

use super::owned_rows::{OwnedRows, json, json_text, word};
use crate::agent_connect::api::record::{RunFailure, RunOutcome, RunRecord};
use crate::agent_connect::api::search::{RunFilter, Search, contains_all};
use crate::agent_connect::api::timestamp::Timestamp;

/// The error of a run that an earlier process has not finished.
const INTERRUPTED: &str = "the relay stopped during the run";

const RUN: &str = "id, agent, thread, status, created, updated, creation, outcome";

/// Marks the runs that an earlier process has not finished as errors. Those with a webhook are
/// returned, with its URL.
pub(super) fn fail_unfinished(
    connection: &Connection,
    now: Timestamp,
) -> Result<Vec<(RunRecord, String)>> {
    let lost = RunOutcome::Error(RunFailure::new(-32603, INTERRUPTED));
    let mut update = connection.prepare(&format!(
        "UPDATE runs SET status = 'error', updated = ?1, outcome = ?2 \
         WHERE status IN ('pending', 'interrupted') RETURNING {RUN}, webhook"
    ))?;
    let failed = update.query_map(params![now.0, json_text(&lost)], |row| {
        let webhook: Option<String> = row.get(8)?;
        webhook.map(|webhook| Ok((run(row)?, webhook))).transpose()
    })?;
    failed.filter_map(Result::transpose).collect()
}

impl OwnedRows<'_> {
    /// Inserts a run; of the ended ones of all owners only the last `keep` are kept.
    pub(in crate::agent_connect) fn insert_run(
        &self,
        run: &RunRecord,
        webhook: Option<&str>,
        keep: usize,
    ) -> Result<()> {
        self.execute(
            "INSERT INTO runs (id, agent, thread, status, version, created, updated, creation, \
             outcome, webhook, owner) VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, ?7, NULL, ?8, ?9)",
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
        self.execute(
            "DELETE FROM runs WHERE n <= ?1 AND status NOT IN ('pending', 'interrupted')",
            [oldest],
        )
        .map(drop)
    }

    /// Updates a run, unless a newer version is stored.
    pub(in crate::agent_connect) fn update_run(&self, run: &RunRecord, version: u64) -> Result<()> {
        self.execute(
            "UPDATE runs SET status = ?2, updated = ?3, outcome = ?4, version = ?5 \
             WHERE id = ?1 AND version < ?5",
            params![
                run.id.to_string(),
                run.status.to_string(),
                run.updated.0,
                run.outcome.as_ref().map(json_text),
                i64::try_from(version).unwrap_or(i64::MAX),
            ],
        )
        .map(drop)
    }

    /// Reads a run.
    pub(in crate::agent_connect) fn run(&self, id: Uuid) -> Result<Option<RunRecord>> {
        let sql = format!("SELECT {RUN} FROM runs WHERE id = ?1 AND owner = ?2");
        let mut statement = self.connection.prepare_cached(&sql)?;
        statement
            .query_row([&*id.to_string(), self.owner], run)
            .optional()
    }

    pub(in crate::agent_connect) fn delete_run(&self, id: Uuid) -> Result<()> {
        let of = [&*id.to_string(), self.owner];
        self.execute("DELETE FROM runs WHERE id = ?1 AND owner = ?2", of)
            .map(drop)
    }

    /// The runs that match a search, of one thread if it is named, the latest first.
    pub(in crate::agent_connect) fn find_runs(
        &self,
        thread: Option<Uuid>,
        search: &Search<RunFilter>,
    ) -> Result<Vec<RunRecord>> {
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT {RUN} FROM runs WHERE (?1 IS NULL OR thread = ?1) \
             AND (?2 IS NULL OR status = ?2) AND (?3 IS NULL OR agent = ?3) AND owner = ?4 \
             ORDER BY n DESC"
        ))?;
        let wanted = &search.wanted;
        let [thread, agent] = [thread, wanted.agent].map(|id| id.map(|id| id.to_string()));
        let status = wanted.status.map(|status| status.to_string());
        let found = statement.query_map(params![thread, status, agent, self.owner], run)?;
        let fits = |run: &Result<RunRecord>| {
            let Ok(run) = run else {
                return true;
            };
            let metadata = run.creation.get("metadata").and_then(Value::as_object);
            wanted.metadata.is_empty()
                || metadata.is_some_and(|all| contains_all(all, &wanted.metadata))
        };
        search.page.slice(found.filter(fits)).collect()
    }
}

fn run(row: &Row<'_>) -> Result<RunRecord> {
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
