//! An agent as Agent Connect shows it: its search entry and its descriptor.
//!
//! Both are built from the agent's answer to `initialize`.

use serde_json::{Value, json};
use uuid::Uuid;

use super::ids;
use super::interrupt::ELICITATION;
use super::record::RunFailure;

/// What the descriptors of all agents have in common.
const DESCRIPTOR: &str = include_str!("agent_descriptor.json");
/// Description of an agent that gives none.
const DEFAULT_DESCRIPTION: &str = "Coding agent reached through the Agent Client Protocol";

/// JSON-RPC's code for an internal error.
const INTERNAL_ERROR: i64 = -32603;
/// The range of the relay's own error codes.
const RELAY_ERRORS: std::ops::RangeInclusive<i64> = -32059..=-32050;

/// An agent that has answered `initialize`.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentInfo {
    /// Derived from its name, so that it stays the same across restarts.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    version: String,
    url: String,
    description: String,
    capabilities: Value,
    /// The ids of its authentication methods.
    auth_methods: Vec<String>,
}

impl AgentInfo {
    /// The agent with this answer to `initialize`; `null` if it has not answered. `configured_name`
    /// and `description` are from the configuration; `base` is the server's URL without a slash at
    /// the end.
    #[must_use]
    pub fn new(
        configured_name: Option<&str>,
        description: Option<&str>,
        initialized: &Value,
        base: &str,
    ) -> Self {
        let text = |pointer: &str| Some(initialized.pointer(pointer)?.as_str()?.to_owned());
        let own = text("/agentInfo/name").filter(|name| !name.is_empty());
        let name = configured_name.map(str::to_owned).or(own);
        let name = name.unwrap_or_else(|| "agent".to_owned());
        let auth_methods: Vec<String> = initialized
            .get("authMethods")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|method| Some(method.get("id")?.as_str()?.to_owned()))
            .collect();
        let title = text("/agentInfo/title").filter(|title| *title != name);
        let mut description = match (description, title) {
            (Some(about), _) => about.to_owned(),
            (None, Some(title)) => format!("{title}. {DEFAULT_DESCRIPTION}"),
            (None, None) => DEFAULT_DESCRIPTION.to_owned(),
        };
        if !auth_methods.is_empty() {
            description.push_str(&format!(". Ways to log in: {}", auth_methods.join(", ")));
        }
        let id = ids::agent_id(&name);
        Self {
            id,
            url: format!("{base}/agents/{id}"),
            version: text("/agentInfo/version").unwrap_or_else(|| "unknown".to_owned()),
            name,
            description,
            capabilities: initialized
                .get("agentCapabilities")
                .cloned()
                .unwrap_or_default(),
            auth_methods,
        }
    }

    /// Its search entry.
    #[must_use]
    pub fn entry(&self) -> Value {
        json!({ "agent_id": self.id, "metadata": self.metadata() })
    }

    /// Whether it matches a search for this name and version.
    #[must_use]
    pub fn matches(&self, name: Option<&str>, version: Option<&str>) -> bool {
        name.is_none_or(|name| name == self.name)
            && version.is_none_or(|version| version == self.version)
    }

    /// The method that reopens a session of it, if it supports one.
    #[must_use]
    pub fn reopen_method(&self) -> Option<&'static str> {
        if self.has("/loadSession") {
            Some("session/load")
        } else if self.has("/sessionCapabilities/resume") {
            Some("session/resume")
        } else {
            None
        }
    }

    /// Whether it supports `session/NAME`, one of the optional methods.
    #[must_use]
    pub fn supports(&self, name: &str) -> bool {
        self.has(&format!("/sessionCapabilities/{name}"))
    }

    fn has(&self, pointer: &str) -> bool {
        match self.capabilities.pointer(pointer) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(given)) => *given,
            Some(_) => true,
        }
    }

    /// The code and the message of a run that failed with this error of the agent. If a login is
    /// required, the message lists the methods.
    #[must_use]
    pub fn run_error(&self, error: &Value) -> RunFailure {
        let code = error
            .get("code")
            .and_then(Value::as_i64)
            .unwrap_or(INTERNAL_ERROR);
        // The relay's own code: the agent has exited or could not be reached.
        let code = if RELAY_ERRORS.contains(&code) {
            INTERNAL_ERROR
        } else {
            code
        };
        let message = error.get("message").and_then(Value::as_str);
        let mut message = message.unwrap_or("the agent gave no reason").to_owned();
        if code == -32000 && !self.auth_methods.is_empty() {
            message.push_str(&format!(" (methods: {})", self.auth_methods.join(", ")));
        }
        RunFailure::new(code, message)
    }

    /// Its descriptor, which the older generation calls the manifest; `uses_forms` if the agent is
    /// known to request forms.
    #[must_use]
    pub fn descriptor(&self, uses_forms: bool) -> Value {
        let mut descriptor: Value =
            serde_json::from_str(DESCRIPTOR).expect("the file in the program is JSON");
        descriptor["metadata"] = self.metadata();
        descriptor["specs"]["input"] = self.input_schema();
        if let Some(interrupts) = descriptor["specs"]["interrupts"].as_array_mut() {
            interrupts.retain(|one| uses_forms || one["interrupt_type"] != ELICITATION);
        }
        descriptor
    }

    /// The schema of its input: messages or a prompt, made of the content blocks it supports.
    fn input_schema(&self) -> Value {
        let blocks = json!({ "type": "array", "items": { "anyOf": self.content_blocks() } });
        let content = json!({ "anyOf": [{ "type": "string" }, blocks] });
        let message = json!({
            "type": "object",
            "properties": { "role": { "type": "string" }, "content": content },
            "required": ["role", "content"],
        });
        json!({ "type": "object", "properties": {
            "messages": { "type": "array", "items": message },
            "prompt": blocks,
        } })
    }

    /// The content blocks of ACP that it supports. All agents support texts and links.
    fn content_blocks(&self) -> Vec<Value> {
        let block = |kind: &str, members: &[&str]| {
            let mut properties = json!({ "type": { "const": kind } });
            for name in members {
                properties[*name] = json!({ "type": "string" });
            }
            let required: Vec<&str> = ["type"].iter().chain(members).copied().collect();
            json!({ "type": "object", "properties": properties, "required": required })
        };
        let mut blocks = vec![
            block("text", &["text"]),
            block("resource_link", &["uri", "name"]),
        ];
        for kind in ["image", "audio"] {
            if self.has(&format!("/promptCapabilities/{kind}")) {
                blocks.push(block(kind, &["data", "mimeType"]));
            }
        }
        if self.has("/promptCapabilities/embeddedContext") {
            let mut embedded = block("resource", &[]);
            embedded["properties"]["resource"] = json!({ "type": "object" });
            blocks.push(embedded);
        }
        blocks
    }

    fn metadata(&self) -> Value {
        json!({
            "ref": { "name": self.name, "version": self.version, "url": self.url },
            "description": self.description,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::interrupt::PERMISSION;
    use super::*;

    #[test]
    fn agent_info_follows_initialize() {
        let initialized = json!({
            "agentInfo": { "name": "claude-agent", "title": "Claude", "version": "1" },
            "agentCapabilities": { "loadSession": true, "sessionCapabilities": { "close": {}, "fork": null } },
            "authMethods": [{ "id": "login", "name": "Log in" }],
        });
        let agent = AgentInfo::new(None, None, &initialized, "http://here");
        assert_eq!(agent.name, "claude-agent");
        assert_eq!(agent.reopen_method(), Some("session/load"));
        assert!(agent.supports("close") && !agent.supports("fork") && !agent.supports("list"));
        assert!(agent.matches(Some("claude-agent"), None) && !agent.matches(None, Some("2")));
        let error = json!({ "code": -32000, "message": "Authentication required" });
        let run_error = agent.run_error(&error);
        assert_eq!(
            run_error,
            RunFailure::new(-32000, "Authentication required (methods: login)")
        );
        assert_ne!(
            AgentInfo::new(Some("mine"), None, &initialized, "").id,
            agent.id
        );
    }

    #[test]
    fn only_supported_blocks_are_accepted() {
        let kinds = |capabilities: Value| -> Vec<String> {
            let initialized =
                json!({ "agentCapabilities": { "promptCapabilities": capabilities } });
            let agent = AgentInfo::new(Some("a"), Some("Ours"), &initialized, "");
            let descriptor = agent.descriptor(false);
            let interrupts =
                |uses_forms| agent.descriptor(uses_forms)["specs"]["interrupts"].clone();
            assert_eq!(interrupts(false)[0]["interrupt_type"], PERMISSION);
            assert!(interrupts(false)[1].is_null() && interrupts(true)[1].is_object());
            assert_eq!(descriptor["metadata"]["description"], "Ours");
            let input = &descriptor["specs"]["input"]["properties"];
            let blocks = input["prompt"]["items"]["anyOf"]
                .as_array()
                .expect("blocks");
            let kind = |block: &Value| {
                block["properties"]["type"]["const"]
                    .as_str()
                    .map(str::to_owned)
            };
            blocks.iter().filter_map(kind).collect()
        };
        assert_eq!(kinds(json!({ "image": false })), ["text", "resource_link"]);
        assert_eq!(
            kinds(json!({ "image": true, "embeddedContext": true })),
            ["text", "resource_link", "image", "resource"]
        );
    }
}
