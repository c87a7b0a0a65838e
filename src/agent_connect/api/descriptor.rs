//! The descriptor or manifest of an agent of a server, and what follows from it in ACP: capabilities,
//! and session options.
//!
//! Each member of the agent's configuration that has an enumeration of values is an option, and is
//! sent with each run once the client has set it. Configuration of other types is given in the
//! client's `_meta`.

use serde_json::{Map, Value, json};

use super::content::plain_text;

/// The stream modes for LangGraph's server: text chunks, the state after each step, and output of the
/// graph's own code.
const GRAPH_MODES: [&str; 3] = ["messages-tuple", "values", "custom"];

/// The API generation of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
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
pub struct Descriptor {
    /// Its `agent_id`.
    pub id: String,
    /// The API generation of its server.
    pub generation: Generation,
    /// The server did not describe the agent: it requires a key.
    pub needs_key: bool,
    document: Value,
}

impl Descriptor {
    /// The agent that a document describes.
    pub const fn new(id: String, generation: Generation, document: Value) -> Self {
        Self {
            id,
            generation,
            needs_key: false,
            document,
        }
    }

    /// An agent without a description.
    pub const fn unknown(id: String, needs_key: bool) -> Self {
        Self {
            id,
            generation: Generation::New,
            needs_key,
            document: Value::Null,
        }
    }

    /// The answer to `initialize`.
    pub fn initialize_result(&self) -> Value {
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
    pub fn has_threads(&self) -> bool {
        match self.capability("/threads") {
            _ if self.generation == Generation::LangGraph => true,
            None => self.document.is_null(),
            Some(offered) => offered,
        }
    }

    /// The `stream_mode` with the most content and no duplicates; `None` when it does not stream.
    ///
    /// An agent whose custom updates are ACP's own needs no values in addition.
    pub fn stream_mode(&self) -> Option<Value> {
        if self.generation == Generation::Old {
            return None;
        }
        if self.generation == Generation::LangGraph {
            return Some(json!(GRAPH_MODES));
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
    pub fn resume_schema(&self, interrupt: &str) -> Option<&Value> {
        let known = self.spec("/interrupts")?.as_array()?;
        let found = known.iter().find(|one| one["interrupt_type"] == interrupt);
        found?.get("resume_payload")
    }

    /// The body of a run on this agent, with one more member.
    pub fn run_body(&self, name: &str, value: &Value) -> Value {
        let id_name = match self.generation {
            Generation::LangGraph => "assistant_id",
            Generation::New | Generation::Old => "agent_id",
        };
        json!({ id_name: self.id, name: value })
    }

    /// The schema of its input.
    pub fn input_schema(&self) -> Option<&Value> {
        self.spec("/input")
    }

    /// The metadata of the thread for a session. If the agent's configuration has members for a
    /// working directory and MCP servers, they are set as in ACP; for other agents the working
    /// directory is only recorded.
    pub fn thread_metadata(&self, params: &Value) -> Map<String, Value> {
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
    pub fn configures(&self, name: &str) -> bool {
        self.spec(&format!("/config/properties/{name}")).is_some()
    }

    /// Whether its input accepts content blocks of that type.
    pub fn accepts_block(&self, block: &str) -> bool {
        self.input_schema()
            .is_some_and(|schema| allows(schema, block))
    }

    /// The options of a session in which these values were set. An option that was not set shows
    /// its schema's default, or its first value.
    pub fn options(&self, chosen: &Map<String, Value>) -> Vec<Value> {
        let option = |(id, schema): (&String, &Value)| {
            let values = values(schema)?;
            let now = chosen.get(id).or_else(|| schema.get("default"));
            let now = now
                .filter(|now| values.contains(now))
                .or_else(|| values.first())?;
            let text = |name: &str| schema[name].as_str();
            let shown = |value| json!({ "value": plain_text(value), "name": plain_text(value) });
            let mut option = json!({
                "id": id,
                "name": text("title").unwrap_or(id),
                "type": "select",
                "currentValue": plain_text(now),
                "options": values.iter().map(shown).collect::<Vec<_>>(),
            });
            if let Some(about) = text("description") {
                option["description"] = json!(about);
            }
            if ["mode", "model"].contains(&id.as_str()) {
                option["category"] = json!(id);
            }
            Some(option)
        };
        self.config()
            .into_iter()
            .flatten()
            .filter_map(option)
            .collect()
    }

    /// The value sent to the agent for an option that a client sets to `value`; `None` when there
    /// is no such option or value.
    pub fn choice(&self, id: &str, value: &Value) -> Option<Value> {
        let wanted = value.as_str()?;
        let values = values(self.config()?.get(id)?)?;
        values.into_iter().find(|value| plain_text(value) == wanted)
    }

    fn config(&self) -> Option<&Map<String, Value>> {
        self.spec("/config/properties")?.as_object()
    }

    fn spec(&self, pointer: &str) -> Option<&Value> {
        self.document.pointer(&format!("/specs{pointer}"))
    }

    fn capability(&self, pointer: &str) -> Option<bool> {
        self.spec(&format!("/capabilities{pointer}"))?.as_bool()
    }
}

/// The values of a member, if it has an enumeration of strings or numbers.
fn values(schema: &Value) -> Option<Vec<Value>> {
    let all = schema.get("enum")?.as_array()?;
    let simple = |value: &&Value| value.is_string() || value.is_number();
    let values: Vec<Value> = all.iter().filter(simple).cloned().collect();
    (!values.is_empty()).then_some(values)
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
