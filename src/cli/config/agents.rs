//! `[agents.NAME]`: the agents of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::ops::Range;

use super::here;
use super::plan::{AgentPart, ListenerPart, Source};
use super::read::{Context, Look, dialect, one_of, path, settings};
use super::sheet::{Sheet, Spot};
use crate::cli::agents::{self, Program, check_name};
use crate::cli::remote::RemoteArgs;
use crate::cli::{agent_connect, endpoints, limits};
use crate::transport::{Endpoint, Greeting, Launch, Pin};

/// The names of agents.
pub(super) type Names = BTreeSet<String>;

/// Keys of agents that are started.
const OF_PROGRAMS: [&str; 4] = ["args", "env", "inherit-env", "cwd"];
/// Keys of agents that listen.
const OF_ENDPOINTS: [&str; 6] = [
    "bearer-file",
    "header-file",
    "headers",
    "http2-prior-knowledge",
    "pin-sha256",
    "tls-ca",
];

/// All agents of the file, and their names: the name of an agent with faults is known, too.
pub(super) fn agents(sheet: &Sheet<'_>, context: &Context) -> (BTreeMap<String, AgentPart>, Names) {
    let Some(own) = sheet.sheet("agents") else {
        if sheet.has("agents").is_none() {
            nobody(sheet, context);
        }
        return Default::default();
    };
    if own.is_empty() {
        nobody(&own, context);
    }
    let sheet = own;
    let mut names = Names::new();
    let agents = sheet.tables().into_iter().filter_map(|(name, sheet)| {
        if let Err(why) = check_name(&name.value) {
            sheet.fault(
                &name.at,
                format!("`{}` is no agent's name: {why}", name.value),
            );
        }
        names.insert(name.value.clone());
        agent(&sheet, context).map(|agent| (name.value, agent))
    });
    (agents.collect(), names)
}

/// Reports a file that describes no agent.
fn nobody(sheet: &Sheet<'_>, context: &Context) {
    if context.look >= Look::Whole {
        let remedy = "describe it below [agents.NAME], with command = [\"PROGRAM\", \"ARG\"]; \
                      `acp-relay config example` shows how";
        sheet.fault_with(&sheet.at, "there is no agent", remedy);
    }
}

/// Reports permission defaults that have no effect, because Agent Connect is used neither by the
/// listeners nor by the agent.
pub(super) fn check_unasked(
    sheet: &Sheet<'_>,
    agents: &BTreeMap<String, AgentPart>,
    listeners: &[ListenerPart],
) {
    if agents.is_empty() || listeners.iter().any(agent_connect::heeds) {
        return;
    }
    let Some(sheet) = sheet.sheet("agents") else {
        return;
    };
    for (name, sheet) in sheet.tables() {
        let part = agents.get(&name.value).filter(|part| !part.is_rest());
        if let (Some(at), Some(_)) = (sheet.has("default-permission"), part) {
            let what = format!("`{}` is for Agent Connect", sheet.path("default-permission"));
            let remedy =
                "listen for it with agent-connect+http://, or beside ACP with `agent-connect`";
            sheet.fault_with(&at, what, remedy);
        }
    }
}

fn agent(sheet: &Sheet<'_>, context: &Context) -> Option<AgentPart> {
    let source = source(sheet, context);
    if let (Look::Here, Some(source)) = (context.look, &source) {
        here::agent(sheet, source);
    }
    let description = sheet.text("description").map(|text| text.value);
    let dialect = dialect(sheet, context);
    let framing = one_of(sheet, "framing");
    let record = sheet.flag("record").unwrap_or(true);
    let limits = settings(sheet, "limits", |name| {
        let why = "this limit applies to all listeners; move it to [limits]";
        (limits::is_of_listeners(name)).then(|| why.to_owned())
    });
    let on_disconnect = one_of(sheet, "on-disconnect");
    let unasked = one_of(sheet, "default-permission");
    sheet.close();
    Some(AgentPart {
        description,
        source: source?,
        dialect,
        framing,
        record,
        limits,
        on_disconnect,
        unasked,
    })
}

fn source(sheet: &Sheet<'_>, context: &Context) -> Option<Source> {
    let command = sheet.texts("command");
    let profile = sheet.text("profile");
    let endpoint = sheet.read_at("endpoint", |text| {
        let at = endpoints::read_agent(text)?;
        Ok(at.below(&context.folder))
    });
    let launch = launch(sheet, context);
    let args = sheet.texts("args").unwrap_or_default();
    let remote = remote(sheet, context);
    let given = ["command", "profile", "endpoint"];
    let given: Vec<(&str, Range<usize>)> = given
        .into_iter()
        .filter_map(|key| Some((key, sheet.has(key)?)))
        .collect();
    match &given[..] {
        [] => {
            let what = format!("{} names no agent", sheet.name());
            let remedy = "add command = [\"PROGRAM\", \"ARG\"], profile = \"NAME\" or endpoint = \
                          \"…\"";
            sheet.fault_with(&sheet.at, what, remedy);
        }
        [_] => {}
        [(first, _), (second, at), ..] => {
            let what = format!("`{}` is given besides `{first}`", sheet.path(second));
            sheet.fault_with(at, what, "an agent has only one of them");
        }
    }
    match given.first() {
        Some(("endpoint", _)) => {
            sheet.fault_misplaced(&OF_PROGRAMS, "agents that we start", None);
        }
        Some(_) => sheet.fault_misplaced(&OF_ENDPOINTS, "agents that listen", None),
        None => {}
    }
    match (command, profile, endpoint) {
        (Some(command), ..) => program(sheet, command, &args, launch).map(Source::Program),
        (_, Some(profile), _) => profiled(sheet, &profile, args, launch).map(Source::Program),
        (.., Some(endpoint)) => reached(sheet, endpoint, remote),
        _ => None,
    }
}

/// An agent given by its command.
fn program(
    sheet: &Sheet<'_>,
    command: Vec<Spot<String>>,
    args: &[Spot<String>],
    launch: Launch,
) -> Option<Program> {
    if let Some(first) = args.first() {
        let what = format!("`{}` is for profiles", sheet.path("args"));
        sheet.fault_with(&first.at, what, "put the arguments into `command`");
    }
    let Some(first) = command.first() else {
        let at = sheet.has("command")?;
        sheet.fault(
            &at,
            format!("{}: there is no program", sheet.path("command")),
        );
        return None;
    };
    let word = &first.value;
    if word.is_empty() || (word.contains('/') && !word.starts_with('/')) {
        let what = format!("{}: `{word}` is not a program", sheet.path("command"));
        let remedy = "name one that is on PATH, or its full path";
        sheet.fault_with(&first.at, what, remedy);
    } else if command.len() == 1 && word.contains(' ') {
        let what = format!("{}: `{word}` is one word", sheet.path("command"));
        let remedy = "there is no shell to split it; write each word as a string of its own";
        sheet.fault_with(&first.at, what, remedy);
    }
    Some(Program {
        argv: words(command),
        launch,
        install: None,
    })
}

/// An agent given by the name of its profile.
fn profiled(
    sheet: &Sheet<'_>,
    name: &Spot<String>,
    args: Vec<Spot<String>>,
    launch: Launch,
) -> Option<Program> {
    let Some(profile) = agents::profile(&name.value) else {
        let what = format!("there is no profile called `{}`", name.value);
        let known = (name.value.as_str(), agents::profile_names());
        sheet.fault_unknown(
            &name.at,
            what,
            known,
            "`acp-relay agents list` lists them",
        );
        return None;
    };
    let mut program = profile.program();
    program.argv.extend(words(args));
    program.launch = launch.over(program.launch);
    Some(program)
}

fn reached(sheet: &Sheet<'_>, endpoint: Spot<Endpoint>, remote: RemoteArgs) -> Option<Source> {
    let fault = |what: String| sheet.fault(&endpoint.at, what);
    if let Endpoint::Exec(_) = endpoint.value {
        fault("a program is configured with `command`, each of its words as a string".to_owned());
        return None;
    }
    endpoints::check_agent(&endpoint.value)
        .map_err(fault)
        .ok()?;
    unseen(sheet, &endpoint.value, &remote);
    Some(Source::Endpoint(endpoint.value, remote))
}

/// Reports options that do not apply to this endpoint.
fn unseen(sheet: &Sheet<'_>, at: &Endpoint, remote: &RemoteArgs) {
    let web = match at {
        Endpoint::Web(web) => Some(web),
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
            sheet.fault_misplaced(keys, is_for, None);
        }
    }
    if let (Some(_), Some(at)) = (sheet.has("tls-ca"), sheet.has("pin-sha256")) {
        let what = format!("`{}` is given besides `tls-ca`", sheet.path("pin-sha256"));
        sheet.fault_with(&at, what, "use only one of them");
    }
}

fn launch(sheet: &Sheet<'_>, context: &Context) -> Launch {
    let env = sheet.sheet("env").map(|sheet| {
        let entries = sheet.entries().into_iter().map(|(name, value)| {
            if name.value.is_empty() || name.value.contains(['=', '\0', '\n', '\r']) {
                let shown = name.value.escape_debug();
                let what = format!("`{shown}` cannot be the name of a variable");
                let remedy = "a name is not empty and has no `=`, no line break and no NUL";
                sheet.fault_with(&name.at, what, remedy);
            }
            if value.value.contains('\0') {
                let what = format!("{}: a NUL character", sheet.path(&name.value));
                sheet.fault_with(&value.at, what, "no variable can hold one; remove it");
            }
            (name.value.into(), value.value.into())
        });
        entries.collect()
    });
    Launch {
        dir: path(sheet, "cwd", context),
        env: env.unwrap_or_default(),
        bare: sheet.flag("inherit-env") == Some(false),
    }
}

fn remote(sheet: &Sheet<'_>, context: &Context) -> RemoteArgs {
    RemoteArgs {
        tls_ca: path(sheet, "tls-ca", context),
        pin_sha256: sheet.read("pin-sha256", |text| {
            text.parse::<Pin>().map_err(|error| error.to_string())
        }),
        headers: sheet.list("headers", |text| {
            let added = Greeting::default().add(text);
            added.map(|()| text.to_owned())
        }),
        header_file: path(sheet, "header-file", context),
        bearer_file: path(sheet, "bearer-file", context),
        http2_prior_knowledge: sheet.flag("http2-prior-knowledge").unwrap_or(false),
    }
}

fn words(texts: Vec<Spot<String>>) -> Vec<OsString> {
    texts.into_iter().map(|text| text.value.into()).collect()
}
