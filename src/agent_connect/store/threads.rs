//! Reads and writes threads and their turns.

use rusqlite::{OptionalExtension as _, Result, Row, params};
use serde_json::Value;
use uuid::Uuid;

use super::owned_rows::{OwnedRows, json, json_text, word};
use crate::agent_connect::api::record::{RunStatus, ThreadRecord, ThreadStatus, TurnRecord};
use crate::agent_connect::api::search::{Search, ThreadFilter, contains_all};
use crate::agent_connect::api::timestamp::Timestamp;

const THREAD: &str = "id, agent, session, created, updated, metadata, setup";

impl OwnedRows<'_> {
    /// Inserts a thread; `false` when there are `max` already, or the owner has one of that id.
    pub(in crate::agent_connect) fn insert_thread(
        &self,
        thread: &ThreadRecord,
        max: usize,
    ) -> Result<bool> {
        let inserted = self.execute(
            "INSERT OR IGNORE INTO threads SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?9 \
             WHERE (SELECT count(*) FROM threads) < ?8",
            params![
                thread.id.to_string(),
                thread.agent.map(|id| id.to_string()),
                thread.session,
                thread.created.0,
                thread.updated.0,
                json_text(&thread.metadata),
                thread.setup.to_string(),
                i64::try_from(max).unwrap_or(i64::MAX),
                self.owner,
            ],
        )?;
        Ok(inserted == 1)
    }

    /// Reads a thread, changes it and returns it; `None` if there is none.
    pub(in crate::agent_connect) fn update_thread(
        &self,
        id: Uuid,
        change: impl FnOnce(&mut ThreadRecord),
    ) -> Result<Option<ThreadRecord>> {
        let Some(mut thread) = self.thread(id)? else {
            return Ok(None);
        };
        change(&mut thread);
        self.execute(
            "UPDATE threads SET agent = ?2, session = ?3, updated = ?4, metadata = ?5, setup = ?6 \
             WHERE id = ?1 AND owner = ?7",
            params![
                thread.id.to_string(),
                thread.agent.map(|id| id.to_string()),
                thread.session,
                thread.updated.0,
                json_text(&thread.metadata),
                thread.setup.to_string(),
                self.owner,
            ],
        )?;
        Ok(Some(thread))
    }

    /// Reads a thread.
    pub(in crate::agent_connect) fn thread(&self, id: Uuid) -> Result<Option<ThreadRecord>> {
        let sql = format!("SELECT {THREAD} FROM threads WHERE id = ?1 AND owner = ?2");
        let mut statement = self.connection.prepare_cached(&sql)?;
        statement
            .query_row([&*id.to_string(), self.owner], thread)
            .optional()
    }

    /// Whether a thread of any owner has this session.
    pub(in crate::agent_connect) fn has_session(&self, agent: Uuid, session: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM threads WHERE agent = ?1 AND session = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.exists([&*agent.to_string(), session])
    }

    /// Deletes a thread, its turns and its runs.
    pub(in crate::agent_connect) fn delete_thread(&self, id: Uuid) -> Result<()> {
        let of = [&*id.to_string(), self.owner];
        self.execute("DELETE FROM runs WHERE thread = ?1 AND owner = ?2", of)?;
        self.execute("DELETE FROM turns WHERE thread = ?1 AND owner = ?2", of)?;
        self.execute("DELETE FROM threads WHERE id = ?1 AND owner = ?2", of)?;
        Ok(())
    }

    /// A thread as shown.
    pub(in crate::agent_connect) fn shown_thread(&self, thread: &ThreadRecord) -> Result<Value> {
        let status = self.thread_status(thread.id)?;
        Ok(thread.to_json(status, &self.turns(thread.id)?))
    }

    /// The threads that match a search, as shown, the latest first.
    pub(in crate::agent_connect) fn find_threads(
        &self,
        search: &Search<ThreadFilter>,
    ) -> Result<Vec<Value>> {
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT {THREAD} FROM threads WHERE owner = ?1 ORDER BY created DESC, id"
        ))?;
        let wanted = &search.wanted;
        let found = statement.query_map([self.owner], thread)?;
        let shown = found.map(|thread| {
            let thread = thread?;
            if !contains_all(&thread.metadata, &wanted.metadata) {
                return Ok(None);
            }
            let status = self.thread_status(thread.id)?;
            if wanted.status.is_some_and(|one| one != status) {
                return Ok(None);
            }
            let turns = self.turns(thread.id)?;
            let values = turns.last().map(|turn| &turn.values);
            let fits = wanted.values.is_empty()
                || values.is_some_and(|all| contains_all(all, &wanted.values));
            Ok(fits.then(|| thread.to_json(status, &turns)))
        });
        let shown = shown.filter_map(Result::transpose);
        search.page.slice(shown).collect()
    }

    pub(in crate::agent_connect) fn insert_turn(&self, of: Uuid, turn: &TurnRecord) -> Result<()> {
        self.execute(
            "INSERT INTO turns (thread, run, at, vals, messages, owner) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                of.to_string(),
                turn.run.to_string(),
                turn.ended.0,
                json_text(&turn.values),
                json_text(&turn.messages),
                self.owner,
            ],
        )?;
        let updated = params![of.to_string(), turn.ended.0, self.owner];
        let sql = "UPDATE threads SET updated = ?2 WHERE id = ?1 AND owner = ?3";
        self.execute(sql, updated).map(drop)
    }

    /// The turns of a thread, the oldest first.
    pub(in crate::agent_connect) fn turns(&self, of: Uuid) -> Result<Vec<TurnRecord>> {
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
    pub(in crate::agent_connect) fn copy_turns(&self, from: Uuid, to: Uuid) -> Result<()> {
        self.execute(
            "INSERT INTO turns (thread, run, at, vals, messages, owner) SELECT ?2, run, at, vals, \
             messages, owner FROM turns WHERE thread = ?1 AND owner = ?3 ORDER BY n",
            [&*from.to_string(), &*to.to_string(), self.owner],
        )
        .map(drop)
    }

    /// The status of a thread, from its runs.
    fn thread_status(&self, id: Uuid) -> Result<ThreadStatus> {
        let mut statement = self.connection.prepare_cached(
            "SELECT status FROM runs WHERE thread = ?1 AND owner = ?2 \
             ORDER BY status = 'interrupted' DESC, status = 'pending' DESC, n DESC LIMIT 1",
        )?;
        let of = [&*id.to_string(), self.owner];
        let status: Option<RunStatus> = statement.query_row(of, |row| word(row, 0)).optional()?;
        Ok(ThreadStatus::after(status))
    }
}

fn thread(row: &Row<'_>) -> Result<ThreadRecord> {
    Ok(ThreadRecord {
        id: word(row, 0)?,
        agent: word(row, 1)?,
        session: row.get(2)?,
        created: Timestamp(row.get(3)?),
        updated: Timestamp(row.get(4)?),
        metadata: json(row, 5)?,
        setup: json(row, 6)?,
    })
}
