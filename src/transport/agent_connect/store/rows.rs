//! Runs, threads and turns, in and out of the database.
//!
//! Not here: what the tables look like (see `schema`).

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::{Map, Value};

use crate::agent_connect::moment::Moment;
use crate::agent_connect::record::{Outcome, Run, Status, Thread, Turn};
use crate::agent_connect::search::{self, Page, has_all};
use crate::agent_connect::uuid::Uuid;

type Result<T> = rusqlite::Result<T>;

/// What is told of a run that the relay which began it has not finished.
const LOST: &str = "the relay ended while the run was going on";

const RUN: &str = "id, agent, thread, status, created, updated, creation, outcome";
const THREAD: &str = "id, agent, session, created, updated, metadata, setup";

/// Makes errors of the runs that nobody will finish any more. Those that somebody wants to hear of
/// come back, each with its webhook.
pub(super) fn fail_unfinished(connection: &Connection, now: Moment) -> Result<Vec<(Run, String)>> {
    let lost = Outcome::Error {
        code: -32603,
        what: LOST.to_owned(),
    };
    let open = "status IN ('pending', 'interrupted')";
    let mut wanted = connection.prepare(&format!(
        "SELECT {RUN}, webhook FROM runs WHERE {open} AND webhook IS NOT NULL"
    ))?;
    let mut orphans = wanted
        .query_map([], |row| Ok((run(row)?, row.get(8)?)))?
        .collect::<Result<Vec<(Run, String)>>>()?;
    for (run, _) in &mut orphans {
        (run.status, run.updated) = (Status::Error, now);
        run.outcome = Some(lost.clone());
    }
    connection.execute(
        &format!("UPDATE runs SET status = 'error', updated = ?1, outcome = ?2 WHERE {open}"),
        params![now.0, lost.kept().to_string()],
    )?;
    Ok(orphans)
}

/// A new run; of the old ones only the last `keep` are kept.
pub(in super::super) fn insert_run(
    connection: &Connection,
    run: &Run,
    owner: &str,
    webhook: Option<&str>,
    keep: usize,
) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO runs (id, agent, thread, status, version, created, updated, creation, \
             outcome, webhook, owner) VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, ?7, NULL, ?8, ?9)",
        )?
        .execute(params![
            run.id.to_string(),
            run.agent.to_string(),
            run.thread.map(|id| id.to_string()),
            run.status.word(),
            run.created.0,
            run.updated.0,
            run.creation.to_string(),
            webhook,
            owner,
        ])?;
    let oldest = connection.last_insert_rowid() - i64::try_from(keep).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "DELETE FROM runs WHERE n <= ?1 AND status NOT IN ('pending', 'interrupted')",
        )?
        .execute([oldest])?;
    Ok(())
}

/// A run's news, unless newer ones are known.
pub(in super::super) fn update_run(connection: &Connection, run: &Run, version: u64) -> Result<()> {
    connection
        .prepare_cached(
            "UPDATE runs SET status = ?2, updated = ?3, outcome = ?4, version = ?5 \
             WHERE id = ?1 AND version < ?5",
        )?
        .execute(params![
            run.id.to_string(),
            run.status.word(),
            run.updated.0,
            run.outcome
                .as_ref()
                .map(|outcome| outcome.kept().to_string()),
            i64::try_from(version).unwrap_or(i64::MAX),
        ])?;
    Ok(())
}

/// A run, if it is this principal's.
pub(in super::super) fn read_run(
    connection: &Connection,
    owner: &str,
    id: Uuid,
) -> Result<Option<Run>> {
    connection
        .prepare_cached(&format!(
            "SELECT {RUN} FROM runs WHERE id = ?1 AND owner = ?2"
        ))?
        .query_row([&*id.to_string(), owner], run)
        .optional()
}

pub(in super::super) fn delete_run(connection: &Connection, id: Uuid) -> Result<()> {
    connection.execute("DELETE FROM runs WHERE id = ?1", [id.to_string()])?;
    Ok(())
}

/// The runs that are looked for, of one thread if it is named, the latest first.
pub(in super::super) fn find_runs(
    connection: &Connection,
    owner: &str,
    thread: Option<Uuid>,
    wanted: &search::Runs,
) -> Result<Vec<Run>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {RUN} FROM runs WHERE (?1 IS NULL OR thread = ?1) AND (?2 IS NULL OR status = ?2) \
         AND (?3 IS NULL OR agent = ?3) AND owner = ?4 ORDER BY n DESC"
    ))?;
    let thread = thread.map(|id| id.to_string());
    let agent = wanted.agent.map(|id| id.to_string());
    let found = statement.query_map(
        params![thread, wanted.status.map(Status::word), agent, owner],
        run,
    )?;
    let fits = |run: &Result<Run>| {
        let Ok(run) = run else {
            return true;
        };
        let metadata = run.creation.get("metadata").and_then(Value::as_object);
        wanted.metadata.is_empty() || metadata.is_some_and(|all| has_all(all, &wanted.metadata))
    };
    wanted.page.of_all(found.filter(fits)).into_iter().collect()
}

/// A new thread; `false` when there are `most` already, or one of that name and principal.
pub(in super::super) fn insert_thread(
    connection: &Connection,
    thread: &Thread,
    owner: &str,
    most: usize,
) -> Result<bool> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let made = connection
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
            text(&thread.metadata),
            thread.setup.to_string(),
            most,
            owner,
        ])?;
    Ok(made == 1)
}

pub(in super::super) fn update_thread(
    connection: &Connection,
    owner: &str,
    thread: &Thread,
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
            text(&thread.metadata),
            thread.setup.to_string(),
            owner,
        ])?;
    Ok(())
}

/// A thread, if it is this principal's.
pub(in super::super) fn read_thread(
    connection: &Connection,
    owner: &str,
    id: Uuid,
) -> Result<Option<Thread>> {
    connection
        .prepare_cached(&format!(
            "SELECT {THREAD} FROM threads WHERE id = ?1 AND owner = ?2"
        ))?
        .query_row([&*id.to_string(), owner], thread)
        .optional()
}

/// Whether a session is that of a thread, whosever it is.
pub(in super::super) fn has_session(
    connection: &Connection,
    agent: Uuid,
    session: &str,
) -> Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM threads WHERE agent = ?1 AND session = ?2")?
        .exists([&*agent.to_string(), session])
}

/// Forgets a thread, its turns and its runs.
pub(in super::super) fn delete_thread(
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

/// Where a thread stands: as its runs do.
pub(in super::super) fn thread_status(
    connection: &Connection,
    owner: &str,
    id: Uuid,
) -> Result<&'static str> {
    let of = [&*id.to_string(), owner];
    let mut statement = connection.prepare_cached(
        "SELECT status FROM runs WHERE thread = ?1 AND owner = ?2 \
         ORDER BY status = 'interrupted' DESC, status = 'pending' DESC, n DESC LIMIT 1",
    )?;
    let status: Option<String> = statement.query_row(of, |row| row.get(0)).optional()?;
    Ok(match status.as_deref().and_then(Status::of) {
        Some(Status::Pending) => "busy",
        Some(Status::Interrupted) => "interrupted",
        Some(Status::Error | Status::Timeout) => "error",
        Some(Status::Success) | None => "idle",
    })
}

/// The threads that are looked for, as they are shown, the latest first.
pub(in super::super) fn find_threads(
    connection: &Connection,
    owner: &str,
    wanted: &search::Threads,
) -> Result<Vec<Value>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {THREAD} FROM threads WHERE owner = ?1 ORDER BY created DESC, id"
    ))?;
    let mut found = Vec::new();
    let mut passed = 0;
    let Page { limit, offset } = wanted.page;
    for thread in statement.query_map([owner], thread)? {
        let thread = thread?;
        if !has_all(&thread.metadata, &wanted.metadata) {
            continue;
        }
        let status = thread_status(connection, owner, thread.id)?;
        if wanted.status.is_some_and(|one| one != status) {
            continue;
        }
        let turns = read_turns(connection, owner, thread.id)?;
        let values = turns.last().map(|turn| &turn.values);
        if !wanted.values.is_empty() && !values.is_some_and(|all| has_all(all, &wanted.values)) {
            continue;
        }
        passed += 1;
        if passed > offset {
            found.push(thread.shown(status, &turns));
        }
        if found.len() == limit {
            break;
        }
    }
    Ok(found)
}

pub(in super::super) fn insert_turn(
    connection: &Connection,
    owner: &str,
    of: Uuid,
    turn: &Turn,
) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO turns (thread, run, at, vals, messages, owner) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            of.to_string(),
            turn.run.to_string(),
            turn.at.0,
            text(&turn.values),
            Value::from(turn.messages.clone()).to_string(),
            owner,
        ])?;
    connection
        .prepare_cached("UPDATE threads SET updated = ?2 WHERE id = ?1 AND owner = ?3")?
        .execute(params![of.to_string(), turn.at.0, owner])?;
    Ok(())
}

/// What was said in a thread, the first first.
pub(in super::super) fn read_turns(
    connection: &Connection,
    owner: &str,
    of: Uuid,
) -> Result<Vec<Turn>> {
    let mut statement = connection.prepare_cached(
        "SELECT run, at, vals, messages FROM turns WHERE thread = ?1 AND owner = ?2 ORDER BY n",
    )?;
    let turn = |row: &Row<'_>| {
        Ok(Turn {
            run: uuid(row, 0)?,
            at: Moment(row.get(1)?),
            values: object(row, 2)?,
            messages: json(row, 3)?.as_array().cloned().unwrap_or_default(),
        })
    };
    statement
        .query_map([&*of.to_string(), owner], turn)?
        .collect()
}

/// Gives a thread the turns of another.
pub(in super::super) fn copy_turns(
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

fn run(row: &Row<'_>) -> Result<Run> {
    let status: String = row.get(3)?;
    let outcome: Option<String> = row.get(7)?;
    let outcome = outcome.map(|_| json(row, 7)).transpose()?;
    Ok(Run {
        id: uuid(row, 0)?,
        agent: uuid(row, 1)?,
        thread: optional_uuid(row, 2)?,
        status: Status::of(&status).ok_or_else(|| odd(3))?,
        created: Moment(row.get(4)?),
        updated: Moment(row.get(5)?),
        creation: json(row, 6)?,
        outcome: outcome.as_ref().and_then(Outcome::read),
    })
}

fn thread(row: &Row<'_>) -> Result<Thread> {
    Ok(Thread {
        id: uuid(row, 0)?,
        agent: optional_uuid(row, 1)?,
        session: row.get(2)?,
        created: Moment(row.get(3)?),
        updated: Moment(row.get(4)?),
        metadata: object(row, 5)?,
        setup: json(row, 6)?,
    })
}

fn uuid(row: &Row<'_>, at: usize) -> Result<Uuid> {
    optional_uuid(row, at)?.ok_or_else(|| odd(at))
}

fn optional_uuid(row: &Row<'_>, at: usize) -> Result<Option<Uuid>> {
    let text: Option<String> = row.get(at)?;
    text.map(|text| Uuid::read(&text).ok_or_else(|| odd(at)))
        .transpose()
}

fn json(row: &Row<'_>, at: usize) -> Result<Value> {
    let text: String = row.get(at)?;
    serde_json::from_str(&text).map_err(|_| odd(at))
}

fn object(row: &Row<'_>, at: usize) -> Result<Map<String, Value>> {
    match json(row, at)? {
        Value::Object(map) => Ok(map),
        _ => Err(odd(at)),
    }
}

fn text(map: &Map<String, Value>) -> String {
    Value::Object(map.clone()).to_string()
}

/// A column holds what was never written there.
fn odd(at: usize) -> rusqlite::Error {
    let what = "a value that no relay has written".into();
    rusqlite::Error::FromSqlConversionFailure(at, Type::Text, what)
}

#[cfg(test)]
mod tests {
    use super::super::schema::settle;
    use super::*;

    #[test]
    fn what_nobody_finishes_any_more_is_an_error() {
        let mut connection = Connection::open_in_memory().expect("memory");
        settle(&mut connection).expect("settled");
        let run = |n: u8, status| Run {
            id: Uuid::random([n; 16]),
            agent: Uuid::random([0; 16]),
            thread: None,
            status,
            created: Moment(1),
            updated: Moment(1),
            creation: Value::Null,
            outcome: None,
        };
        let runs = [
            run(1, Status::Pending),
            run(2, Status::Interrupted),
            run(3, Status::Success),
        ];
        for run in &runs {
            insert_run(&connection, run, "o", Some("https://x"), 10).expect("inserted");
        }
        let orphans = fail_unfinished(&connection, Moment(2)).expect("it is in memory");
        assert_eq!(orphans.len(), 2);
        let now = |run: &Run| {
            let read = read_run(&connection, "o", run.id).expect("read");
            read.expect("it is there")
        };
        assert_eq!(
            runs.each_ref().map(|run| now(run).status),
            [Status::Error, Status::Error, Status::Success]
        );
        assert!(matches!(now(&runs[0]).outcome, Some(Outcome::Error { .. })));
        assert!(orphans.iter().all(|(run, _)| now(run) == *run));
    }
}
