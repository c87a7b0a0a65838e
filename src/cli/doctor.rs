//! `acp-relay doctor`: what on this machine would keep the relay from working, each with its fix.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::admission::announced_ports;
use super::config::{self, CheckLevel, ConfigFile};
use super::console::Output;
use super::install::installed;
use super::ssh_install::SshInstallArgs;
use super::state::StateDir;
use super::target::{self, AgentArgument};
use super::text::Tone;
use super::token::Store;
use super::{agents, console, endpoints, joined, probe};
use analysis::text::counted;
use transport::{Endpoint, current_time, https_proxy};

/// For `--help`.
pub(super) const EXAMPLES: &str = "\
Examples:
  acp-relay doctor
      Whether tokens, the configuration, the agents and the editors' entries are as they should be.
  acp-relay doctor --no-probe
      The same, without starting agents.

Exit codes: 0 nothing has to be fixed; 1 something has.";

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Do not start the installed agents to see whether they answer
    #[arg(long)]
    no_probe: bool,
    #[command(flatten)]
    ssh: SshInstallArgs,
    /// Print one JSON array, for a program: area, state (good, note or bad), text
    #[arg(long)]
    json: bool,
}

/// The result of one check.
struct Finding {
    area: &'static str,
    state: State,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Good,
    /// Nothing has to be done.
    Note,
    Bad,
}

/// Runs the subcommand.
pub(super) fn run(args: &Doctor) -> Result<ExitCode, ExitCode> {
    let mut found = Vec::new();
    state_and_tokens(&mut found);
    configuration(&mut found);
    listeners(&mut found);
    editors(args, &mut found)?;
    well_known(args.no_probe, &mut found)?;
    let bad = found.iter().filter(|one| one.state == State::Bad).count();
    let code = u8::from(bad > 0);
    if args.json {
        let all = found
            .iter()
            .map(|one| json!({ "area": one.area, "state": one.state.name(), "text": one.text }));
        return Ok(console::print_json(&all.collect(), code));
    }
    let mut out = Output::new();
    for one in &found {
        let (word, tone) = match one.state {
            State::Good => ("ok  ", Tone::Agent),
            State::Note => ("note", Tone::Odd),
            State::Bad => ("FIX ", Tone::Bad),
        };
        let word = out.paint.tone(tone, word);
        out.line(format!("{word}  {:13}  {}", one.area, one.text));
    }
    out.line(match bad {
        0 => "Nothing has to be fixed.".to_owned(),
        bad => format!("{} to fix.", counted(bad, "thing")),
    });
    Ok(out.done(code))
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Bad => "bad",
        }
    }
}

/// A list of findings in one area.
struct Area<'f>(&'static str, &'f mut Vec<Finding>);

impl Area<'_> {
    fn add(&mut self, state: State, text: impl Into<String>) {
        self.1.push(Finding {
            area: self.0,
            state,
            text: text.into(),
        });
    }
}

fn state_and_tokens(found: &mut Vec<Finding>) {
    let mut area = Area("state", found);
    let state = StateDir::find().and_then(|state| state.lock().map(|_| state.file("")));
    match state {
        Ok(path) => area.add(State::Good, path.display().to_string()),
        Err(fault) => area.add(State::Bad, fault.to_string()),
    }
    let mut area = Area("tokens", found);
    let store = Store::find(None);
    match store.and_then(|store| Ok((store.own_token()?, store.keyring()?))) {
        Err(fault) => area.add(State::Bad, fault.to_string()),
        Ok((own, others)) => {
            let now = current_time().unix;
            let own = if own.is_some() {
                "your own token"
            } else {
                "no token of your own yet"
            };
            let count = counted(others.keys().count(), "token");
            area.add(State::Good, format!("{own}, {count} for others"));
            for key in others.keys().filter(|key| key.has_expired(now)) {
                let name = &key.name;
                let text = format!("that of {name} has expired: `acp-relay token revoke {name}`");
                area.add(State::Note, text);
            }
        }
    }
    let mut area = Area("joined agents", found);
    for name in joined::names() {
        match joined::read(&name) {
            Ok(_) => area.add(State::Good, name),
            Err(fault) => area.add(State::Bad, fault.to_string()),
        }
    }
}

/// The configuration file, with what it needs of this machine: programs, ports, certificates.
fn configuration(found: &mut Vec<Finding>) {
    let mut area = Area("configuration", found);
    let Some(place) = ConfigFile::find() else {
        let text = "no file, and none is needed; `acp-relay config example` prints one";
        return area.add(State::Good, text);
    };
    let path = place.0.display().to_string();
    let Ok(text) = std::fs::read_to_string(&place.0) else {
        return area.add(
            State::Bad,
            format!("{path} cannot be read; chmod u+r {path}"),
        );
    };
    let (config, faults) = config::read_with_notes(&place, &text, CheckLevel::Machine);
    let mut is_good = true;
    for (is_note, line) in faults.lines() {
        is_good &= is_note;
        area.add(if is_note { State::Note } else { State::Bad }, line);
    }
    if is_good {
        let agents = counted(config.agents.len(), "agent");
        area.add(State::Good, format!("{path}: {agents}"));
    }
}

/// The relays of this user that run now.
fn listeners(found: &mut Vec<Finding>) {
    let ports = announced_ports();
    let text = match ports.as_slice() {
        [] => "no relay of yours listens at a port now".to_owned(),
        ports => format!("a relay of yours listens at port {}", ports.join(", ")),
    };
    Area("listeners", found).add(State::Good, text);
}

/// The proxy of this network, and the editors' entries that start an acp-relay.
fn editors(args: &Doctor, found: &mut Vec<Finding>) -> Result<(), ExitCode> {
    if let Some((proxy, direct)) = https_proxy() {
        let mut text = format!("agents at https:// and wss:// are reached through {proxy}");
        if !direct.is_empty() {
            text += &format!(", except {direct} (NO_PROXY)");
        }
        Area("proxy", found).add(State::Good, text);
    }
    for (editor, read) in installed(None) {
        let mut area = Area("editors", found);
        let title = editor.title();
        let (path, entries) = match read {
            Ok(read) => read,
            Err(fault) => {
                area.add(State::Bad, format!("{title}: {fault}"));
                continue;
            }
        };
        for entry in entries {
            let name = format!("{title}, \"{}\" in {}", entry.name, path.display());
            let agent = entry.agent().filter(|agent| *agent != "--");
            let agent = agent.map(target::read).transpose();
            let over_ssh = match &agent {
                Ok(Some(AgentArgument::Endpoint(at @ Endpoint::Ssh(_)))) => Some(at.clone()),
                _ => None,
            };
            let agent = agent.and_then(|agent| match agent {
                Some(AgentArgument::Name(name)) => target::check(&name),
                _ => Ok(()),
            });
            if !Path::new(&entry.program).is_file() && entry.program.contains('/') {
                let text = format!("{name}: there is no {}; install it again", entry.program);
                area.add(State::Bad, text);
            } else if let Err(fault) = agent {
                area.add(State::Bad, format!("{name}: {fault}"));
            } else if let Some(at) = over_ssh.filter(|_| !args.no_probe) {
                match args.ssh.reach(&at, endpoints::setup(), !args.json)? {
                    Ok(()) => area.add(State::Good, format!("{name}: it can be reached")),
                    Err(error) => area.add(State::Bad, format!("{name}: {error}")),
                }
            } else {
                area.add(State::Good, name);
            }
        }
    }
    Ok(())
}

/// The well-known agents that are installed here.
fn well_known(no_probe: bool, found: &mut Vec<Finding>) -> Result<(), ExitCode> {
    let mut area = Area("agents", found);
    let names = agents::installed_names();
    if names.is_empty() {
        let text = "no well-known agent is installed; `acp-relay agents list` says how to";
        area.add(State::Note, text);
        return Ok(());
    }
    if no_probe {
        area.add(State::Good, format!("installed: {}", names.join(", ")));
        return Ok(());
    }
    let asked = names.iter().map(|name| vec![(*name).into()]);
    for (name, answer) in names.iter().zip(probe::all(asked.collect())?) {
        match answer {
            Ok(who) => area.add(State::Good, format!("{name} answers: {who}")),
            Err(why) => {
                let text = format!("{name}: {why}; `acp-relay try {name}` shows more");
                area.add(State::Bad, text);
            }
        }
    }
    Ok(())
}
