//! The OpenAPI document of the Agent Connect API.
//!
//! It describes this server: where Agent Connect leaves a choice to the agent, the document states
//! what is accepted here. The schemas are in `openapi_schemas.json`; an optional member may also be
//! `null`.

use serde_json::{Map, Value, json};

use super::page::MAX_OFFSET;

/// The schemas, by name.
const SCHEMAS: &str = include_str!("openapi_schemas.json");

/// An operation.
struct Operation {
    method: &'static str,
    path: &'static str,
    /// Its `operationId`, the same as in the published document where that has one.
    id: &'static str,
    summary: &'static str,
    query: &'static [&'static str],
    /// The name of its body's schema.
    body: Option<&'static str>,
    success: Success,
    /// Error statuses besides those that all operations share.
    errors: &'static [u16],
}

/// The response on success.
#[derive(Clone, Copy)]
enum Success {
    NoContent,
    One(&'static str),
    Many(&'static str),
    /// 204 when the wait times out.
    OneOrNone(&'static str),
    Events,
}

use Success::{Events, Many, NoContent, One, OneOrNone};

#[rustfmt::skip]
const OPERATIONS: &[Operation] = &[
    op("post", "/agents/search", "search_agents", "Search agents", &[], Some("AgentSearchRequest"), Many("Agent"), &[]),
    op("get", "/agents/{agent_id}", "get_agent_by_id", "Get an agent", &[], None, One("Agent"), &[404]),
    op("get", "/agents/{agent_id}/descriptor", "get_acp_descriptor_by_id", "Get an agent's descriptor", &[], None, One("AgentACPDescriptor"), &[404]),
    op("get", "/agents/{agent_id}/manifest", "get_manifest_by_id", "Get an agent's manifest (v0.1)", &[], None, One("AgentACPDescriptor"), &[404]),
    op("get", "/agents/agent/{agent_id}/manifest", "get_agent_manifest_by_id", "Get an agent's manifest (before v0.1)", &[], None, One("AgentACPDescriptor"), &[404]),
    op("post", "/threads", "create_thread", "Create a thread, and its ACP session", &[], Some("ThreadCreate"), One("Thread"), &[409]),
    op("post", "/threads/search", "search_threads", "Search threads", &[], Some("ThreadSearchRequest"), Many("Thread"), &[]),
    op("get", "/threads/{thread_id}", "get_thread", "Get a thread", &[], None, One("Thread"), &[404]),
    op("patch", "/threads/{thread_id}", "patch_thread", "Change a thread's metadata", &[], Some("ThreadPatch"), One("Thread"), &[404]),
    op("delete", "/threads/{thread_id}", "delete_thread", "Delete a thread", &[], None, NoContent, &[404, 409]),
    op("get", "/threads/{thread_id}/state", "get_thread_state", "Get a thread's state (v0.1)", &[], None, One("State"), &[404]),
    op("get", "/threads/{thread_id}/history", "get_thread_history", "Get a thread's past states", &["limit", "before"], None, Many("ThreadState"), &[404]),
    op("post", "/threads/{thread_id}/copy", "copy_thread", "Copy a thread, where the agent can fork a session", &[], None, One("Thread"), &[404, 409]),
    op("get", "/threads/{thread_id}/runs", "list_thread_runs", "List the runs of a thread", &["limit", "offset"], None, Many("Run"), &[404]),
    op("post", "/threads/{thread_id}/runs", "create_thread_run", "Start a run", &[], Some("RunCreateStateful"), One("Run"), &[404, 409]),
    op("post", "/threads/{thread_id}/runs/wait", "create_and_wait_for_thread_run_output", "Start a run and wait for its output", &["block_timeout"], Some("RunCreateStateful"), OneOrNone("RunWaitResponse"), &[404, 409]),
    op("post", "/threads/{thread_id}/runs/stream", "create_and_stream_thread_run_output", "Start a run and stream its output", &[], Some("RunCreateStateful"), Events, &[404, 409]),
    op("get", "/threads/{thread_id}/runs/{run_id}", "get_thread_run", "Get a run", &[], None, One("Run"), &[404]),
    op("post", "/threads/{thread_id}/runs/{run_id}", "resume_thread_run", "Answer a run's interrupt", &[], Some("ResumePayload"), One("Run"), &[404, 409]),
    op("delete", "/threads/{thread_id}/runs/{run_id}", "delete_thread_run", "Delete a run", &[], None, NoContent, &[404]),
    op("get", "/threads/{thread_id}/runs/{run_id}/wait", "wait_for_thread_run_output", "Wait for a run's output", &["block_timeout"], None, OneOrNone("RunWaitResponse"), &[404]),
    op("get", "/threads/{thread_id}/runs/{run_id}/output", "get_thread_run_output", "Wait for a run's output (v0.1)", &["block_timeout"], None, OneOrNone("RunOutputOld"), &[404]),
    op("get", "/threads/{thread_id}/runs/{run_id}/stream", "stream_thread_run_output", "Stream a run's output", &[], None, Events, &[404]),
    op("post", "/threads/{thread_id}/runs/{run_id}/cancel", "cancel_thread_run", "Cancel a run", &["wait", "action"], None, NoContent, &[404, 409]),
    op("post", "/runs", "create_stateless_run", "Start a run", &[], Some("RunCreateStateless"), One("Run"), &[404, 409]),
    op("post", "/runs/wait", "create_and_wait_for_stateless_run_output", "Start a run and wait for its output", &["block_timeout"], Some("RunCreateStateless"), OneOrNone("RunWaitResponse"), &[404, 409]),
    op("post", "/runs/stream", "create_and_stream_stateless_run_output", "Start a run and stream its output", &[], Some("RunCreateStateless"), Events, &[404, 409]),
    op("post", "/runs/search", "search_stateless_runs", "Search runs", &[], Some("RunSearchRequest"), Many("Run"), &[]),
    op("get", "/runs/{run_id}", "get_stateless_run", "Get a run", &[], None, One("Run"), &[404]),
    op("post", "/runs/{run_id}", "resume_stateless_run", "Answer a run's interrupt", &[], Some("ResumePayload"), One("Run"), &[404, 409]),
    op("delete", "/runs/{run_id}", "delete_stateless_run", "Delete a run", &[], None, NoContent, &[404]),
    op("get", "/runs/{run_id}/wait", "wait_for_stateless_run_output", "Wait for a run's output", &["block_timeout"], None, OneOrNone("RunWaitResponse"), &[404]),
    op("get", "/runs/{run_id}/output", "get_run_output", "Wait for a run's output (v0.1)", &["block_timeout"], None, OneOrNone("RunOutputOld"), &[404]),
    op("get", "/runs/{run_id}/stream", "stream_stateless_run_output", "Stream a run's output", &[], None, Events, &[404]),
    op("get", "/runs/{run_id}/threadstate", "get_run_thread_state", "Get the state of a run's thread (v0.1)", &[], None, One("State"), &[404]),
    op("post", "/runs/{run_id}/cancel", "cancel_stateless_run", "Cancel a run", &["wait", "action"], None, NoContent, &[404, 409]),
];

#[expect(clippy::too_many_arguments, reason = "it is a row of the table above")]
const fn op(
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    query: &'static [&'static str],
    body: Option<&'static str>,
    success: Success,
    errors: &'static [u16],
) -> Operation {
    Operation {
        method,
        path,
        id,
        summary,
        query,
        body,
        success,
        errors,
    }
}

/// The document of a server at the URL `base`.
#[must_use]
pub fn document(base: &str) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in OPERATIONS {
        let item = paths.entry(operation.path).or_insert_with(|| json!({}));
        item[operation.method] = operation.to_json();
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Agent Connect Protocol, served by acp-relay",
            "version": "0.2.3",
            "description": "ACP agents (Agent Client Protocol) behind AGNTCY's Agent Connect \
                            Protocol: a thread is a session, a run is a turn.",
        },
        "servers": [{ "url": if base.is_empty() { "/" } else { base } }],
        "paths": paths,
        "components": { "schemas": schemas() },
    })
}

impl Operation {
    fn to_json(&self) -> Value {
        let named = self
            .path
            .split('/')
            .filter_map(|part| part.strip_prefix('{'));
        let named = named.map(|part| {
            let name = part.trim_end_matches('}');
            // An agent can be named by its name as well.
            let schema = match name {
                "agent_id" => json!({ "type": "string", "minLength": 1 }),
                _ => json!({ "type": "string", "format": "uuid" }),
            };
            json!({ "name": name, "in": "path", "required": true, "schema": schema })
        });
        let query = self.query.iter().map(|name| {
            json!({ "name": name, "in": "query", "required": false, "schema": parameter(name) })
        });
        let parameters: Vec<Value> = named.chain(query).collect();
        let mut shown = json!({
            "operationId": self.id,
            "summary": self.summary,
            "parameters": parameters,
            "responses": self.responses(),
        });
        if let Some(schema) = self.body {
            // An empty body counts as an empty object; a run needs an input.
            shown["requestBody"] = json!({
                "required": schema.starts_with("RunCreate"),
                "content": content(&reference(schema)),
            });
        }
        shown
    }

    fn responses(&self) -> Value {
        let success =
            |schema: Value| json!({ "description": "Success", "content": content(&schema) });
        let nothing = json!({ "description": "No content" });
        let mut responses = Map::new();
        let bodies: &[(&str, Value)] = &match self.success {
            NoContent => vec![("204", nothing)],
            One(name) => vec![("200", success(reference(name)))],
            Many(name) => vec![(
                "200",
                success(json!({ "type": "array", "items": reference(name) })),
            )],
            OneOrNone(name) => vec![("200", success(reference(name))), ("204", nothing)],
            Events => {
                let event = reference("RunOutputStream");
                let stream = json!({ "text/event-stream": { "schema": event } });
                let about = "Events, one after the other";
                vec![("200", json!({ "description": about, "content": stream }))]
            }
        };
        for (status, response) in bodies {
            responses.insert((*status).to_owned(), response.clone());
        }
        let shared = [401, 403, 413, 415, 422, 503];
        for status in self.errors.iter().chain(&shared) {
            let about = match status {
                401 => "The credentials are missing, unknown or revoked",
                403 => "Requests from this origin are not allowed",
                404 => "Not found",
                409 => "The request conflicts with the current state",
                413 => "The body is too long",
                415 => "The body is not JSON",
                422 => "The request is invalid or not supported",
                _ => "Temporarily unavailable",
            };
            let schema = reference("ErrorResponse");
            let response = json!({ "description": about, "content": content(&schema) });
            responses.insert(status.to_string(), response);
        }
        Value::Object(responses)
    }
}

fn parameter(name: &str) -> Value {
    match name {
        "limit" => json!({ "type": "integer", "minimum": 1, "maximum": 1000, "default": 10 }),
        "offset" => {
            json!({ "type": "integer", "minimum": 0, "maximum": MAX_OFFSET, "default": 0 })
        }
        "wait" => json!({ "type": "boolean", "default": false }),
        "action" => json!({ "type": "string", "enum": ["interrupt"], "default": "interrupt" }),
        "block_timeout" => json!({ "type": "number", "minimum": 0 }),
        _ => json!({ "type": "string" }),
    }
}

fn schemas() -> Value {
    serde_json::from_str(SCHEMAS).expect("the file in the program is JSON")
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn content(schema: &Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

#[cfg(test)]
mod tests {
    use super::super::run_request::{MAX_DELAY, MAX_RECURSION, MAX_WEBHOOK_LEN};
    use super::*;

    const RECURSION_LIMIT: &str =
        "/RunCreateStateful/properties/config/properties/recursion_limit/maximum";

    #[test]
    fn limits_are_those_of_the_program() {
        let schemas = schemas();
        for (pointer, limit) in [
            ("/ThreadSearchRequest/properties/offset/maximum", MAX_OFFSET),
            ("/RunSearchRequest/properties/offset/maximum", MAX_OFFSET),
            ("/AgentSearchRequest/properties/offset/maximum", MAX_OFFSET),
            (RECURSION_LIMIT, MAX_RECURSION),
            (
                "/RunCreateStateful/properties/after_seconds/maximum",
                MAX_DELAY,
            ),
            (
                "/RunCreateStateless/properties/webhook/maxLength",
                MAX_WEBHOOK_LEN as u64,
            ),
        ] {
            assert_eq!(schemas.pointer(pointer), Some(&json!(limit)), "{pointer}");
        }
    }

    #[test]
    fn every_referenced_schema_exists() {
        let text = document("").to_string();
        let known = schemas();
        for (at, _) in text.match_indices("#/components/schemas/") {
            let name = text[at + 21..].split('"').next().expect("a name");
            assert!(known.get(name).is_some(), "{name}");
        }
    }
}
