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

#[cfg(test)]
mod tests {
    use super::super::page::MAX_OFFSET;
    use super::super::run_request::{MAX_DELAY, MAX_RECURSION, MAX_WEBHOOK_LEN};
    use super::*;

    #[test]
    fn limits_are_those_of_the_program() {
        let components = &document("")["components"];
        for (pointer, limit) in [
            ("parameters/offset/schema/maximum", MAX_OFFSET),
            (
                "schemas/ThreadSearchRequest/properties/offset/maximum",
                MAX_OFFSET,
            ),
            (
                "schemas/RunSearchRequest/properties/offset/maximum",
                MAX_OFFSET,
            ),
            (
                "schemas/AgentSearchRequest/properties/offset/maximum",
                MAX_OFFSET,
            ),
            (
                "schemas/RunCreateStateful/properties/config/properties/recursion_limit/maximum",
                MAX_RECURSION,
            ),
            (
                "schemas/RunCreateStateful/properties/after_seconds/maximum",
                MAX_DELAY,
            ),
            (
                "schemas/RunCreateStateless/properties/webhook/maxLength",
                MAX_WEBHOOK_LEN as u64,
            ),
        ] {
            let shown = components.pointer(&format!("/{pointer}"));
            assert_eq!(shown, Some(&json!(limit)), "{pointer}");
        }
    }

    #[test]
    fn every_reference_has_a_target() {
        let document = document("");
        let text = document.to_string();
        for (at, _) in text.match_indices("#/") {
            let pointer = text[at + 1..].split('"').next().expect("a pointer");
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
