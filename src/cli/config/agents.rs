//! `[agents.NAME]`: the agents of the file.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::context::{CheckLevel, Context, Names, check_dialect, settings};
use super::keys;
use super::local_checks;
use super::model::{AgentPart, ListenerPart};
use super::table_reader::TableReader;
use crate::cli::agents::check_name;
use crate::cli::endpoints;
use crate::cli::limits;
use crate::cli::remote::RemoteArgs;
use crate::transport::{Endpoint, RequestHeaders};

/// Keys of agents that are started.
const PROGRAM_KEYS: [&str; 4] = ["args", "env", "inherit-env", "cwd"];
/// Keys of agents that listen.
const ENDPOINT_KEYS: [&str; 6] = [
    "bearer-file",
    "header-file",
    "headers",
    "http2-prior-knowledge",
    "pin-sha256",
    "tls-ca",
];

/// All agents of the file, and their names: the name of an agent with faults is known, too.
pub(super) fn agents(
    reader: &TableReader<'_>,
    context: &Context,
) -> (BTreeMap<String, AgentPart>, Names) {
    let Some(own) = reader.table("agents") else {
        if reader.has("agents").is_none() {
            no_agents(reader, context);
        }
        return Default::default();
    };
    if own.is_empty() {
        no_agents(&own, context);
    }
    let reader = own;
    let mut names = Names::new();
    let agents = reader.tables().into_iter().filter_map(|(name, reader)| {
        if let Err(why) = check_name(&name.value) {
            reader.fault(
                &name.at,
                format!("`{}` is no agent's name: {why}", name.value.escape_debug()),
            );
        }
        names.insert(name.value.clone());
        agent(&reader, context).map(|agent| (name.value, agent))
    });
    (agents.collect(), names)
}

/// Reports a file that describes no agent.
fn no_agents(reader: &TableReader<'_>, context: &Context) {
    if context.level >= CheckLevel::Complete {
        let remedy = "describe it below [agents.NAME], with command = [\"PROGRAM\", \"ARG\"]; \
                      `acp-relay config example` shows how";
        reader.fault_with(&reader.at, "there is no agent", remedy);
    }
}

/// Reports permission defaults that have no effect, because Agent Connect is used neither by the
/// listeners nor by the agent.
pub(super) fn check_default_permission(
    reader: &TableReader<'_>,
    agents: &BTreeMap<String, AgentPart>,
    listeners: &[ListenerPart],
) {
    if agents.is_empty() || listeners.iter().any(ListenerPart::serves_agent_connect) {
        return;
    }
    let Some(reader) = reader.table("agents") else {
        return;
    };
    for (name, reader) in reader.tables() {
        let part = agents
            .get(&name.value)
            .filter(|part| !part.is_agent_connect());
        if let (Some(at), Some(_)) = (reader.has("default-permission"), part) {
            let what = format!(
                "`{}` is for Agent Connect",
                reader.path("default-permission")
            );
            let remedy =
                "listen for it with agent-connect+http://, or beside ACP with `agent-connect`";
            reader.fault_with(&at, what, remedy);
        }
    }
}

fn agent(reader: &TableReader<'_>, context: &Context) -> Option<AgentPart> {
    let command = keys::command::<AgentPart>();
    let keys = reader.keys(&command, "agents", &context.folder);
    let part = keys.parse::<AgentPart>().map(|part| AgentPart {
        endpoint: part.endpoint.map(|at| at.relative_to(&context.folder)),
        env: variables(reader),
        limits: settings(reader, "limits", |name| match limits::find(name)? {
            limit if limit.is_of_listeners => Err([
                format!(
                    "{}.limits.{name}: this limit applies to all listeners",
                    reader.name()
                ),
                "move it to [limits]".to_owned(),
            ]),
            limit => Ok(limit),
        }),
        keys,
        ..part
    })?;
    reader.finish();
    check_dialect(reader, part.dialect.as_ref(), context);
    for header in reader.texts("headers").unwrap_or_default() {
        if let Err(what) = RequestHeaders::default().add(&header.value) {
            reader.fault(&header.at, format!("{}: {what}", reader.path("headers")));
        }
    }
    let is_whole = check_source(reader, &part);
    if context.level == CheckLevel::Machine && is_whole {
        local_checks::agent(reader, &part);
    }
    is_whole.then_some(part)
}

/// Whether the agent can be reached, as far as the file says. Reports what is wrong.
fn check_source(reader: &TableReader<'_>, part: &AgentPart) -> bool {
    let given = ["command", "profile", "endpoint"];
    let given = given.into_iter().find(|key| reader.has(key).is_some());
    match given {
        None => {
            let what = format!("{} names no agent", reader.name());
            let remedy = "add command = [\"PROGRAM\", \"ARG\"], profile = \"NAME\" or endpoint = \
                          \"…\"";
            reader.fault_with(&reader.at, what, remedy);
            false
        }
        Some("endpoint") => {
            reader.fault_misplaced(&PROGRAM_KEYS, "agents that we start", None);
            part.endpoint
                .as_ref()
                .is_some_and(|at| check_endpoint(reader, at, &part.remote))
        }
        Some(key) => {
            reader.fault_misplaced(&ENDPOINT_KEYS, "agents that listen", None);
            match key {
                "command" => check_command(reader),
                _ => part.profile.is_some(),
            }
        }
    }
}

/// Checks the words of a command.
fn check_command(reader: &TableReader<'_>) -> bool {
    if let Some(first) = reader.texts("args").unwrap_or_default().first() {
        let what = format!("`{}` is for profiles", reader.path("args"));
        reader.fault_with(&first.at, what, "put the arguments into `command`");
    }
    let Some(command) = reader.texts("command") else {
        return false;
    };
    let Some(first) = command.first() else {
        let at = reader.at("command");
        reader.fault(
            &at,
            format!("{}: there is no program", reader.path("command")),
        );
        return false;
    };
    let word = &first.value;
    if word.is_empty() || (word.contains('/') && !word.starts_with('/')) {
        let what = format!("{}: `{word}` is not a program", reader.path("command"));
        let remedy = "name one that is on PATH, or its full path";
        reader.fault_with(&first.at, what, remedy);
    } else if command.len() == 1 && word.contains(' ') {
        let what = format!("{}: `{word}` is one word", reader.path("command"));
        let remedy = "there is no shell to split it; write each word as a string of its own";
        reader.fault_with(&first.at, what, remedy);
    }
    true
}

fn check_endpoint(reader: &TableReader<'_>, endpoint: &Endpoint, remote: &RemoteArgs) -> bool {
    let fault = |what: String| reader.fault(&reader.at("endpoint"), what);
    if let Endpoint::Exec(_) = endpoint {
        fault("a program is configured with `command`, each of its words as a string".to_owned());
        return false;
    }
    if let Err(what) = endpoints::check_agent(endpoint) {
        fault(what);
        return false;
    }
    check_applicable(reader, endpoint, remote);
    true
}

/// Reports options that do not apply to this endpoint.
fn check_applicable(reader: &TableReader<'_>, at: &Endpoint, remote: &RemoteArgs) {
    let web = match at {
        Endpoint::Http(web) => Some(web),
        _ => None,
    };
    let tls = web.is_some_and(|web| web.tls);
    let clear = web.is_some_and(|web| !web.tls);
    for (keys, seen, is_for) in [
        (
            &["tls-ca", "pin-sha256"][..],
            tls,
            "agents behind TLS (https://, wss://)",
        ),
        (
            &["headers", "header-file", "bearer-file"],
            web.is_some(),
            "agents behind HTTP (http://, https://, ws://, wss://)",
        ),
        (
            &["http2-prior-knowledge"],
            clear || !remote.http2_prior_knowledge,
            "agents behind HTTP in clear (http://)",
        ),
        (
            &["framing"],
            at.is_byte_stream(),
            "agents behind a byte stream (tcp://, unix:)",
        ),
    ] {
        if !seen {
            reader.fault_misplaced(keys, is_for, None);
        }
    }
}

/// The variables for an agent.
fn variables(reader: &TableReader<'_>) -> Vec<(OsString, OsString)> {
    let Some(reader) = reader.table("env") else {
        return Vec::new();
    };
    let entries = reader.entries().into_iter().map(|(name, value)| {
        if name.value.is_empty() || name.value.contains(['=', '\0', '\n', '\r']) {
            let shown = name.value.escape_debug();
            let what = format!("`{shown}` cannot be the name of a variable");
            let remedy = "a name is not empty and has no `=`, no line break and no NUL";
            reader.fault_with(&name.at, what, remedy);
        }
        if value.value.contains('\0') {
            let what = format!("{}: a NUL character", reader.path(&name.value));
            reader.fault_with(&value.at, what, "no variable can hold one; remove it");
        }
        (name.value.into(), value.value.into())
    });
    entries.collect()
}
