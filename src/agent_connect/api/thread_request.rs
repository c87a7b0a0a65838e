//! The bodies of requests that create or change a thread.

use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

/// A request to create a thread.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ThreadCreate {
    /// Its id, if the client chooses it.
    #[serde(rename = "thread_id")]
    pub id: Option<Uuid>,
    /// The client's metadata.
    pub metadata: Map<String, Value>,
    /// What happens when a thread of this id exists.
    pub if_exists: IfExists,
}

/// What happens when a thread of the requested id exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IfExists {
    /// The request is rejected with 409.
    #[default]
    Raise,
    /// The thread is shown.
    DoNothing,
}

/// A request to change a thread.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ThreadPatch {
    /// Members of the metadata to set.
    pub metadata: Map<String, Value>,
    /// The state that is changed; only checked.
    pub checkpoint: Map<String, Value>,
    /// Cannot be changed.
    pub values: Option<Value>,
    /// Cannot be changed.
    pub messages: Option<Value>,
}
