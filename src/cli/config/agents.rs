//! `[agents.NAME]`: the agents of the file.

use super::fault::CheckLevel;
use super::local_checks;
use super::model::{AgentPart, ListenerPart};
use super::table_reader::TableReader;
use crate::cli::agents::check_name;
use crate::cli::{endpoints, remote};
use crate::transport::{Endpoint, RequestHeaders};

/// An agent of the file, by its name, with its table.
pub(super) type NamedAgent<'f> = (String, TableReader<'f>, AgentPart);

/// All agents of the file.
pub(super) fn agents<'f>(root: &TableReader<'f>, level: CheckLevel) -> Vec<NamedAgent<'f>> {
    let own = root.table("agents");
    let all = own.as_ref().map(TableReader::tables).unwrap_or_default();
    let is_empty = match &own {
        Some(own) => own.is_empty(),
        None => root.has("agents").is_none(),
    };
    if is_empty && level >= CheckLevel::Complete {
        let remedy = "describe it below [agents.NAME], with command = [\"PROGRAM\", \"ARG\"]; \
                      `acp-relay config example` shows how";
        let at = own.as_ref().unwrap_or(root);
        root.fault_with(&at.at, "there is no agent", remedy);
    }
    let agents = all.into_iter().filter_map(|(name, reader)| {
        if let Err(why) = check_name(&name.value) {
            let shown = name.value.escape_debug();
            reader.fault(&name.at, format!("`{shown}` is no agent's name: {why}"));
        }
        let part = agent(&reader, level)?;
        Some((name.value, reader, part))
    });
    agents.collect()
}

/// Reports permission defaults that have no effect, because Agent Connect is used neither by the
/// listeners nor by the agent.
pub(super) fn check_default_permission(agents: &[NamedAgent<'_>], listeners: &[ListenerPart]) {
    if listeners.iter().any(ListenerPart::serves_agent_connect) {
        return;
    }
    for (_, reader, part) in agents {
        if let Some(at) = reader.has("default-permission")
            && !part.is_agent_connect()
        {
            let key = reader.path("default-permission");
            let remedy =
                "listen for it with agent-connect+http://, or beside ACP with `agent-connect`";
            reader.fault_with(&at, format!("`{key}` is for Agent Connect"), remedy);
        }
    }
}

fn agent(reader: &TableReader<'_>, level: CheckLevel) -> Option<AgentPart> {
    let mut keys = reader.keys();
    if let Some(limits) = reader.table("limits") {
        keys.append(limits.keys());
    }
    let mut part = keys.parse::<AgentPart>()?;
    part.endpoint = part.endpoint.map(|at| reader.relative(at));
    part.limits = keys.settings("agents.limits");
    part.keys = keys;
    for header in reader.texts("headers").unwrap_or_default() {
        if let Err(what) = RequestHeaders::default().add(&header.value) {
            reader.fault(&header.at, format!("{}: {what}", reader.path("headers")));
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
            let what = format!("{} names no agent", reader.name());
            let remedy =
                "add command = [\"PROGRAM\", \"ARG\"], profile = \"NAME\" or endpoint = \"…\"";
            reader.fault_with(&reader.at, what, remedy);
            return false;
        }
        (Some("command"), _) => (check_command(reader), &Endpoint::Exec(Vec::new())),
        (Some("profile"), _) => (part.profile.is_some(), &Endpoint::Exec(Vec::new())),
        (_, None) => return false,
        (_, Some(Endpoint::Exec(_))) => {
            let what = "a program is configured with `command`, each of its words as a string";
            reader.fault(&reader.at("endpoint"), what);
            return false;
        }
        (_, Some(at)) => {
            if let Err(what) = endpoints::check_agent(at) {
                reader.fault(&reader.at("endpoint"), what);
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
    let Some(command) = reader.texts("command") else {
        return false;
    };
    let Some(first) = command.first() else {
        reader.fault_of("command", "there is no program");
        return false;
    };
    let (word, path) = (&first.value, reader.path("command"));
    if word.is_empty() || (word.contains('/') && !word.starts_with('/')) {
        let remedy = "name one that is on PATH, or its full path";
        reader.fault_with(
            &first.at,
            format!("{path}: `{word}` is not a program"),
            remedy,
        );
    } else if command.len() == 1 && word.contains(' ') {
        let remedy = "there is no shell to split it; write each word as a string of its own";
        reader.fault_with(&first.at, format!("{path}: `{word}` is one word"), remedy);
    }
    true
}
