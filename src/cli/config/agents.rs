//! `[agents.NAME]`: the agents of the file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;

use super::context::{CheckLevel, Context, Names, dialect, one_of, path, settings};
use super::local_checks;
use super::model::{AgentPart, ListenerPart, Source};
use super::table_reader::{Positioned, TableReader};
use crate::cli::agents::{self, Program, check_name};
use crate::cli::remote::RemoteArgs;
use crate::cli::{endpoints, limits};
use crate::transport::{Endpoint, Launch, Pin, RequestHeaders};

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
                format!("`{}` is no agent's name: {why}", name.value),
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
    let source = source(reader, context);
    if let (CheckLevel::Machine, Some(source)) = (context.level, &source) {
        local_checks::agent(reader, source);
    }
    let description = reader.text("description").map(|text| text.value);
    let dialect = dialect(reader, context);
    let framing = one_of(reader, "framing");
    let record = reader.flag("record").unwrap_or(true);
    let limits = settings(reader, "limits", |name| {
        let why = "this limit applies to all listeners; move it to [limits]";
        (limits::is_of_listeners(name)).then(|| why.to_owned())
    });
    let on_disconnect = one_of(reader, "on-disconnect");
    let default_permission = one_of(reader, "default-permission");
    reader.finish();
    Some(AgentPart {
        description,
        source: source?,
        dialect,
        framing,
        record,
        limits,
        on_disconnect,
        default_permission,
    })
}

fn source(reader: &TableReader<'_>, context: &Context) -> Option<Source> {
    let command = reader.texts("command");
    let profile = reader.text("profile");
    let endpoint = reader.read_at("endpoint", |text| {
        let at = endpoints::read_agent(text)?;
        Ok(at.relative_to(&context.folder))
    });
    let launch = launch(reader, context);
    let args = reader.texts("args").unwrap_or_default();
    let remote = remote(reader, context);
    let given = ["command", "profile", "endpoint"];
    let given: Vec<(&str, Range<usize>)> = given
        .into_iter()
        .filter_map(|key| Some((key, reader.has(key)?)))
        .collect();
    match &given[..] {
        [] => {
            let what = format!("{} names no agent", reader.name());
            let remedy = "add command = [\"PROGRAM\", \"ARG\"], profile = \"NAME\" or endpoint = \
                          \"…\"";
            reader.fault_with(&reader.at, what, remedy);
        }
        [_] => {}
        [(first, _), (second, at), ..] => {
            let what = format!("`{}` is given besides `{first}`", reader.path(second));
            reader.fault_with(at, what, "an agent has only one of them");
        }
    }
    match given.first() {
        Some(("endpoint", _)) => {
            reader.fault_misplaced(&PROGRAM_KEYS, "agents that we start", None);
        }
        Some(_) => reader.fault_misplaced(&ENDPOINT_KEYS, "agents that listen", None),
        None => {}
    }
    match (command, profile, endpoint) {
        (Some(command), ..) => program(reader, command, &args, launch).map(Source::Program),
        (_, Some(profile), _) => from_profile(reader, &profile, args, launch).map(Source::Program),
        (.., Some(endpoint)) => at_endpoint(reader, endpoint, remote),
        _ => None,
    }
}

/// An agent given by its command.
fn program(
    reader: &TableReader<'_>,
    command: Vec<Positioned<String>>,
    args: &[Positioned<String>],
    launch: Launch,
) -> Option<Program> {
    if let Some(first) = args.first() {
        let what = format!("`{}` is for profiles", reader.path("args"));
        reader.fault_with(&first.at, what, "put the arguments into `command`");
    }
    let Some(first) = command.first() else {
        let at = reader.has("command")?;
        reader.fault(
            &at,
            format!("{}: there is no program", reader.path("command")),
        );
        return None;
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
    Some(Program {
        argv: words(command),
        launch,
        install: None,
    })
}

/// An agent given by the name of its profile.
fn from_profile(
    reader: &TableReader<'_>,
    name: &Positioned<String>,
    args: Vec<Positioned<String>>,
    launch: Launch,
) -> Option<Program> {
    let Some(profile) = agents::profile(&name.value) else {
        let what = format!("there is no profile called `{}`", name.value);
        let known = (name.value.as_str(), agents::profile_names());
        reader.fault_unknown(&name.at, what, known, "`acp-relay agents list` lists them");
        return None;
    };
    let mut program = profile.program();
    program.argv.extend(words(args));
    program.launch = launch.with_defaults(program.launch);
    Some(program)
}

fn at_endpoint(
    reader: &TableReader<'_>,
    endpoint: Positioned<Endpoint>,
    remote: RemoteArgs,
) -> Option<Source> {
    let fault = |what: String| reader.fault(&endpoint.at, what);
    if let Endpoint::Exec(_) = endpoint.value {
        fault("a program is configured with `command`, each of its words as a string".to_owned());
        return None;
    }
    endpoints::check_agent(&endpoint.value)
        .map_err(fault)
        .ok()?;
    check_applicable(reader, &endpoint.value, &remote);
    Some(Source::Endpoint(endpoint.value, remote))
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
    if let (Some(_), Some(at)) = (reader.has("tls-ca"), reader.has("pin-sha256")) {
        let what = format!("`{}` is given besides `tls-ca`", reader.path("pin-sha256"));
        reader.fault_with(&at, what, "use only one of them");
    }
}

fn launch(reader: &TableReader<'_>, context: &Context) -> Launch {
    let env = reader.table("env").map(|reader| {
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
    });
    Launch {
        dir: path(reader, "cwd", context),
        env: env.unwrap_or_default(),
        bare: reader.flag("inherit-env") == Some(false),
    }
}

fn remote(reader: &TableReader<'_>, context: &Context) -> RemoteArgs {
    RemoteArgs {
        tls_ca: path(reader, "tls-ca", context),
        pin_sha256: reader.read("pin-sha256", |text| {
            text.parse::<Pin>().map_err(|error| error.to_string())
        }),
        headers: reader.list("headers", |text| {
            let added = RequestHeaders::default().add(text);
            added.map(|()| text.to_owned())
        }),
        header_file: path(reader, "header-file", context),
        bearer_file: path(reader, "bearer-file", context),
        http2_prior_knowledge: reader.flag("http2-prior-knowledge").unwrap_or(false),
    }
}

fn words(texts: Vec<Positioned<String>>) -> Vec<OsString> {
    texts.into_iter().map(|text| text.value.into()).collect()
}
