//! `--ssh-install`, and the machines that the user has agreed to copy this program to.

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use tokio::runtime::Builder;

use super::state::{self, StateDir, StateError};
use super::{console, processes, runtime, stderr};
use transport::{Endpoint, OpenError, Setup, SshEndpoint, SshInstall, registry};

/// The file of these machines in the state directory, an address per line.
const FILE: &str = "ssh-hosts";

/// Whether this program is copied to a machine of `ssh://` where none works.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct SshInstallArgs {
    /// Copy this program to the machine of an ssh:// agent, where none is that works; asked once for
    /// each machine
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    #[arg(help_heading = "Remote agents")]
    ssh_install: When,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum When {
    /// Never
    Never,
    /// Where you have agreed, for which `install`, `try` and `doctor` ask in a terminal
    #[default]
    Ask,
    /// Always
    Always,
}

impl SshInstallArgs {
    /// What is done; the user is asked if `may_ask` and there is a terminal.
    pub(super) fn install(self, may_ask: bool) -> SshInstall {
        match self.ssh_install {
            When::Never => SshInstall::default(),
            When::Always => SshInstall::new(|at, why| {
                tell(at, why);
                true
            }),
            When::Ask => SshInstall::new(move |at, why| {
                let has_agreed = agreed().is_ok_and(|all| all.contains(&name_of(at)));
                let agrees = has_agreed || may_ask && console::input_is_terminal() && ask(at, why);
                if agrees {
                    tell(at, why);
                }
                agrees
            }),
        }
    }

    /// Whether the agent at an `ssh://` address can be reached; what is missing there is copied.
    /// Errors of this machine are printed, and the exit code is returned.
    pub(super) fn reach(
        self,
        to: &Endpoint,
        mut setup: Setup,
        may_ask: bool,
    ) -> Result<Result<(), OpenError>, ExitCode> {
        setup.ssh_install = self.install(may_ask);
        processes::run_and_reap(|| {
            let runtime = runtime::build(Builder::new_current_thread())?;
            Ok(runtime.block_on(async { registry::connect(to, &setup).await.map(drop) }))
        })
    }
}

fn tell(at: &SshEndpoint, why: &str) {
    stderr::print(&format!(
        "acp-relay: {why}; copying this one to {}",
        at.host
    ));
}

fn ask(at: &SshEndpoint, why: &str) -> bool {
    let question = format!(
        "{why}. Copy this program into ~/.local/share/acp-relay on {}, now and when it is missing \
         there? [y/N]",
        at.host
    );
    stderr::print(&question);
    let answer = console::input_line().unwrap_or_default();
    let agrees = matches!(answer.trim(), "y" | "Y" | "yes");
    if agrees && let Err(fault) = remember(at) {
        stderr::print(&format!(
            "acp-relay: warning: the answer is not kept: {fault}"
        ));
    }
    agrees
}

/// The machines that the user has agreed to.
fn agreed() -> Result<BTreeSet<String>, StateError> {
    let text = state::read(&StateDir::find()?.file(FILE))?;
    Ok(text
        .iter()
        .flat_map(|text| text.lines())
        .map(str::to_owned)
        .collect())
}

fn remember(at: &SshEndpoint) -> Result<(), StateError> {
    let state = StateDir::find()?;
    let _lock = state.lock()?;
    let mut all = agreed()?;
    all.insert(name_of(at));
    let lines: String = all.iter().map(|name| format!("{name}\n")).collect();
    state::write(&state.file(FILE), &lines)
}

/// The user's login on a machine, whatever agent is meant.
fn name_of(at: &SshEndpoint) -> String {
    let machine = SshEndpoint {
        agent: None,
        ..at.clone()
    };
    machine.to_string()
}
