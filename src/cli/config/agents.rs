//! `[agents.NAME]`: the agents of the file.

use super::fault::CheckLevel;
use super::local_checks;
use super::model::{AgentPart, ListenerPart};
use super::reader::TableReader;
use crate::cli::agents::check_name;
use crate::cli::{endpoints, remote};
use transport::{Endpoint, RequestHeaders};

/// An agent of the file, with its table.
pub(super) type ReadAgent<'f> = (TableReader<'f>, AgentPart);

/// All agents of the file.
pub(super) fn agents<'f>(root: &TableReader<'f>, level: CheckLevel) -> Vec<ReadAgent<'f>> {
    let (at, all) = match root.named_tables("agents") {
        Some(found) => found,
        None if root.has("agents").is_some() => return Vec::new(),
        None => (root.at.clone(), Vec::new()),
    };
    if all.is_empty() && root.is_empty("agents") && level >= CheckLevel::Complete {
        let remedy = "describe it below [agents.NAME], with command = [\"PROGRAM\", \"ARG\"]; \
                      `acp-relay config example` shows how";
        root.fault(at, "there is no agent", remedy);
    }
    let agents = all.into_iter().filter_map(|(at, name, reader)| {
        if let Err(why) = check_name(&name) {
            let shown = name.escape_debug();
            reader.fault(at, format!("`{shown}` is no agent's name: {why}"), "");
        }
        let part = agent(&reader, name, level)?;
        Some((reader, part))
    });
    agents.collect()
}

/// Reports permission defaults that have no effect, because Agent Connect is used neither by the
/// listeners nor by the agent.
pub(super) fn check_default_permission(agents: &[ReadAgent<'_>], listeners: &[ListenerPart]) {
    if listeners.iter().any(ListenerPart::serves_agent_connect) {
        return;
    }
    for (reader, part) in agents {
        let endpoint = part.endpoint.as_ref();
        let is_own = endpoint.is_some_and(Endpoint::is_agent_connect);
        if !is_own && reader.keys.get("agents.default-permission").is_some() {
            let at = reader.at("default-permission");
            let key = reader.path("default-permission");
            let remedy =
                "listen for it with agent-connect+http://, or beside ACP with `agent-connect`";
            reader.fault(at, format!("`{key}` is for Agent Connect"), remedy);
        }
    }
}

fn agent(reader: &TableReader<'_>, name: String, level: CheckLevel) -> Option<AgentPart> {
    let mut keys = reader.keys.clone();
    let limits = reader.table("limits").into_iter();
    keys.0.extend(limits.flat_map(|limits| limits.keys.0));
    let part = AgentPart::of(Some(name), keys).ok()?;
    for (at, header) in reader.items("headers").unwrap_or_default() {
        if let Err(what) = RequestHeaders::default().add(&header) {
            reader.fault(at, format!("{}: {what}", reader.path("headers")), "");
        }
    }
    if !check_source(reader, &part) {
        return None;
    }
    if level == CheckLevel::Machine {
        local_checks::agent(reader, &part);
    }
    Some(part)
}

/// Whether the agent can be reached, as far as the file says. Reports what is wrong.
fn check_source(reader: &TableReader<'_>, part: &AgentPart) -> bool {
    let given = ["command", "profile", "endpoint"];
    let given = given.into_iter().find(|key| reader.has(key).is_some());
    let (is_whole, at) = match (given, &part.endpoint) {
        (None, _) => {
            let what = format!("{} names no agent", reader.name);
            let remedy =
                "add command = [\"PROGRAM\", \"ARG\"], profile = \"NAME\" or endpoint = \"…\"";
            reader.fault(reader.at.clone(), what, remedy);
            return false;
        }
        (Some("command"), _) => (check_command(reader), &Endpoint::Exec(Vec::new())),
        (Some("profile"), _) => (part.profile.is_some(), &Endpoint::Exec(Vec::new())),
        (_, None) => return false,
        (_, Some(at)) => {
            let fault = match at {
                Endpoint::Exec(_) => Err(
                    "a program is configured with `command`, each of its words as a string"
                        .to_owned(),
                ),
                at => endpoints::check_agent(at),
            };
            if let Err(what) = fault {
                reader.fault(reader.at("endpoint"), what, "");
                return false;
            }
            (true, at)
        }
    };
    reader.check_suited(|key| match key {
        "args" if given == Some("command") => Some("profiles; put the arguments into `command`"),
        key => remote::unsuited(key, at),
    });
    is_whole
}

/// Checks the words of a command.
fn check_command(reader: &TableReader<'_>) -> bool {
    let Some(command) = reader.items("command") else {
        return false;
    };
    let Some((at, word)) = command.first().cloned() else {
        reader.fault_of("command", "there is no program");
        return false;
    };
    let path = reader.path("command");
    if word.is_empty() || (word.contains('/') && !word.starts_with('/')) {
        let remedy = "name one that is on PATH, or its full path";
        reader.fault(at, format!("{path}: `{word}` is not a program"), remedy);
    } else if command.len() == 1 && word.contains(' ') {
        let remedy = "there is no shell to split it; write each word as a string of its own";
        reader.fault(at, format!("{path}: `{word}` is one word"), remedy);
    }
    true
}
