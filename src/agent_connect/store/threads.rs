//! Reads and writes threads and their turns.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::Value;
use uuid::Uuid;

use super::columns::{Result, json, json_text, object, optional_uuid, uuid};
use crate::agent_connect::api::record::{RunStatus, ThreadRecord, ThreadStatus, TurnRecord};
use crate::agent_connect::api::search::{Search, ThreadFilter, contains_all};
use crate::agent_connect::api::timestamp::Timestamp;

const THREAD: &str = "id, agent, session, created, updated, metadata, setup";

/// Inserts a thread; `false` when there are `max` already, or the owner has one of that id.
pub(in crate::agent_connect) fn insert_thread(
    connection: &Connection,
    thread: &ThreadRecord,
    owner: &str,
    max: usize,
) -> Result<bool> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let inserted = connection
        .prepare_cached(
            "INSERT OR IGNORE INTO threads SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?9 \
             WHERE (SELECT count(*) FROM threads) < ?8",
        )?
        .execute(params![
            thread.id.to_string(),
            thread.agent.map(|id| id.to_string()),
            thread.session,
            thread.created.0,
            thread.updated.0,
            json_text(&thread.metadata),
            thread.setup.to_string(),
            max,
            owner,
        ])?;
    Ok(inserted == 1)
}

pub(in crate::agent_connect) fn update_thread(
    connection: &Connection,
    owner: &str,
    thread: &ThreadRecord,
) -> Result<()> {
    connection
        .prepare_cached(
            "UPDATE threads SET agent = ?2, session = ?3, updated = ?4, metadata = ?5, setup = ?6 \
             WHERE id = ?1 AND owner = ?7",
        )?
        .execute(params![
            thread.id.to_string(),
            thread.agent.map(|id| id.to_string()),
            thread.session,
            thread.updated.0,
            json_text(&thread.metadata),
            thread.setup.to_string(),
            owner,
        ])?;
    Ok(())
}

/// Reads a thread of this owner.
pub(in crate::agent_connect) fn read_thread(
    connection: &Connection,
    owner: &str,
    id: Uuid,
) -> Result<Option<ThreadRecord>> {
    connection
        .prepare_cached(&format!(
            "SELECT {THREAD} FROM threads WHERE id = ?1 AND owner = ?2"
        ))?
        .query_row([&*id.to_string(), owner], thread)
        .optional()
}

/// Whether a thread of any owner has this session.
pub(in crate::agent_connect) fn has_session(
    connection: &Connection,
    agent: Uuid,
    session: &str,
) -> Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM threads WHERE agent = ?1 AND session = ?2")?
        .exists([&*agent.to_string(), session])
}

/// Deletes a thread, its turns and its runs.
pub(in crate::agent_connect) fn delete_thread(
    connection: &Connection,
    owner: &str,
    id: Uuid,
) -> Result<()> {
    let of = [&*id.to_string(), owner];
    connection.execute("DELETE FROM runs WHERE thread = ?1 AND owner = ?2", of)?;
    connection.execute("DELETE FROM turns WHERE thread = ?1 AND owner = ?2", of)?;
    connection.execute("DELETE FROM threads WHERE id = ?1 AND owner = ?2", of)?;
    Ok(())
}

/// The status of a thread, from its runs.
pub(in crate::agent_connect) fn thread_status(
    connection: &Connection,
    owner: &str,
    id: Uuid,
) -> Result<ThreadStatus> {
    let of = [&*id.to_string(), owner];
    let mut statement = connection.prepare_cached(
        "SELECT status FROM runs WHERE thread = ?1 AND owner = ?2 \
         ORDER BY status = 'interrupted' DESC, status = 'pending' DESC, n DESC LIMIT 1",
    )?;
    let status: Option<String> = statement.query_row(of, |row| row.get(0)).optional()?;
    let status = status.as_deref().and_then(RunStatus::from_name);
    Ok(ThreadStatus::after(status))
}

/// The threads that match a search, as shown, the latest first.
pub(in crate::agent_connect) fn find_threads(
    connection: &Connection,
    owner: &str,
    search: &Search<ThreadFilter>,
) -> Result<Vec<Value>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {THREAD} FROM threads WHERE owner = ?1 ORDER BY created DESC, id"
    ))?;
    let wanted = &search.wanted;
    let found = statement.query_map([owner], thread)?;
    let shown = found.map(|thread| {
        let thread = thread?;
        if !contains_all(&thread.metadata, &wanted.metadata) {
            return Ok(None);
        }
        let status = thread_status(connection, owner, thread.id)?;
        if wanted.status.is_some_and(|one| one != status) {
            return Ok(None);
        }
        let turns = read_turns(connection, owner, thread.id)?;
        let values = turns.last().map(|turn| &turn.values);
        let fits =
            wanted.values.is_empty() || values.is_some_and(|all| contains_all(all, &wanted.values));
        Ok(fits.then(|| thread.to_json(status, &turns)))
    });
    search
        .page
        .slice(shown.filter_map(Result::transpose))
        .collect()
}

pub(in crate::agent_connect) fn insert_turn(
    connection: &Connection,
    owner: &str,
    of: Uuid,
    turn: &TurnRecord,
) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO turns (thread, run, at, vals, messages, owner) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            of.to_string(),
            turn.run.to_string(),
            turn.ended.0,
            json_text(&turn.values),
            Value::from(turn.messages.clone()).to_string(),
            owner,
        ])?;
    connection
        .prepare_cached("UPDATE threads SET updated = ?2 WHERE id = ?1 AND owner = ?3")?
        .execute(params![of.to_string(), turn.ended.0, owner])?;
    Ok(())
}

/// The turns of a thread, the oldest first.
pub(in crate::agent_connect) fn read_turns(
    connection: &Connection,
    owner: &str,
    of: Uuid,
) -> Result<Vec<TurnRecord>> {
    let mut statement = connection.prepare_cached(
        "SELECT run, at, vals, messages FROM turns WHERE thread = ?1 AND owner = ?2 ORDER BY n",
    )?;
    let turn = |row: &Row<'_>| {
        Ok(TurnRecord {
            run: uuid(row, 0)?,
            ended: Timestamp(row.get(1)?),
            values: object(row, 2)?,
            messages: json(row, 3)?.as_array().cloned().unwrap_or_default(),
        })
    };
    statement
        .query_map([&*of.to_string(), owner], turn)?
        .collect()
}

/// Copies the turns of a thread to another.
pub(in crate::agent_connect) fn copy_turns(
    connection: &Connection,
    owner: &str,
    from: Uuid,
    to: Uuid,
) -> Result<()> {
    connection.execute(
        "INSERT INTO turns (thread, run, at, vals, messages, owner) SELECT ?2, run, at, vals, \
         messages, owner FROM turns WHERE thread = ?1 AND owner = ?3 ORDER BY n",
        [&*from.to_string(), &*to.to_string(), owner],
    )?;
    Ok(())
}

fn thread(row: &Row<'_>) -> Result<ThreadRecord> {
    Ok(ThreadRecord {
        id: uuid(row, 0)?,
        agent: optional_uuid(row, 1)?,
        session: row.get(2)?,
        created: Timestamp(row.get(3)?),
        updated: Timestamp(row.get(4)?),
        metadata: object(row, 5)?,
        setup: json(row, 6)?,
    })
}
