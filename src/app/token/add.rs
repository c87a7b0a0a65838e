//! `acp-relay token new`: a token for somebody, printed once.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::command::read_name;
use super::{Store, store, time};
use crate::app::state::Fault;
use crate::app::{cli, console, exit};
use crate::guard::{Agents, Grant, Key, KeyId, read_agents};

/// What `new` is asked for.
#[derive(Debug, Args)]
pub(super) struct New {
    /// What its bearer is called, in logs and recordings
    #[arg(value_parser = read_name)]
    name: String,
    /// For how long it is good: 30d, 12h, 90m; for good when left out
    #[arg(long, value_name = "TIME", value_parser = time::read)]
    expires: Option<Duration>,
    /// The agents it is good for, by name, with commas between them; all when left out
    #[arg(long, value_name = "NAMES", value_parser = read_agents)]
    agents: Option<Agents>,
    /// It may also see and change what is not its bearer's own
    #[arg(long)]
    admin: bool,
}

pub(super) fn run(args: &New, store: &Store) -> Result<ExitCode, Fault> {
    let token = store::random()?;
    let id = KeyId::of(token.reveal().as_bytes());
    let key = Key {
        id: id.expect("a new token has an id"),
        digest: token.digest(),
        name: args.name.clone(),
        expires: args.expires.map(|good| time::now() + good.as_secs()),
        grant: Grant {
            agents: args.agents.clone().unwrap_or(Agents::All),
            admin: args.admin,
        },
    };
    Ok(match store.change(|ring| ring.add(key))? {
        Ok(()) => console::print(token.reveal(), exit::SUCCESS),
        Err(fault) => cli::fail(exit::USAGE, &fault),
    })
}
