//! `acp-relay token list`: lists the tokens, without their secrets.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::{Store, time};
use crate::auth::{Agents, Key};
use crate::cli::state::StateError;
use crate::cli::{console, exit};

/// Arguments of `list`.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Print an array for a program instead: name, id, expires (seconds since 1970), expired,
    /// agents (null for all), admin
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &List, store: &Store) -> Result<ExitCode, StateError> {
    let (ring, now) = (store.keyring()?, time::now());
    if args.json {
        let all = ring.keys().map(|key| as_json(key, now)).collect();
        return Ok(console::print_json(&all, exit::SUCCESS));
    }
    let mut text = String::new();
    for key in ring.keys() {
        let agents = match &key.grant.agents {
            Agents::All => "all agents".to_owned(),
            Agents::These(names) => names.join(","),
        };
        let admin = if key.grant.admin { ", admin" } else { "" };
        let expires = match key.expires {
            None => "for good".to_owned(),
            Some(at) if key.has_expired(now) => format!("expired {}", time::show(at)),
            Some(at) => format!("until {}", time::show(at)),
        };
        text.push_str(&format!(
            "{}  {}  {agents}{admin}, {expires}\n",
            key.id, key.name
        ));
    }
    if text.is_empty() {
        console::note("there are no tokens; `acp-relay token new NAME` creates one");
        return Ok(ExitCode::from(exit::SUCCESS));
    }
    Ok(console::print(&text, exit::SUCCESS))
}

fn as_json(key: &Key, now: u64) -> Value {
    json!({
        "name": key.name,
        "id": key.id.to_string(),
        "expires": key.expires,
        "expired": key.has_expired(now),
        "agents": match &key.grant.agents {
            Agents::All => Value::Null,
            Agents::These(names) => names.iter().cloned().collect(),
        },
        "admin": key.grant.admin,
    })
}
