//! How the session of a thread is created and configured: `config.configurable`.

use serde_json::{Map, Value, json};

use super::api_error::ApiError;
use super::fields::RequestFields;

/// The members that mean the same for every agent.
const COMMON: [&str; 5] = [
    "cwd",
    "mcp_servers",
    "mode",
    "permissions",
    "config_options",
];

/// The configuration of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionConfig {
    /// The working directory, absolute.
    pub cwd: Option<String>,
    /// MCP servers, in ACP's form.
    pub mcp_servers: Vec<Value>,
    /// The mode to set.
    pub mode: Option<String>,
    /// Options to set, by their ids.
    pub options: Map<String, Value>,
    /// Other members; an agent's option may be among them.
    pub others: Map<String, Value>,
}

impl SessionConfig {
    /// Reads `config.configurable`.
    ///
    /// # Errors
    /// 422, when a member is invalid.
    pub fn read(fields: RequestFields<'_>) -> Result<Self, ApiError> {
        let others = fields.names().filter(|name| !COMMON.contains(name));
        let others = others.filter_map(|name| Some((name.to_owned(), fields.get(name)?.clone())));
        let options = fields.object("config_options")?.cloned();
        let simple = |value: &Value| value.is_string() || value.is_boolean();
        if options
            .as_ref()
            .is_some_and(|all| !all.values().all(simple))
        {
            let what = "the values of \"config_options\" must be strings, true or false";
            return Err(ApiError::invalid(what));
        }
        Ok(Self {
            cwd: absolute_cwd(fields)?,
            mcp_servers: mcp_servers(fields)?,
            mode: fields.text("mode")?.map(str::to_owned),
            options: options.unwrap_or_default(),
            others: others.collect(),
        })
    }

    /// Reads a thread's metadata, of which only the working directory and the servers count.
    ///
    /// # Errors
    /// 422, when a member is invalid.
    pub fn from_metadata(metadata: &Map<String, Value>) -> Result<Self, ApiError> {
        let metadata = Value::Object(metadata.clone());
        let fields = RequestFields::new(&metadata)?;
        Ok(Self {
            cwd: absolute_cwd(fields)?,
            mcp_servers: mcp_servers(fields)?,
            ..Self::default()
        })
    }

    /// The options to set in a session whose answer to `session/new` was `opened`: those given as
    /// options, and those of the other members that the agent lists as options.
    #[must_use]
    pub fn options_for(&self, opened: &Value) -> Vec<(String, Value)> {
        let known = opened.get("configOptions").and_then(Value::as_array);
        let known = |name: &str| {
            let mut all = known.into_iter().flatten();
            all.any(|option| option.get("id").is_some_and(|id| id == name))
        };
        let others = self.others.iter().filter(|(name, _)| known(name));
        let all = self.options.iter().chain(others);
        all.map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

fn absolute_cwd(fields: RequestFields<'_>) -> Result<Option<String>, ApiError> {
    match fields.text("cwd")? {
        Some(path) if !path.starts_with('/') || path.contains('\0') => {
            Err(ApiError::invalid("\"cwd\" must be an absolute path"))
        }
        path => Ok(path.map(str::to_owned)),
    }
}

/// MCP servers: ACP's array, or an object with a server under each name.
fn mcp_servers(fields: RequestFields<'_>) -> Result<Vec<Value>, ApiError> {
    let wrong = || ApiError::invalid("\"mcp_servers\" must be an array or an object of servers");
    match fields.get("mcp_servers") {
        None => Ok(Vec::new()),
        Some(Value::Array(all)) if all.iter().all(Value::is_object) => Ok(all.clone()),
        Some(Value::Object(all)) => {
            let named = |(name, server): (&String, &Value)| {
                let mut server = server.as_object().cloned().ok_or_else(wrong)?;
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
                        let pairs = map.iter();
                        let pairs =
                            pairs.map(|(name, value)| json!({ "name": name, "value": value }));
                        let pairs: Vec<Value> = pairs.collect();
                        server.insert(list.to_owned(), pairs.into());
                    }
                }
                Ok(Value::Object(server))
            };
            all.iter().map(named).collect()
        }
        Some(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_servers_by_name_become_a_list() {
        let given =
            json!({ "mcp_servers": { "files": { "command": "/bin/files", "env": { "A": "b" } } } });
        let setup = SessionConfig::read(RequestFields::new(&given).expect("an object"))
            .expect("a good setup");
        let expected = json!({ "command": "/bin/files", "env": [{ "name": "A", "value": "b" }], "name": "files", "args": [] });
        assert_eq!(setup.mcp_servers, [expected]);
    }

    #[test]
    fn only_known_options_are_set() {
        let given = json!({ "model": "x", "thread_id": "y", "config_options": { "z": true } });
        let setup = SessionConfig::read(RequestFields::new(&given).expect("an object"))
            .expect("a good setup");
        let opened = json!({ "sessionId": "s", "configOptions": [{ "id": "model" }] });
        let names: Vec<String> = setup
            .options_for(&opened)
            .into_iter()
            .map(|o| o.0)
            .collect();
        assert_eq!(names, ["z", "model"]);
    }
}
