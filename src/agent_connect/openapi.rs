//! The OpenAPI document of what is served.
//!
//! Not here: the serving.

use serde_json::{Value, json};

/// The document.
#[must_use]
pub fn document(base: &str) -> Value {
    json!({ "openapi": "3.1.0", "servers": [{ "url": base }] })
}
