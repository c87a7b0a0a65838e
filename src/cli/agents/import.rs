//! `acp-relay agents import`: the agents of a file in the format of the ACP registry.
//!
//! The format is that of github.com/agentclientprotocol/registry (FORMAT.md, agent.schema.json). It
//! says how an agent is downloaded and run; of that, the program that an installation leaves on PATH
//! is kept, and how to install it.

use std::collections::BTreeMap;
use std::env::consts::{ARCH, OS};
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use super::profile::{IMPORTED, Profile, check_name, is_known};
use crate::cli::bounded::{self, MAX_BYTES};
use crate::cli::console;
use crate::cli::exit;
use crate::cli::state::{self, StateDir, StateError};
use analysis::text::counted;

/// Arguments of `agents import`.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// A registry, or one agent of it; `-` is stdin
    #[arg(value_name = "FILE")]
    file: String,
}

/// An agent of the registry. What is not needed here is not read.
#[derive(Debug, Deserialize)]
struct Agent {
    id: String,
    name: String,
    #[serde(default)]
    distribution: Distribution,
    #[serde(default, rename = "_meta")]
    meta: Meta,
}

/// What a listener of acp-relay says beside the registry's members.
#[derive(Debug, Default, Deserialize)]
struct Meta {
    #[serde(rename = "acp-relay")]
    relay: Option<Listener>,
}

#[derive(Debug, Deserialize)]
struct Listener {
    url: String,
}

#[derive(Debug, Default, Deserialize)]
struct Distribution {
    /// By platform.
    #[serde(default)]
    binary: BTreeMap<String, Binary>,
    npx: Option<Package>,
    uvx: Option<Package>,
}

#[derive(Debug, Deserialize)]
struct Binary {
    archive: String,
    cmd: String,
    #[serde(flatten)]
    start: Start,
}

#[derive(Debug, Deserialize)]
struct Package {
    package: String,
    #[serde(flatten)]
    start: Start,
}

#[derive(Debug, Deserialize)]
struct Start {
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// Runs the subcommand.
pub(super) fn run(args: &Import) -> Result<ExitCode, ExitCode> {
    let refused = |fault: String| {
        let fault = format!("{}: {fault}; nothing was imported", args.file);
        exit::fail(exit::DATA, &fault)
    };
    let text = read_text(&args.file);
    let text = text.map_err(|fault| console::unreadable(Path::new(&args.file), &fault))?;
    let agents = read_agents(&text).map_err(refused)?;
    let all = agents.len();
    let new = agents.into_iter().filter(|agent| !is_known(&agent.id));
    let new: Vec<Profile> = new.filter_map(Agent::into_profile).collect();
    if let Some(odd) = new.iter().find(|profile| is_odd(profile)) {
        let what = "a command, package or variable is not a line of text";
        return Err(refused(format!("{}: {what}", odd.name)));
    }
    store(&new).map_err(|fault| exit::fail(exit::CANNOT_CREATE, &fault))?;
    let text = format!(
        "Imported {}, in place of those imported before; the other {} are known already, or have \
         nothing for {}. `acp-relay agents list` lists them; nothing was downloaded.",
        counted(new.len(), "agent"),
        all - new.len(),
        platform(),
    );
    let commands = new.iter().filter(|profile| !profile.command.is_empty());
    let commands = commands.map(|one| format!("\n  {}  {}", one.name, one.command.join(" ")));
    let text = text + &commands.collect::<String>();
    Ok(console::print(&text, exit::SUCCESS))
}

fn read_text(file: &str) -> io::Result<String> {
    match file {
        "-" => bounded::read_text(console::input(), MAX_BYTES),
        file => bounded::read_text(File::open(file)?, MAX_BYTES),
    }
}

/// The agents of a registry, or the one of an entry for it.
fn read_agents(text: &str) -> Result<Vec<Agent>, String> {
    let value: Value = serde_json::from_str(text).map_err(|fault| format!("not JSON ({fault})"))?;
    let agents = match value.get("agents") {
        Some(agents) => agents.clone(),
        None => Value::Array(vec![value]),
    };
    let agents: Vec<Agent> = serde_path_to_error::deserialize(agents).map_err(|fault| {
        let (path, why) = (fault.path().to_string(), fault.inner());
        let place = path.trim_end_matches('.');
        format!("not in the format of the ACP registry: agents{place}: {why}")
    })?;
    for Agent { id, .. } in &agents {
        check_name(id).map_err(|why| format!("the id {id:?} cannot be a name: {why}"))?;
    }
    Ok(agents)
}

/// Keeps them, in place of those imported before.
fn store(agents: &[Profile]) -> Result<(), StateError> {
    let state = StateDir::find()?;
    let _lock = state.lock()?;
    let text = serde_json::to_string(agents).unwrap_or_default();
    state::write(&state.file(IMPORTED), &text)
}

/// This system, as the registry calls it.
fn platform() -> String {
    let system = if OS == "macos" { "darwin" } else { OS };
    format!("{system}-{ARCH}")
}

impl Agent {
    /// How it is started here, by the relay on PATH for a listener's agent that names no
    /// package; `None` if there is nothing for this system. The command is empty if
    /// it is not known: a package of npm does not say in the registry how its program is called.
    fn into_profile(self) -> Option<Profile> {
        let Distribution {
            mut binary,
            npx,
            uvx,
        } = self.distribution;
        let here = binary.remove(&platform());
        let program = |one: &Binary| Some(Path::new(&one.cmd).file_name()?.to_str()?.to_owned());
        let elsewhere = binary.values().find_map(program);
        let (program, start, install) = match (here, uvx, npx) {
            (Some(here), ..) => (program(&here), here.start, here.archive),
            (None, Some(uvx), _) => {
                // uvx runs the program that is called like the package.
                let end = uvx.package.find(['@', '=', '[', '<', '>', '~', '!', ' ']);
                let name = uvx.package[..end.unwrap_or(uvx.package.len())].to_owned();
                (
                    Some(name),
                    uvx.start,
                    format!("uv tool install {}", uvx.package),
                )
            }
            (None, None, Some(npx)) => (elsewhere, npx.start, format!("npm i -g {}", npx.package)),
            (None, None, None) => {
                let url = self.meta.relay?.url;
                // Another word could be an option, or an agent's name.
                url.contains("://").then_some(())?;
                let args = vec!["connect".to_owned(), url];
                let env = BTreeMap::new();
                let install = "acp-relay help install".to_owned();
                (Some("acp-relay".to_owned()), Start { args, env }, install)
            }
        };
        let program = program.filter(|program| !program.is_empty());
        let command = program.map(|program| std::iter::once(program).chain(start.args).collect());
        Some(Profile {
            name: self.id,
            aliases: Vec::new(),
            title: self.name,
            command: command.unwrap_or_default(),
            env: start.env,
            dialect: None,
            install,
        })
    }
}

/// Whether it has a text that would not be a line of the list, or a variable that none can be.
fn is_odd(profile: &Profile) -> bool {
    let texts = profile.command.iter().chain([&profile.install]);
    let texts = texts.chain(profile.env.keys()).chain(profile.env.values());
    let is_variable = |name: &String| !name.is_empty() && !name.contains('=');
    texts
        .into_iter()
        .any(|text| text.contains(char::is_control))
        || !profile.env.keys().all(is_variable)
}
