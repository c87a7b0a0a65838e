//! Which endpoints make sense where, and how they are explained.
//!
//! Not here: their grammar (see `transport::Endpoint`).

use std::ffi::OsString;

use super::agents;
use super::config::nearest;
use crate::transport::{Endpoint, OpenError, OpenErrorKind, Setup, Tls, Web, registry};

/// The forms, for `--help`.
pub(super) fn help() -> String {
    let width = Endpoint::FORMS.iter().map(|(form, _)| form.len()).max();
    let width = width.unwrap_or(0) + 2;
    let forms: String = Endpoint::FORMS
        .iter()
        .map(|(form, about)| format!("  {form:width$}{about}\n"))
        .collect();
    format!(
        "Endpoints:\n{forms}  \
         `-- COMMAND ARGS…` at the end is exec: as separate arguments.\n  \
         Port 0 lets a listener choose; what it chose is said on stderr: \
         `acp-relay: listening on ENDPOINT`.\n  \
         Byte streams carry one message a line or Content-Length headers, whichever the peer uses \
         first."
    )
}

/// Reads an agent's endpoint.
pub(super) fn read_agent(text: &str) -> Result<Endpoint, String> {
    if !text.contains([':', '/']) {
        let near = nearest(text, agents::profile_names());
        let known = near.and_then(|near| Some((near, agents::profile(near)?)));
        let known = known.map(|(near, profile)| {
            let words = profile.command.join(" ");
            format!(
                "the command of the well-known agent `{near}`, which stands after `--`: -- {words}"
            )
        });
        let own = format!("if it is the agent's command, it stands after `--`: -- {text}");
        return Err(match known {
            Some(known) if near == Some(text) => format!("it is no endpoint; did you mean {known}"),
            Some(known) => format!("it is no endpoint; {own}; or did you mean {known}"),
            None => format!("it is no endpoint; {own}"),
        });
    }
    let read: Result<Endpoint, _> = text.parse();
    read.map_err(|error| error.to_string())
}

/// Refuses to listen where no client can come from.
pub(super) fn check_listener(at: &Endpoint) -> Result<(), String> {
    let fault = match at {
        Endpoint::Exec(_) => {
            "a process that we start is the agent, not a client; its command stands after `--`"
        }
        Endpoint::Replay(_) => {
            "a recording is played as the agent, not as a client (but see `acp-relay replay client`)"
        }
        Endpoint::Memory(_) => "it stays within one process; it is for tests",
        _ => return Ok(()),
    };
    Err(format!("{at}: {fault}"))
}

/// What is wrong with a listener at `new` beside `others`, if anything is.
pub(super) fn clash<'a>(
    mut others: impl Iterator<Item = &'a Endpoint>,
    new: &Endpoint,
) -> Option<String> {
    // The system chooses another port for each that asks for none.
    let chosen = matches!(
        new,
        Endpoint::Tcp { port: 0, .. } | Endpoint::Web(Web { port: 0, .. })
    );
    let one = others.find(|one| one.shares_port(new) || *one == new && !chosen)?;
    Some(match one == new {
        true => format!("{new} is listened at already"),
        false => {
            format!("{one} is at the same port already; each listener needs a port of its own")
        }
    })
}

/// Refuses to look for an agent where none can be.
pub(super) fn check_agent(to: &Endpoint) -> Result<(), String> {
    let fault = match to {
        Endpoint::Stdio => {
            "our stdin and stdout are the client's; an agent is a command after `--`, or listens"
        }
        Endpoint::Memory(_) => "it stays within one process; it is for tests",
        Endpoint::Tcp { port: 0, .. } | Endpoint::Web(Web { port: 0, .. }) => {
            "port 0 is for listening; nothing can be reached at it"
        }
        _ => return Ok(()),
    };
    Err(format!("{to}: {fault}"))
}

/// Whether the agent could be had, as far as that shows before anybody needs it. `install` is how to
/// install it.
pub(super) fn check_agent_here(
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

/// The agent that was named one way or the other; `otherwise` is how it is named without a command.
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

/// Refuses certificates that no listener would show.
pub(super) fn check_certificate(listen: &[Endpoint], tls: &Tls) -> Result<(), String> {
    let given = tls.cert.is_some() || tls.key.is_some();
    if given && !listen.iter().any(is_tls) {
        return Err(
            "--tls-cert and --tls-key are for listeners with TLS (https://, wss://), and there is none".to_owned(),
        );
    }
    if (tls.cert.is_none() || tls.key.is_none())
        && let Some(open) = listen.iter().find(|endpoint| is_tls(endpoint))
    {
        return Err(format!(
            "{open}: a listener with TLS needs --tls-cert and --tls-key, in PEM"
        ));
    }
    Ok(())
}

fn is_tls(endpoint: &Endpoint) -> bool {
    matches!(endpoint, Endpoint::Web(Web { tls: true, .. }))
}
