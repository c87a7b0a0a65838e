//! `--login`, and the browser of the agents that `serve` starts.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::state::StateDir;
use transport::process::browser;
use transport::{Endpoint, LoginEnd};

/// Whether the pages of an agent's logins open here.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct LoginArgs {
    /// Open here the pages with which an agent on another machine logs in, and carry back what they end
    /// with [default: always for ssh://, otherwise ask; never with --guard always]
    #[arg(long, value_enum, value_name = "WHEN", help_heading = "Remote agents")]
    login: Option<When>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum When {
    /// While the editor logs in to the agent, or answers a question of it
    Always,
    /// The same, after a question in the browser
    Ask,
    /// The agent opens pages on its own machine
    Never,
}

impl LoginArgs {
    /// The relay's part in the logins of an agent on another machine.
    pub(super) fn end(self, agent: &Endpoint, is_guarded: bool) -> Option<LoginEnd> {
        let usual = match agent {
            _ if is_guarded => When::Never,
            Endpoint::Ssh(_) => When::Always,
            _ => When::Ask,
        };
        let when = self.login.unwrap_or(usual);
        (when != When::Never).then(|| login::here(&agent.to_string(), when == When::Ask))
    }
}

/// The program that agents get as their browser: a link to this one, whose name says what it is.
pub(super) fn agent_browser() -> Option<PathBuf> {
    let state = StateDir::find().ok()?;
    let _lock = state.lock().ok()?;
    let (link, own) = (state.file(browser::PROGRAM), std::env::current_exe().ok()?);
    if fs::read_link(&link).ok().as_ref() != Some(&own) {
        let _ = fs::remove_file(&link);
        symlink(own, &link).ok()?;
    }
    Some(link)
}
