//! An agent as Agent Connect shows it: its search entry and its descriptor, built from its answer to
//! `initialize`, and its id.

use serde_json::{Value, json};
use uuid::Uuid;

use super::error::RpcError;
use super::interrupt::ELICITATION;
use super::search::AgentFilter;
use jsonrpc::reply::OWN_CODES;

/// What the descriptors of all agents have in common.
const DESCRIPTOR: &str = include_str!("agent_descriptor.json");
/// Description of an agent that gives none.
const DEFAULT_DESCRIPTION: &str = "Coding agent reached through the Agent Client Protocol";

/// An agent that has answered `initialize`.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentInfo {
    /// Derived from its name, so that it stays the same across restarts.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Its name, its version, its URL and its description, as they are shown.
    metadata: Value,
    capabilities: Value,
    /// The ids of its authentication methods.
    logins: Vec<String>,
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
        let text = |pointer: &str| initialized.pointer(pointer).and_then(Value::as_str);
        let own = text("/agentInfo/name").filter(|name| !name.is_empty());
        let name = configured_name.or(own).unwrap_or("agent").to_owned();
        let methods = initialized["authMethods"].as_array().into_iter().flatten();
        let logins: Vec<String> = methods
            .filter_map(|method| method["id"].as_str().map(str::to_owned))
            .collect();
        let title = text("/agentInfo/title").filter(|title| *title != name);
        let mut description = match (description, title) {
            (Some(about), _) => about.to_owned(),
            (None, Some(title)) => format!("{title}. {DEFAULT_DESCRIPTION}"),
            (None, None) => DEFAULT_DESCRIPTION.to_owned(),
        };
        if !logins.is_empty() {
            description.push_str(&format!(". Ways to log in: {}", logins.join(", ")));
        }
        let id = agent_id(&name);
        let version = text("/agentInfo/version").unwrap_or("unknown");
        let agent =
            json!({ "name": name, "version": version, "url": format!("{base}/agents/{id}") });
        Self {
            id,
            name,
            metadata: json!({ "ref": agent, "description": description }),
            capabilities: initialized["agentCapabilities"].clone(),
            logins,
        }
    }

    /// Its search entry; `id` is for clients of the document before 0.1.
    #[must_use]
    pub fn entry(&self) -> Value {
        json!({ "agent_id": self.id, "id": self.id, "metadata": self.metadata })
    }

    /// Whether it matches a search.
    #[must_use]
    pub fn matches(&self, wanted: &AgentFilter) -> bool {
        let is = |wanted: &Option<String>, member: &str| {
            let own = &self.metadata["ref"][member];
            wanted.as_ref().is_none_or(|wanted| own == wanted)
        };
        is(&wanted.name, "name") && is(&wanted.version, "version")
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
    pub fn run_error(&self, error: &Value) -> RpcError {
        let code = error["code"].as_i64();
        // The relay's own code: the agent has exited or could not be reached.
        let code = code.filter(|code| !OWN_CODES.contains(code));
        let code = code.unwrap_or(RpcError::INTERNAL);
        let message = error["message"].as_str();
        let mut message = message.unwrap_or("the agent gave no reason").to_owned();
        if code == -32000 && !self.logins.is_empty() {
            message.push_str(&format!(" (methods: {})", self.logins.join(", ")));
        }
        RpcError::new(code, message)
    }

    /// Its descriptor, which the older generation calls the manifest; `uses_forms` if the agent is
    /// known to request forms.
    #[must_use]
    pub fn descriptor(&self, uses_forms: bool) -> Value {
        let mut descriptor: Value =
            serde_json::from_str(DESCRIPTOR).expect("the file in the program is JSON");
        descriptor["metadata"] = self.metadata.clone();
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
}

/// The id of the agent of this name: always the same for the same name.
#[must_use]
pub fn agent_id(name: &str) -> Uuid {
    of_url(&format!("acp-relay:agent:{name}"))
}

/// The thread id of an agent's session that was not created as a thread.
#[must_use]
pub fn session_id(agent: Uuid, session: &str) -> Uuid {
    of_url(&format!("acp-relay:session:{agent}:{session}"))
}

/// Parses the form with hyphens; the `uuid` crate reads others as well.
#[must_use]
pub fn parse_id(text: &str) -> Option<Uuid> {
    let id = Uuid::try_parse(text).ok();
    id.filter(|_| text.len() == uuid::fmt::Hyphenated::LENGTH)
}

fn of_url(url: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, url.as_bytes())
}
