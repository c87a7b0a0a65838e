//! What a remote agent may have of this machine, and what folders are called on both: the options
//! of `connect`, and the disk that paths are looked up on.
//!
//! Not here: the judgements (see `crate::border`).

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::border::{Border, Disk, Map, Pair, Pattern, Rules};
use crate::transport::Endpoint;

/// What crosses between this machine and the agent's.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "This machine and the agent's")]
pub(super) struct BorderArgs {
    /// Whether the agent is kept from running commands here and from files outside the session's
    /// folders
    #[arg(long, value_enum, default_value_t)]
    guard: Guard,
    /// Let the agent call this method, such as `terminal/*`; may be given several times
    #[arg(long, value_name = "METHOD")]
    allow: Vec<Pattern>,
    /// Refuse this method of the agent, such as `fs/write_text_file`; may be given several times,
    /// and is stronger than --allow
    #[arg(long, value_name = "METHOD")]
    deny: Vec<Pattern>,
    /// Let the agent have the files in this folder besides those of the session; may be given
    /// several times
    #[arg(long, value_name = "DIR")]
    root: Vec<PathBuf>,
    /// A folder here, and what it is called on the agent's machine: paths in messages are changed
    /// both ways; may be given several times
    #[arg(long, value_name = "LOCAL=REMOTE")]
    map: Vec<Pair>,
}

/// Against whom this machine is guarded.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Guard {
    /// Agents on other machines
    #[default]
    Remote,
    /// Every agent
    Always,
    /// None
    Never,
}

/// This machine's files.
#[derive(Debug)]
struct Files;

impl BorderArgs {
    /// Raises the border between this machine and `agent`; `None` when nothing is to be judged.
    pub(super) fn raise(self, agent: &Endpoint) -> Option<Box<Border>> {
        let guarded = match self.guard {
            Guard::Remote => !agent.is_loopback(),
            Guard::Always => true,
            Guard::Never => false,
        };
        if !guarded && self.deny.is_empty() && self.map.is_empty() {
            return None;
        }
        let rules = Rules {
            guarded,
            allow: self.allow,
            deny: self.deny,
            roots: self.root,
        };
        let border = Border::new(rules, Map::new(self.map), Box::new(Files));
        Some(Box::new(border))
    }
}

impl Disk for Files {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }

    fn exists(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }
}
