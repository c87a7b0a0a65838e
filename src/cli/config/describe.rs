//! What a file may hold, made from the declarations: `config example` and `config schema`.

use clap::{Arg, Command};
use serde_json::{Map, Value, json};

use super::keys::{self, DRAIN, Form};
use super::model::{AgentPart, FileOptions, ListenerPart};
use super::report::{list, number, quote, toml};
use crate::cli::limits::wrap;
use crate::jsonrpc::Limits;
use crate::jsonrpc::limits::{LIMITS, Limit};

/// Longest line of the example.
const WIDTH: usize = 98;

/// The start of the example.
const INTRODUCTION: &str = "\
# acp-relay.toml: the configuration of `acp-relay serve --config FILE`.
#
# Flags override the environment, which overrides this file. Relative paths start at its folder.
# Unknown keys are rejected: `acp-relay config check FILE` reports every fault.
# SIGHUP reloads it; running conversations are not affected.
# Remove the `#` before a key to set it; the values here are the defaults, or say what is expected.
";

/// What each table is about. Those with NAME may occur several times.
const TABLES: [(&str, &str); 14] = [
    ("", ""),
    (
        "[agents.claude]",
        "Agents. Clients select one by name in the address, /agents/NAME/acp; only this file says \
         what is run. A name consists of letters, digits, `-`, `_` and `.`",
    ),
    (
        "[agents.claude.limits]",
        "Limits of this agent; those of listeners are only in [limits]",
    ),
    (
        "[[listeners]]",
        "Listeners. The default is one at ws://127.0.0.1:0",
    ),
    (
        "[auth]",
        "Authentication: on this machine its own user is admitted, from other machines clients \
         with a token (`acp-relay token new`) or a certificate. A token may be valid for some \
         agents only",
    ),
    (
        "[auth.certificates.\"ci.example\"]",
        "The names accepted in certificates, and the agents that each may use; all agents if none \
         are listed. Without such tables every certificate of the authorities in `tls-client-ca` \
         is accepted, for every agent",
    ),
    (
        "[record]",
        "Every conversation in a file of its own, with secrets redacted",
    ),
    ("[admin]", "Monitoring"),
    (
        "[agent-connect]",
        "Listeners for AGNTCY's Agent Connect, agent-connect+http:// and agent-connect+https://",
    ),
    ("[dialects]", "The user's own mapping tables"),
    (
        "[traces]",
        "Traces of conversations. The OTEL_* variables have the other options",
    ),
    ("[log]", "The log on stderr"),
    ("[limits]", "Limits"),
    (
        "[drain]",
        "Stopping: listeners stay open for `min` and refuse clients, so that balancers notice; \
         running turns may take until `max`",
    ),
];

/// A file with every key as a comment, and one agent.
pub(in crate::cli) fn example() -> String {
    let mut text = INTRODUCTION.to_owned();
    for (heading, about) in TABLES {
        let table = heading.trim_matches(['[', ']']);
        comment(&mut text, about);
        if !heading.is_empty() {
            let mark = if heading == "[agents.claude]" {
                ""
            } else {
                "#"
            };
            text.push_str(&format!("{mark}{heading}\n"));
        }
        match table {
            "agents.claude" => {
                options(&mut text, &keys::command::<AgentPart>(), "agents");
                comment(&mut text, "Variables for it");
                text.push_str("#env = { NAME = \"VALUE\" }\n");
            }
            "agents.claude.limits" => {
                limits(
                    &mut text,
                    LIMITS.iter().filter(|one| one.name == "connections"),
                );
            }
            "listeners" => options(&mut text, &keys::command::<ListenerPart>(), table),
            "auth.certificates.\"ci.example\"" => text.push_str("#agents = [\"NAME\"]\n"),
            "limits" => limits(&mut text, LIMITS.iter()),
            "drain" => {
                let limits = DRAIN
                    .iter()
                    .filter_map(|(key, name)| Some((key, Limit::named(name)?)));
                for (key, limit) in limits {
                    text.push_str(&format!("#{key} = {}\n", usual(limit)));
                }
            }
            _ => options(&mut text, &keys::command::<FileOptions>(), table),
        }
    }
    // A file without an agent is not valid.
    text.replace("#profile = \"PROFILE\"", "profile = \"claude\"")
}

/// The options of one table, each below its meaning.
fn options(text: &mut String, command: &Command, table: &str) {
    for arg in command.get_arguments() {
        let (own, key) = keys::path(arg.get_id().as_str());
        if own == table {
            comment(text, &about(arg));
            text.push_str(&format!("#{key} = {}\n", sample(arg)));
        }
    }
}

fn limits<'a>(text: &mut String, limits: impl Iterator<Item = &'a Limit>) {
    for limit in limits {
        comment(text, limit.about);
        text.push_str(&format!("#{} = {}\n", limit.name, usual(limit)));
    }
}

/// The default of a limit as TOML.
fn usual(limit: &Limit) -> String {
    number(&limit.text(limit.get(&Limits::default())))
}

/// A paragraph of comment after an empty line.
fn comment(text: &mut String, about: &str) {
    text.push('\n');
    for line in wrap(about, WIDTH - 2) {
        text.push_str(&format!("# {line}\n"));
    }
}

/// The meaning of an option as a key.
fn about(arg: &Arg) -> String {
    let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let mut about = about.replace("; may be given several times", "");
    let values = keys::values(arg);
    if !values.is_empty() && keys::form(arg) == Form::Text {
        about.push_str(&format!(": {}", values.join(", ")));
    }
    about
}

/// The default of an option, or else what is expected, as TOML.
fn sample(arg: &Arg) -> String {
    let usual = arg.get_default_values().iter();
    let usual: Vec<_> = usual.map(|value| value.to_os_string()).collect();
    let names = arg.get_value_names().unwrap_or_default().first();
    let name = names.map(ToString::to_string).unwrap_or_default();
    match (keys::form(arg), keys::values(arg).first()) {
        _ if !usual.is_empty() => toml(arg, &usual),
        (Form::Flag | Form::Bool, _) => "false".to_owned(),
        (Form::List, _) => list(&[name]),
        (Form::Text, Some(value)) => quote(value),
        (Form::Text, None) => quote(&name),
    }
}

/// The JSON Schema of a file, for editors.
pub(super) fn schema() -> Value {
    let options = keys::command::<FileOptions>();
    let mut file = properties(&options, "");
    let mut agent = properties(&keys::command::<AgentPart>(), "agents");
    let text = json!({"type": "string"});
    let variable = json!({"type": ["string", "number"]});
    agent.insert("env".to_owned(), map(&variable, "Variables for it"));
    let of_agent = LIMITS.iter().filter(|limit| !limit.is_of_listeners);
    agent.insert("limits".to_owned(), object(limit_properties(of_agent), ""));
    file.insert("agents".to_owned(), map(&object(agent, ""), TABLES[1].1));
    let mut listener = object(
        properties(&keys::command::<ListenerPart>(), "listeners"),
        "",
    );
    listener["required"] = json!(["endpoint"]);
    let listeners = json!({"description": TABLES[3].1, "type": "array", "items": listener});
    file.insert("listeners".to_owned(), listeners);
    for table in keys::tables(&options) {
        let mut own = properties(&options, table);
        if table == "auth" {
            let agents = json!({"agents": {"type": "array", "items": text}});
            let agents = object(agents.as_object().cloned().unwrap_or_default(), "");
            own.insert("certificates".to_owned(), map(&agents, TABLES[5].1));
        }
        let heading = format!("[{table}]");
        let about = TABLES.iter().find(|(own, _)| **own == heading);
        file.insert(
            table.to_owned(),
            object(own, about.map_or("", |(_, about)| about)),
        );
    }
    file.insert(
        "limits".to_owned(),
        object(limit_properties(LIMITS.iter()), ""),
    );
    let mut drain = limit_properties(LIMITS.iter());
    let drain = DRAIN
        .iter()
        .filter_map(|(key, name)| Some(((*key).to_owned(), drain.remove(*name)?)));
    file.insert("drain".to_owned(), object(drain.collect(), ""));
    let mut schema = object(file, "The configuration of `acp-relay serve`");
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema
}

fn properties(command: &Command, table: &str) -> Map<String, Value> {
    let args = command.get_arguments();
    let own = args.filter_map(|arg| {
        let (own, key) = keys::path(arg.get_id().as_str());
        (own == table).then(|| (key.to_owned(), property(arg)))
    });
    own.collect()
}

fn property(arg: &Arg) -> Value {
    let (form, values) = (keys::form(arg), keys::values(arg));
    let mut schema = match form {
        Form::Flag | Form::Bool => json!({"type": "boolean"}),
        Form::List => json!({"type": "array", "items": {"type": "string"}}),
        Form::Text if values.is_empty() => json!({"type": "string"}),
        Form::Text => json!({"type": "string", "enum": values}),
    };
    schema["description"] = Value::from(about(arg));
    if let Some(usual) = arg
        .get_default_values()
        .first()
        .and_then(|usual| usual.to_str())
    {
        schema["default"] = match form {
            Form::Flag | Form::Bool => Value::from(usual == "true"),
            _ => Value::from(usual),
        };
    }
    schema
}

fn limit_properties<'a>(limits: impl Iterator<Item = &'a Limit>) -> Map<String, Value> {
    let defaults = Limits::default();
    let each = limits.map(|limit| {
        let usual = limit.text(limit.get(&defaults));
        let schema = json!({
            "description": limit.about, "type": ["string", "number"], "default": usual,
        });
        (limit.name.clone(), schema)
    });
    each.collect()
}

fn object(properties: Map<String, Value>, about: &str) -> Value {
    let mut object = json!({
        "description": about, "type": "object", "additionalProperties": false,
    });
    object["properties"] = Value::Object(properties);
    object
}

/// A table with any keys.
fn map(values: &Value, about: &str) -> Value {
    json!({"description": about, "type": "object", "additionalProperties": values})
}
