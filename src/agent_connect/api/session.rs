//! How the session of a thread is created and configured: `config.configurable`.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::body::read_members;
use super::error::ApiResult;
use super::interrupt::Permissions;

/// The configuration of a session.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SessionConfig {
    /// The working directory, absolute.
    #[serde(deserialize_with = "absolute")]
    pub cwd: Option<String>,
    /// MCP servers, in ACP's form.
    #[serde(deserialize_with = "servers")]
    pub mcp_servers: Vec<Value>,
    /// The mode to set.
    pub mode: Option<String>,
    /// How permission requests of the agent are answered.
    pub permissions: Option<Permissions>,
    /// Options to set, by their ids.
    #[serde(rename = "config_options", deserialize_with = "simple_values")]
    pub options: Map<String, Value>,
    /// Other members; an agent's option may be among them.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

impl SessionConfig {
    /// Reads a thread's metadata, of which only the working directory and the servers count.
    ///
    /// # Errors
    /// 422, when a member is invalid.
    pub fn from_metadata(metadata: &Map<String, Value>) -> ApiResult<Self> {
        let mut members = metadata.clone();
        members.retain(|name, _| ["cwd", "mcp_servers"].contains(&name.as_str()));
        read_members(&members)
    }

    /// The options to set in a session whose answer to `session/new` was `opened`: those given as
    /// options, and those of the other members that the agent lists as options.
    #[must_use]
    pub fn options_for(&self, opened: &Value) -> Vec<(String, Value)> {
        let known = opened["configOptions"].as_array();
        let known = |name: &str| {
            known
                .into_iter()
                .flatten()
                .any(|option| option["id"] == name)
        };
        let others = self.others.iter().filter(|(name, _)| known(name));
        let all = self.options.iter().chain(others);
        all.map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

fn absolute<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let path = String::deserialize(from)?;
    if !path.starts_with('/') || path.contains('\0') {
        return Err(D::Error::custom("must be an absolute path"));
    }
    Ok(Some(path))
}

fn simple_values<'de, D: Deserializer<'de>>(from: D) -> Result<Map<String, Value>, D::Error> {
    let options = Map::deserialize(from)?;
    let mut values = options.values();
    if !values.all(|value| value.is_string() || value.is_boolean()) {
        let what = "must hold strings, true or false";
        return Err(D::Error::custom(what));
    }
    Ok(options)
}

/// MCP servers: ACP's array, or an object with a server under each name.
fn servers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Value>, D::Error> {
    let wrong = || D::Error::custom("must be an array or an object of servers");
    match Value::deserialize(from)? {
        Value::Array(all) if all.iter().all(Value::is_object) => Ok(all),
        Value::Object(all) => {
            let all = all.into_iter();
            all.map(|(name, server)| named_server(&name, server).ok_or_else(wrong))
                .collect()
        }
        _ => Err(wrong()),
    }
}

/// A server in ACP's form; `None` if it is not an object.
fn named_server(name: &str, server: Value) -> Option<Value> {
    let Value::Object(mut server) = server else {
        return None;
    };
    server.insert("name".to_owned(), json!(name));
    if server.contains_key("command") {
        for list in ["args", "env"] {
            server.entry(list).or_insert_with(|| json!([]));
        }
    } else {
        server.entry("type").or_insert_with(|| json!("http"));
        server.entry("headers").or_insert_with(|| json!([]));
    }
    for list in ["env", "headers"] {
        if let Some(Value::Object(map)) = server.get(list) {
            let pair = |(name, value)| json!({ "name": name, "value": value });
            let pairs: Vec<Value> = map.iter().map(pair).collect();
            server.insert(list.to_owned(), pairs.into());
        }
    }
    Some(Value::Object(server))
}
