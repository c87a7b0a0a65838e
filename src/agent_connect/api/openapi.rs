//! The OpenAPI document of the Agent Connect API, in `openapi.json`.
//!
//! It describes this server: where Agent Connect leaves a choice to the agent, the document states
//! what is accepted here. An optional member may also be `null`.

use serde_json::{Value, json};

/// The document of a server whose URL is not known.
const DOCUMENT: &str = include_str!("openapi.json");

/// The document of a server at the URL `base`.
#[must_use]
pub fn document(base: &str) -> Value {
    let mut document: Value =
        serde_json::from_str(DOCUMENT).expect("the file in the program is JSON");
    document["servers"] = json!([{ "url": base }]);
    document
}
