//! Which endpoints can be used where, and their help. `transport::Endpoint` has their grammar.

use std::borrow::Cow;
use std::ffi::OsString;

use super::ssh_install::SshInstallArgs;
use super::{agent_connect, agents, features, recordings};
use jsonrpc::nearest;
use transport::{Endpoint, HttpEndpoint, OpenError, OpenErrorKind, Setup, registry};

/// Programs that run the agent that is their first argument.
const RUNNERS: [&str; 9] = [
    "bun", "bunx", "deno", "env", "node", "npx", "python", "python3", "uvx",
];

/// The settings for opening links, with all transports.
pub(super) fn setup() -> Setup {
    Setup {
        agent_connect: agent_connect::TRANSPORT,
        replay: Some(replay::TRANSPORT),
        ssh_install: SshInstallArgs::default().install(false),
        ..Setup::default()
    }
}

/// The forms of endpoints, for `--help`.
pub(super) fn help() -> String {
    let forms = Endpoint::FORMS.iter();
    let forms = forms.filter(|(form, _)| features::missing(form).is_none());
    let width = forms.clone().map(|(form, _)| form.len()).max();
    let width = width.unwrap_or(0) + 2;
    let forms = forms.map(|(form, about)| format!("  {form:width$}{about}\n"));
    let forms: String = forms.collect();
    format!(
        "Endpoints:\n{forms}  \
         `-- COMMAND ARGS…` at the end is exec: as separate arguments.\n  \
         Port 0 lets the system choose a port; it is printed on stderr: \
         `acp-relay: listening on ENDPOINT`.\n  \
         Byte streams carry one message per line or Content-Length headers, whichever the peer uses \
         first."
    )
}

/// Parses an agent's endpoint.
pub(super) fn read_agent(text: &str) -> Result<Endpoint, String> {
    if !text.contains([':', '/']) {
        let near = nearest(text, agents::profile_names());
        let known = near.and_then(|near| Some((near, agents::profile(near)?)));
        let known = known.map(|(near, profile)| {
            let words = profile.command.join(" ");
            format!(
                "the command of the well-known agent `{near}`, which goes after `--`: -- {words}"
            )
        });
        let own = format!("if it is the agent's command, it goes after `--`: -- {text}");
        return Err(match known {
            Some(known) if near == Some(text) => {
                format!("it is not an endpoint; did you mean {known}")
            }
            Some(known) => format!("it is not an endpoint; {own}; or did you mean {known}"),
            None => format!("it is not an endpoint; {own}"),
        });
    }
    let read: Result<Endpoint, _> = text.parse();
    let mut endpoint = read.map_err(|error| error.to_string())?;
    if let Endpoint::Replay(at) = &mut endpoint
        && let Some(path) = recordings::find(&at.path)?
    {
        at.path = path;
    }
    Ok(endpoint)
}

/// A short name of the agent at an endpoint, or of its program.
pub(super) fn label(agent: &Endpoint) -> String {
    let argv = match agent {
        Endpoint::Exec(argv) => argv,
        Endpoint::Replay(_) => return "replay".to_owned(),
        other => {
            let text = other.to_string();
            return text.split("://").last().unwrap_or_default().to_owned();
        }
    };
    let words: Vec<Cow<'_, str>> = argv.iter().map(|word| word.to_string_lossy()).collect();
    let base = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    // The value of a variable may be secret.
    let is_program = |word: &&Cow<'_, str>| {
        !RUNNERS.contains(&&*base(word)) && !word.starts_with('-') && !word.contains('=')
    };
    let program = words.iter().find(is_program).or_else(|| words.first());
    // `@google/gemini-cli@0.17`, `dist/agent.js`
    let name = base(program.map_or("", |word| word));
    name.split(['@', '.']).next().unwrap_or_default().to_owned()
}

/// Rejects endpoints that cannot be listened at.
pub(super) fn check_listener(at: &Endpoint) -> Result<(), String> {
    let fault = match at {
        Endpoint::Exec(_) => {
            "a process that we start is the agent, not a client; its command goes after `--`"
        }
        Endpoint::Ssh(_) => "ssh leads to an agent; clients on this machine use it with `connect`",
        Endpoint::Replay(_) => {
            "a recording is played as the agent, not as a client (but see `acp-relay replay client`)"
        }
        _ => return features::missing(at.scheme()).map_or(Ok(()), Err),
    };
    Err(format!("{at}: {fault}"))
}

/// What conflicts between a listener at `new` and `others`, if anything does.
pub(super) fn conflict<'a>(
    mut others: impl Iterator<Item = &'a Endpoint>,
    new: &Endpoint,
) -> Option<String> {
    // The system chooses another port for each listener at port 0.
    let chosen = matches!(
        new,
        Endpoint::Tcp { port: 0, .. } | Endpoint::Http(HttpEndpoint { port: 0, .. })
    );
    let one = others.find(|one| one.shares_port(new) || *one == new && !chosen)?;
    Some(match one == new {
        true => format!("there is another listener at {new}"),
        false => {
            format!("{one} uses the same port; each listener needs a port of its own")
        }
    })
}

/// Rejects endpoints where no agent can be.
pub(super) fn check_agent(to: &Endpoint) -> Result<(), String> {
    let fault = match to {
        Endpoint::Stdio => {
            "our stdin and stdout belong to the client; an agent is a command after `--`, or listens"
        }
        Endpoint::Tcp { port: 0, .. } | Endpoint::Http(HttpEndpoint { port: 0, .. }) => {
            "port 0 is for listeners; nothing can be reached at it"
        }
        _ => return features::missing(to.scheme()).map_or(Ok(()), Err),
    };
    Err(format!("{to}: {fault}"))
}

/// Checks whether the agent is available, as far as that shows before it is needed. `install` says
/// how to install it.
pub(super) fn check_agent_available(
    to: &Endpoint,
    setup: &Setup,
    install: Option<&str>,
) -> Result<(), OpenError> {
    registry::check(to, setup).map_err(|mut error| {
        if let (Some(install), Endpoint::Exec(argv), OpenErrorKind::Unavailable) =
            (install, to, error.kind)
            && setup.launch.dir.as_ref().is_none_or(|dir| dir.is_dir())
        {
            let program = argv.first().map(|word| word.to_string_lossy());
            error.what = format!("`{}` is not installed", program.unwrap_or_default());
            error.remedy = Some(format!("To install it: {install}"));
        }
        error
    })
}

/// The agent, named by endpoint or by command; `otherwise` is the usage without a command.
pub(super) fn agent(
    endpoint: Option<Endpoint>,
    command: Vec<OsString>,
    otherwise: &str,
) -> Result<Endpoint, String> {
    match endpoint {
        Some(endpoint) => check_agent(&endpoint).map(|()| endpoint),
        None if command.is_empty() => {
            let words = otherwise.split(' ');
            let words = words.filter(|word| !["--agent", "ENDPOINT"].contains(word));
            let subcommand = words.collect::<Vec<_>>().join(" ");
            Err(format!(
                "there is no agent. Name its command, `acp-relay {subcommand} -- COMMAND ARGS…`, \
                 or where it listens, `acp-relay {otherwise}`"
            ))
        }
        None => Ok(Endpoint::Exec(command)),
    }
}
