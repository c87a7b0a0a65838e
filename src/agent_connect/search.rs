//! Search requests for agents, runs and threads.

use serde_json::{Map, Value};

use super::fault::Fault;
use super::fields::Fields;
use super::record::Status;
use super::uuid::Uuid;

/// The states of a thread, as shown to clients.
pub const THREAD_STATES: [&str; 4] = ["idle", "busy", "interrupted", "error"];

/// The greatest `offset`. Many JSON readers use doubles, which skip integers beyond it.
pub const MOST_PASSED_OVER: u64 = 8_999_999_999_999_999;

/// Which part of the results is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Number of results, 1 to 1000.
    pub limit: usize,
    /// Number of results that are skipped.
    pub offset: usize,
}

/// A search for agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agents {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The part of the results.
    pub page: Page,
}

/// A search for runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    /// The agent they run on.
    pub agent: Option<Uuid>,
    /// Their status.
    pub status: Option<Status>,
    /// Members that the metadata of the run's request must have.
    pub metadata: Map<String, Value>,
    /// The part of the results.
    pub page: Page,
}

/// A search for threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Threads {
    /// Their status, one of [`THREAD_STATES`].
    pub status: Option<&'static str>,
    /// Members that their metadata must have.
    pub metadata: Map<String, Value>,
    /// Members that their values must have.
    pub values: Map<String, Value>,
    /// The part of the results.
    pub page: Page,
}

impl Page {
    /// Reads it from a body.
    ///
    /// # Errors
    /// 422, when a member is invalid.
    pub fn read(fields: Fields<'_>) -> Result<Self, Fault> {
        Self::of(fields.number("limit")?, fields.number("offset")?)
    }

    /// Builds it from query parameters.
    ///
    /// # Errors
    /// 422, when a parameter is invalid.
    pub fn of(limit: Option<u64>, offset: Option<u64>) -> Result<Self, Fault> {
        let limit = limit.unwrap_or(10);
        if !(1..=1000).contains(&limit) {
            return Err(Fault::invalid("\"limit\" must be a number from 1 to 1000"));
        }
        if offset.is_some_and(|offset| offset > MOST_PASSED_OVER) {
            return Err(Fault::invalid(format!(
                "\"offset\" must be a number from 0 to {MOST_PASSED_OVER}"
            )));
        }
        let whole = |number| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Self {
            limit: whole(limit),
            offset: whole(offset.unwrap_or(0)),
        })
    }

    /// Cuts this part out of all results.
    pub fn of_all<T>(self, all: impl IntoIterator<Item = T>) -> Vec<T> {
        all.into_iter().skip(self.offset).take(self.limit).collect()
    }
}

impl Agents {
    /// Reads a body.
    ///
    /// # Errors
    /// 422, when a member is invalid.
    pub fn read(body: &Value) -> Result<Self, Fault> {
        let fields = Fields::of(body)?;
        Ok(Self {
            name: fields.text("name")?.map(str::to_owned),
            version: fields.text("version")?.map(str::to_owned),
            page: Page::read(fields)?,
        })
    }
}

impl Runs {
    /// Reads a body.
    ///
    /// # Errors
    /// 422, when a member is invalid.
    pub fn read(body: &Value) -> Result<Self, Fault> {
        let fields = Fields::of(body)?;
        let words = Status::ALL.map(|(_, word)| word);
        let status = fields.word("status", &words)?;
        Ok(Self {
            agent: fields.uuid("agent_id")?,
            status: status.map(|at| Status::ALL[at].0),
            metadata: fields.object("metadata")?.cloned().unwrap_or_default(),
            page: Page::read(fields)?,
        })
    }
}

impl Threads {
    /// Reads a body.
    ///
    /// # Errors
    /// 422, when a member is invalid.
    pub fn read(body: &Value) -> Result<Self, Fault> {
        let fields = Fields::of(body)?;
        let status = fields.word("status", &THREAD_STATES)?;
        Ok(Self {
            status: status.map(|at| THREAD_STATES[at]),
            metadata: fields.object("metadata")?.cloned().unwrap_or_default(),
            values: fields.object("values")?.cloned().unwrap_or_default(),
            page: Page::read(fields)?,
        })
    }
}

/// Whether an object has all these members, with these values.
#[must_use]
pub fn has_all(object: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
    let has = |(name, value)| object.get(name) == Some(value);
    wanted.iter().all(has)
}
