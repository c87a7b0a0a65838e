//! An agent as Agent Connect shows it: its search entry and its descriptor.
//!
//! Both are built from the agent's answer to `initialize`.

use serde_json::{Value, json};
use uuid::Uuid;

use super::ids;
use super::interrupt::ELICITATION;
use super::record::RunFailure;
use super::search::AgentFilter;

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
        let methods = initialized["authMethods"].as_array().into_iter().flatten();
        let auth_methods: Vec<String> = methods
            .filter_map(|method| method["id"].as_str().map(str::to_owned))
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
            capabilities: initialized["agentCapabilities"].clone(),
            auth_methods,
        }
    }

    /// Its search entry.
    #[must_use]
    pub fn entry(&self) -> Value {
        json!({ "agent_id": self.id, "metadata": self.metadata() })
    }

    /// Whether it matches a search.
    #[must_use]
    pub fn matches(&self, wanted: &AgentFilter) -> bool {
        let AgentFilter { name, version } = wanted;
        name.as_ref().is_none_or(|name| *name == self.name)
            && version
                .as_ref()
                .is_none_or(|version| *version == self.version)
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
        let code = error["code"].as_i64();
        // The relay's own code: the agent has exited or could not be reached.
        let code = code.filter(|code| !RELAY_ERRORS.contains(code));
        let code = code.unwrap_or(INTERNAL_ERROR);
        let message = error["message"].as_str();
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
        let specs = &mut descriptor["specs"];
        if let Some(interrupts) = specs["interrupts"].as_array_mut() {
            interrupts.retain(|one| uses_forms || one["interrupt_type"] != ELICITATION);
        }
        // All agents support texts and links.
        let input = &mut specs["input"]["properties"];
        if let Some(blocks) = input["prompt"]["items"]["anyOf"].as_array_mut() {
            blocks.retain(
                |block| match block["properties"]["type"]["const"].as_str() {
                    Some(kind @ ("image" | "audio")) => {
                        self.has(&format!("/promptCapabilities/{kind}"))
                    }
                    Some("resource") => self.has("/promptCapabilities/embeddedContext"),
                    _ => true,
                },
            );
        }
        let content = json!([{ "type": "string" }, input["prompt"]]);
        input["messages"]["items"]["properties"]["content"]["anyOf"] = content;
        descriptor
    }

    fn metadata(&self) -> Value {
        json!({
            "ref": { "name": self.name, "version": self.version, "url": self.url },
            "description": self.description,
        })
    }
}
