//! An agent's descriptor or manifest, and the ACP capabilities that follow from it.

use serde_json::{Map, Value, json};

/// The API generation of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    /// The paths of the OpenAPI document 0.2.3.
    New,
    /// The paths of the documents before it, and of the prose specification.
    Old,
    /// LangGraph's paths, from which the others derive: agents are `assistants`, a run is resumed
    /// by a new run, and the thread's state holds the outcome.
    LangGraph,
}

/// An agent of a server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Descriptor {
    /// Its `agent_id`.
    pub(super) id: String,
    /// The API generation of its server.
    pub(super) generation: Generation,
    /// The server did not describe the agent: it requires a key.
    pub(super) needs_key: bool,
    document: Value,
}

impl Descriptor {
    /// The agent that a document describes.
    pub(super) const fn new(id: String, generation: Generation, document: Value) -> Self {
        Self {
            id,
            generation,
            needs_key: false,
            document,
        }
    }

    /// An agent without a description.
    pub(super) const fn unknown(id: String, needs_key: bool) -> Self {
        Self {
            id,
            generation: Generation::New,
            needs_key,
            document: Value::Null,
        }
    }

    /// The answer to `initialize`.
    pub(super) fn initialize_result(&self) -> Value {
        let mut capabilities = json!({
            "loadSession": self.has_threads(),
            "promptCapabilities": {
                "image": self.accepts_block("image"),
                "audio": self.accepts_block("audio"),
                "embeddedContext": self.accepts_block("resource"),
            },
        });
        if self.has_threads() && self.generation != Generation::Old {
            capabilities["sessionCapabilities"] = json!({ "list": {}, "delete": {} });
        }
        let text = |pointer: &str| self.document.pointer(pointer).and_then(Value::as_str);
        let logins = if self.needs_key {
            json!([{
                "id": "agent-connect",
                "name": "API key",
                "description": "Start acp-relay with --bearer-file, or with --header \"x-api-key: …\"",
            }])
        } else {
            json!([])
        };
        json!({
            "protocolVersion": 1,
            "agentInfo": {
                "name": text("/metadata/ref/name").or_else(|| text("/graph_id")).unwrap_or(&self.id),
                "version": text("/metadata/ref/version").unwrap_or("unknown"),
            },
            "agentCapabilities": capabilities,
            "authMethods": logins,
        })
    }

    /// Whether its runs can share a thread. Assumed for an agent without a description.
    pub(super) fn has_threads(&self) -> bool {
        match self.capability("/threads") {
            _ if self.generation == Generation::LangGraph => true,
            None => self.document.is_null(),
            Some(offered) => offered,
        }
    }

    /// The `stream_mode` with the most content and no duplicates; `None` when it does not stream.
    ///
    /// An agent whose custom updates are ACP's own needs no values in addition.
    pub(super) fn stream_mode(&self) -> Option<Value> {
        if self.generation == Generation::Old {
            return None;
        }
        if self.generation == Generation::LangGraph {
            return Some(json!(super::graph::STREAM_MODES));
        }
        if self.document.is_null() {
            return Some(json!("values"));
        }
        let offers = |mode: &str| self.capability(&format!("/streaming/{mode}")) == Some(true);
        let of_acp = "/custom_streaming_update/properties/sessionUpdate";
        match (offers("values"), offers("custom")) {
            (_, true) if self.spec(of_acp).is_some() => Some(json!("custom")),
            (true, true) => Some(json!(["values", "custom"])),
            (true, false) => Some(json!("values")),
            (false, true) => Some(json!("custom")),
            (false, false) => None,
        }
    }

    /// The schema of what resumes a run after an interrupt of this type.
    pub(super) fn resume_schema(&self, interrupt: &str) -> Option<&Value> {
        let known = self.spec("/interrupts")?.as_array()?;
        let found = known.iter().find(|one| one["interrupt_type"] == interrupt);
        found?.get("resume_payload")
    }

    /// The body of a run on this agent, with one more member.
    pub(super) fn run_body(&self, name: &str, value: &Value) -> Value {
        let id_name = match self.generation {
            Generation::LangGraph => "assistant_id",
            Generation::New | Generation::Old => "agent_id",
        };
        json!({ id_name: self.id, name: value })
    }

    /// The schema of its input.
    pub(super) fn input_schema(&self) -> Option<&Value> {
        self.spec("/input")
    }

    /// The metadata of the thread for a session. If the agent's configuration has members for a
    /// working directory and MCP servers, they are set as in ACP; for other agents the working
    /// directory is only recorded.
    pub(super) fn thread_metadata(&self, params: &Value) -> Map<String, Value> {
        let mut metadata = Map::new();
        let mut copy = |name: &str, given: &str| {
            if let Some(value) = params.get(given) {
                metadata.insert(name.to_owned(), value.clone());
            }
        };
        copy("acp_cwd", "cwd");
        if self.configures("cwd") {
            copy("cwd", "cwd");
        }
        if self.configures("mcp_servers") {
            copy("mcp_servers", "mcpServers");
        }
        metadata
    }

    /// Whether its configuration has this member.
    pub(super) fn configures(&self, name: &str) -> bool {
        self.spec(&format!("/config/properties/{name}")).is_some()
    }

    /// Whether its input accepts content blocks of that type.
    pub(super) fn accepts_block(&self, block: &str) -> bool {
        self.input_schema()
            .is_some_and(|schema| allows(schema, block))
    }

    pub(super) fn spec(&self, pointer: &str) -> Option<&Value> {
        self.document.pointer(&format!("/specs{pointer}"))
    }

    fn capability(&self, pointer: &str) -> Option<bool> {
        self.spec(&format!("/capabilities{pointer}"))?.as_bool()
    }
}

/// Whether a schema allows the value `word` anywhere.
fn allows(schema: &Value, word: &str) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, value)| match &**name {
            "const" => value == word,
            "enum" => value
                .as_array()
                .is_some_and(|all| all.contains(&json!(word))),
            _ => allows(value, word),
        }),
        Value::Array(all) => all.iter().any(|one| allows(one, word)),
        _ => false,
    }
}
