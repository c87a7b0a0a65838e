//! The schemas of the OpenAPI document.
//!
//! An optional member may also be `null`.

use serde_json::{Map, Value, json};

use crate::agent_connect::run_request::MAX_RECURSION;
use crate::agent_connect::search::MAX_OFFSET;

/// All schemas, by name.
pub(super) fn schemas() -> Value {
    let mut all = Map::new();
    for part in [
        agents(),
        messages(),
        run_requests(),
        threads(),
        runs(),
        outputs(),
    ] {
        if let Value::Object(part) = part {
            all.extend(part);
        }
    }
    let error = json!({ "type": "string", "description": "What happened, for a person" });
    all.insert("ErrorResponse".to_owned(), error);
    Value::Object(all)
}

fn agents() -> Value {
    json!({
        "AgentSearchRequest": object(&json!({
            "name": or_null("string"),
            "version": or_null("string"),
            "limit": limit(),
            "offset": offset(),
        }), &[]),
        "Agent": object(&json!({
            "agent_id": uuid(),
            "metadata": reference("AgentMetadata"),
        }), &["agent_id", "metadata"]),
        "AgentMetadata": object(&json!({
            "ref": object(&json!({
                "name": { "type": "string" },
                "version": { "type": "string" },
                "url": { "type": "string" },
            }), &["name", "version"]),
            "description": { "type": "string" },
        }), &["ref", "description"]),
        "AgentACPDescriptor": object(&json!({
            "metadata": reference("AgentMetadata"),
            "specs": object(&json!({
                "capabilities": { "type": "object" },
                "input": { "type": "object" },
                "output": { "type": "object" },
                "config": { "type": "object" },
                "custom_streaming_update": { "type": "object" },
                "thread_state": { "type": "object" },
                "interrupts": { "type": "array", "items": object(&json!({
                    "interrupt_type": { "type": "string" },
                    "interrupt_payload": { "type": "object" },
                    "resume_payload": { "type": "object" },
                }), &["interrupt_type", "interrupt_payload", "resume_payload"]) },
            }), &["capabilities", "input", "output", "config"]),
        }), &["metadata", "specs"]),
    })
}

fn messages() -> Value {
    let human =
        json!({ "properties": { "role": { "enum": ["human", "user"] } }, "required": ["role"] });
    json!({
        "ContentBlock": { "anyOf": [
            object(&json!({ "type": { "const": "text" }, "text": { "type": "string" } }), &["type", "text"]),
            object(&json!({ "type": { "type": "string", "not": { "const": "text" } } }), &["type"]),
        ] },
        "Blocks": { "type": "array", "minItems": 1, "items": reference("ContentBlock") },
        "Message": object(&json!({
            "role": { "type": "string" },
            "content": { "anyOf": [{ "type": "string" }, reference("Blocks")] },
            "id": {},
            "metadata": {},
        }), &["role", "content"]),
        "Input": { "anyOf": [
            { "type": "string", "minLength": 1 },
            object(&json!({
                "messages": {
                    "type": "array",
                    "items": reference("Message"),
                    "contains": human,
                },
            }), &["messages"]),
            object(&json!({ "messages": { "type": "null" }, "prompt": reference("Blocks") }), &["prompt"]),
            object(&json!({
                "messages": { "type": "null" },
                "prompt": { "type": "null" },
                "message": { "type": "string", "minLength": 1 },
            }), &["message"]),
        ] },
    })
}

fn run_requests() -> Value {
    let common = json!({
        "agent_id": uuid_or_null(),
        "metadata": or_null("object"),
        "config": { "type": ["object", "null"], "properties": {
            "tags": { "type": ["array", "null"], "items": { "type": "string" } },
            "recursion_limit": { "type": ["integer", "null"], "minimum": 0, "maximum": MAX_RECURSION },
            "configurable": { "type": ["object", "null"], "properties": configurable() },
        } },
        "webhook": {
            "type": ["string", "null"],
            "maxLength": 2048,
            "pattern": "^https://[a-z][a-z0-9-]*(\\.[a-z][a-z0-9]+)+(/[A-Za-z0-9._~-]*)*$",
            "description": "Called with the run when its status changes. Addresses of private \
                            networks are refused unless the operator allows them.",
        },
        "stream_mode": { "anyOf": [
            { "type": "array", "minItems": 1, "items": { "enum": ["values", "custom"] } },
            { "enum": ["values", "custom", null] },
        ] },
        "on_disconnect": choice(&["cancel", "continue"]),
        "multitask_strategy": choice(&["reject", "interrupt", "enqueue"]),
        "after_seconds": { "type": ["integer", "null"], "minimum": 0, "maximum": 604_800 },
    });
    let of = |more: Value| {
        let mut members = common.clone();
        for (name, schema) in more.as_object().into_iter().flatten() {
            members[name.as_str()] = schema.clone();
        }
        // `message` at the top is from the prose specification, which had no document.
        members["input"] = reference("Input");
        object(&members, &["input"])
    };
    json!({
        "RunCreateStateful": of(json!({
            "if_not_exists": choice(&["reject", "create"]),
            "thread_id": uuid_or_null(),
        })),
        "RunCreateStateless": of(json!({
            "on_completion": choice(&["delete", "keep"]),
            "thread_id": uuid_or_null(),
        })),
        "ResumePayload": { "type": "object", "description":
            "The answer to the open interrupt, as the descriptor defines it; or an object with \
             that in `resume_payload` and with its `interrupt_type`" },
    })
}

fn configurable() -> Value {
    let servers = json!({ "anyOf": [
        { "type": "array", "items": { "type": "object" } },
        { "type": "object", "additionalProperties": { "type": "object" } },
        { "type": "null" },
    ] });
    json!({
        "cwd": { "type": ["string", "null"], "pattern": "^/[^\\u0000]*$" },
        "mcp_servers": servers,
        "mode": or_null("string"),
        "permissions": choice(&["interrupt", "allow", "reject"]),
        "config_options": {
            "type": ["object", "null"],
            "additionalProperties": { "type": ["string", "boolean"] },
        },
    })
}

fn threads() -> Value {
    let known = configurable();
    let metadata = json!({ "type": ["object", "null"], "properties": {
        "cwd": known["cwd"],
        "mcp_servers": known["mcp_servers"],
    } });
    let state = json!({ "type": "object" });
    let messages = json!({ "type": "array", "items": reference("Message") });
    json!({
        "ThreadCreate": object(&json!({
            "thread_id": uuid_or_null(),
            "metadata": metadata,
            "if_exists": choice(&["raise", "do_nothing"]),
        }), &[]),
        "ThreadPatch": object(&json!({
            "metadata": or_null("object"),
            "checkpoint": or_null("object"),
            "values": { "type": "null" },
            "messages": { "type": "null" },
        }), &[]),
        "ThreadSearchRequest": object(&json!({
            "metadata": or_null("object"),
            "values": or_null("object"),
            "status": choice(&["idle", "busy", "interrupted", "error"]),
            "limit": limit(),
            "offset": offset(),
        }), &[]),
        "Thread": object(&json!({
            "thread_id": uuid(),
            "created_at": { "type": "string", "format": "date-time" },
            "updated_at": { "type": "string", "format": "date-time" },
            "metadata": { "type": "object" },
            "status": { "enum": ["idle", "busy", "interrupted", "error"] },
            "values": state,
            "messages": messages,
        }), &["thread_id", "created_at", "updated_at", "metadata", "status"]),
        "ThreadState": object(&json!({
            "checkpoint": object(&json!({ "checkpoint_id": uuid() }), &["checkpoint_id"]),
            "values": state,
            "messages": messages,
            "metadata": { "type": "object" },
        }), &["checkpoint", "values"]),
        "State": object(&json!({ "messages": messages }), &["messages"]),
    })
}

fn runs() -> Value {
    json!({
        "RunStatus": { "enum": ["pending", "error", "success", "timeout", "interrupted"] },
        "RunSearchRequest": object(&json!({
            "agent_id": uuid_or_null(),
            "status": choice(&["pending", "error", "success", "timeout", "interrupted"]),
            "metadata": or_null("object"),
            "limit": limit(),
            "offset": offset(),
        }), &[]),
        "Run": object(&json!({
            "run_id": uuid(),
            "thread_id": uuid(),
            "agent_id": uuid(),
            "created_at": { "type": "string", "format": "date-time" },
            "updated_at": { "type": "string", "format": "date-time" },
            "status": reference("RunStatus"),
            "creation": { "type": "object" },
        }), &["run_id", "agent_id", "created_at", "updated_at", "status", "creation"]),
        "RunWaitResponse": object(&json!({
            "run": reference("Run"),
            "output": reference("RunOutput"),
        }), &["run", "output"]),
    })
}

fn outputs() -> Value {
    let messages = json!({ "type": "array", "items": reference("Message") });
    json!({
        "RunOutput": { "oneOf": [
            reference("RunResult"), reference("RunInterrupt"), reference("RunError"),
        ] },
        "RunOutputOld": { "oneOf": [
            reference("RunResultOld"), reference("RunInterrupt"), reference("RunError"),
        ] },
        "RunResult": object(&json!({
            "type": { "const": "result" },
            "values": { "type": "object" },
            "messages": messages,
        }), &["type", "values"]),
        "RunResultOld": object(&json!({
            "type": { "const": "result" },
            "run_id": uuid(),
            "status": reference("RunStatus"),
            "result": { "type": "object" },
        }), &["type", "run_id", "status", "result"]),
        "RunInterrupt": object(&json!({
            "type": { "const": "interrupt" },
            "interrupt": { "type": "object" },
            "interrupt_type": { "type": "string" },
            "interrupt_payload": { "type": "object" },
        }), &["type", "interrupt"]),
        "RunError": object(&json!({
            "type": { "const": "error" },
            "run_id": uuid(),
            "errcode": { "type": "integer" },
            "description": { "type": "string" },
        }), &["type", "run_id", "errcode", "description"]),
        "RunOutputStream": object(&json!({
            "id": { "type": "string" },
            "event": { "const": "agent_event" },
            "data": {
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": reference("StreamEventPayload"),
            },
        }), &["id", "event", "data"]),
        "StreamEventPayload": object(&json!({
            "type": { "enum": ["values", "custom", "interrupt", "error"] },
            "run_id": uuid(),
            "status": reference("RunStatus"),
        }), &["type", "run_id", "status"]),
    })
}

fn object(members: &Value, required: &[&str]) -> Value {
    let mut object = json!({ "type": "object", "properties": members });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn or_null(kind: &str) -> Value {
    json!({ "type": [kind, "null"] })
}

fn choice(words: &[&str]) -> Value {
    let mut words: Vec<Value> = words.iter().map(|word| json!(word)).collect();
    words.push(Value::Null);
    json!({ "enum": words })
}

fn uuid() -> Value {
    json!({ "type": "string", "format": "uuid" })
}

fn uuid_or_null() -> Value {
    json!({ "anyOf": [uuid(), { "type": "null" }] })
}

fn limit() -> Value {
    json!({ "type": ["integer", "null"], "minimum": 1, "maximum": 1000, "default": 10 })
}

fn offset() -> Value {
    json!({ "type": ["integer", "null"], "minimum": 0, "maximum": MAX_OFFSET, "default": 0 })
}
