//! Search requests for agents, runs and threads, and the part of the results that is requested.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::body::read;
use super::error::ApiResult;
use super::page::ResultPage;
use super::run::RunStatus;
use super::thread::ThreadStatus;

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

/// Whether an object has all these members, with these values.
#[must_use]
pub fn contains_all(object: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
    let has = |(name, value)| object.get(name) == Some(value);
    wanted.iter().all(has)
}
