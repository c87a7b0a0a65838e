//! Search requests for agents, runs and threads, and the part of the results that is requested.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::body::{read, whole};
use super::error::{ApiError, ApiResult};
use super::run::RunStatus;
use super::thread::ThreadStatus;

/// The greatest `offset`. Many JSON readers use doubles, which skip integers beyond it.
pub const MAX_OFFSET: u64 = 8_999_999_999_999_999;

/// A search.
#[derive(Clone, Debug, PartialEq)]
pub struct Search<T> {
    /// What is searched for.
    pub wanted: T,
    /// The part of the results.
    pub page: ResultPage,
}

/// The agents searched for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AgentFilter {
    /// Their name.
    pub name: Option<String>,
    /// Their version.
    pub version: Option<String>,
}

/// The runs searched for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RunFilter {
    /// The agent they run on.
    #[serde(rename = "agent_id")]
    pub agent: Option<Uuid>,
    /// Their status.
    pub status: Option<RunStatus>,
    /// Members that the metadata of the run's request must have.
    pub metadata: Map<String, Value>,
}

/// The threads searched for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ThreadFilter {
    /// Their status.
    pub status: Option<ThreadStatus>,
    /// Members that their metadata must have.
    pub metadata: Map<String, Value>,
    /// Members that their values must have.
    pub values: Map<String, Value>,
}

/// Which part of the results is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ResultPage {
    /// Number of results, 1 to 1000.
    #[serde(deserialize_with = "whole")]
    pub limit: u64,
    /// Number of results that are skipped.
    #[serde(deserialize_with = "whole")]
    pub offset: u64,
}

impl<T: DeserializeOwned> Search<T> {
    /// Reads a body.
    ///
    /// # Errors
    /// 422, when a member is invalid.
    pub fn read(body: &Value) -> ApiResult<Self> {
        let page: ResultPage = read(body)?;
        Ok(Self {
            wanted: read(body)?,
            page: page.check()?,
        })
    }
}

impl Default for ResultPage {
    fn default() -> Self {
        Self {
            limit: 10,
            offset: 0,
        }
    }
}

impl ResultPage {
    /// Checks the bounds of its numbers.
    ///
    /// # Errors
    /// 422, when one is out of bounds.
    pub fn check(self) -> ApiResult<Self> {
        if !(1..=1000).contains(&self.limit) {
            let what = "\"limit\" must be a number from 1 to 1000";
            return Err(ApiError::invalid(what));
        }
        if self.offset > MAX_OFFSET {
            let what = format!("\"offset\" must be a number from 0 to {MAX_OFFSET}");
            return Err(ApiError::invalid(what));
        }
        Ok(self)
    }

    /// Cuts this part out of all results.
    pub fn slice<I: IntoIterator>(self, all: I) -> impl Iterator<Item = I::Item> {
        let [limit, offset] =
            [self.limit, self.offset].map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        all.into_iter().skip(offset).take(limit)
    }
}

/// Whether an object has all these members, with these values.
#[must_use]
pub fn contains_all(object: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
    let has = |(name, value)| object.get(name) == Some(value);
    wanted.iter().all(has)
}
