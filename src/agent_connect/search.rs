//! Search requests for agents, runs and threads.

use serde_json::{Map, Value};

use super::api_error::ApiError;
use super::fields::RequestFields;
use super::record::RunStatus;
use super::uuid::Uuid;

/// The states of a thread, as shown to clients.
pub const THREAD_STATES: [&str; 4] = ["idle", "busy", "interrupted", "error"];

/// The greatest `offset`. Many JSON readers use doubles, which skip integers beyond it.
pub const MAX_OFFSET: u64 = 8_999_999_999_999_999;

/// Which part of the results is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultPage {
    /// Number of results, 1 to 1000.
    pub limit: usize,
    /// Number of results that are skipped.
    pub offset: usize,
}

/// A search for agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSearch {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The part of the results.
    pub page: ResultPage,
}

/// A search for runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSearch {
    /// The agent they run on.
    pub agent: Option<Uuid>,
    /// Their status.
    pub status: Option<RunStatus>,
    /// Members that the metadata of the run's request must have.
    pub metadata: Map<String, Value>,
    /// The part of the results.
    pub page: ResultPage,
}

/// A search for threads.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadSearch {
    /// Their status, one of [`THREAD_STATES`].
    pub status: Option<&'static str>,
    /// Members that their metadata must have.
    pub metadata: Map<String, Value>,
    /// Members that their values must have.
    pub values: Map<String, Value>,
    /// The part of the results.
    pub page: ResultPage,
}

impl ResultPage {
    /// Reads it from a body.
    ///
    /// # Errors
    /// 422, when a member is invalid.
    pub fn read(fields: RequestFields<'_>) -> Result<Self, ApiError> {
        Self::new(fields.number("limit")?, fields.number("offset")?)
    }

    /// Builds it from query parameters.
    ///
    /// # Errors
    /// 422, when a parameter is invalid.
    pub fn new(limit: Option<u64>, offset: Option<u64>) -> Result<Self, ApiError> {
        let limit = limit.unwrap_or(10);
        if !(1..=1000).contains(&limit) {
            return Err(ApiError::invalid(
                "\"limit\" must be a number from 1 to 1000",
            ));
        }
        if offset.is_some_and(|offset| offset > MAX_OFFSET) {
            return Err(ApiError::invalid(format!(
                "\"offset\" must be a number from 0 to {MAX_OFFSET}"
            )));
        }
        let whole = |number| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Self {
            limit: whole(limit),
            offset: whole(offset.unwrap_or(0)),
        })
    }

    /// Cuts this part out of all results.
    pub fn slice<T>(self, all: impl IntoIterator<Item = T>) -> Vec<T> {
        all.into_iter().skip(self.offset).take(self.limit).collect()
    }
}

impl AgentSearch {
    /// Reads a body.
    ///
    /// # Errors
    /// 422, when a member is invalid.
    pub fn read(body: &Value) -> Result<Self, ApiError> {
        let fields = RequestFields::new(body)?;
        Ok(Self {
            name: fields.text("name")?.map(str::to_owned),
            version: fields.text("version")?.map(str::to_owned),
            page: ResultPage::read(fields)?,
        })
    }
}

impl RunSearch {
    /// Reads a body.
    ///
    /// # Errors
    /// 422, when a member is invalid.
    pub fn read(body: &Value) -> Result<Self, ApiError> {
        let fields = RequestFields::new(body)?;
        let words = RunStatus::ALL.map(|(_, word)| word);
        let status = fields.choice("status", &words)?;
        Ok(Self {
            agent: fields.uuid("agent_id")?,
            status: status.map(|at| RunStatus::ALL[at].0),
            metadata: fields.object("metadata")?.cloned().unwrap_or_default(),
            page: ResultPage::read(fields)?,
        })
    }
}

impl ThreadSearch {
    /// Reads a body.
    ///
    /// # Errors
    /// 422, when a member is invalid.
    pub fn read(body: &Value) -> Result<Self, ApiError> {
        let fields = RequestFields::new(body)?;
        let status = fields.choice("status", &THREAD_STATES)?;
        Ok(Self {
            status: status.map(|at| THREAD_STATES[at]),
            metadata: fields.object("metadata")?.cloned().unwrap_or_default(),
            values: fields.object("values")?.cloned().unwrap_or_default(),
            page: ResultPage::read(fields)?,
        })
    }
}

/// Whether an object has all these members, with these values.
#[must_use]
pub fn contains_all(object: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
    let has = |(name, value)| object.get(name) == Some(value);
    wanted.iter().all(has)
}
