//! `acp-relay cluster`: the hosts, and the keys of gateways.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::json;
use tokio::runtime::Builder;

use super::ClusterArgs;
use super::options::read_key;
use crate::cli::console;
use crate::cli::{endpoints, exit, runtime, state};
use analysis::text::counted;
use cluster::{Gateway, HostRecord, Nats, Signer};

/// For `--help`.
const EXAMPLES: &str = "\
Examples:
  acp-relay cluster key gateway.seed
      Make the key of a gateway, and print the line for the --cluster-trust file of its hosts.
  acp-relay cluster hosts --cluster nats://nats.example --cluster-key gateway.seed
      What hosts there are, their agents and how busy they are.
  acp-relay cluster drain build1.0123… --cluster nats://nats.example --cluster-key gateway.seed
      Have no new conversations placed on a host.";

/// For `gateway --help`.
pub(in crate::cli) const GATEWAY_EXAMPLES: &str = "\
Examples:
  acp-relay gateway --cluster nats://nats.example --cluster-key gateway.seed --listen http://127.0.0.1:8000
      One address for the agents of all hosts. `acp-relay help cluster` has the whole setup.";

/// Arguments of `cluster`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Cluster {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make the key of a gateway, or show the public one of a key that there is
    Key {
        /// The file with the key
        file: PathBuf,
    },
    /// Show how many hosts and conversations there are
    Status {
        #[command(flatten)]
        cluster: ClusterArgs,
    },
    /// List the hosts
    Hosts {
        /// Print an object for a program instead: what each host says of itself, by its id
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        cluster: ClusterArgs,
    },
    /// Count the living sessions of each agent on each host
    Sessions {
        #[command(flatten)]
        cluster: ClusterArgs,
    },
    /// Have no new conversations placed on a host; those that it has continue
    Drain {
        /// The id of the host, or its name if no other host has that
        host: String,
        #[command(flatten)]
        cluster: ClusterArgs,
    },
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: &Cluster) -> ExitCode {
    match &args.command {
        Command::Key { file } => match key(file) {
            Ok(public) => console::print(&format!("{public}\n"), exit::SUCCESS),
            Err(fault) => exit::fail(exit::CANNOT_CREATE, &fault),
        },
        Command::Status { cluster } => with_gateway(cluster, |gateway| async move {
            let hosts = gateway.hosts();
            let sum = |count: fn(&HostRecord) -> usize| hosts.values().map(count).sum::<usize>();
            let text = format!(
                "{}, {} of them draining; {} of {} conversations\n",
                counted(hosts.len(), "host"),
                sum(|host| usize::from(host.draining)),
                sum(|host| host.open),
                sum(|host| host.capacity),
            );
            console::print(&text, exit::SUCCESS)
        }),
        Command::Hosts { json, cluster } => with_gateway(cluster, |gateway| async move {
            let hosts = gateway.hosts();
            if *json {
                return console::print(&format!("{}\n", json!(hosts)), exit::SUCCESS);
            }
            let lines = hosts.iter().map(|(id, host)| {
                let agents: Vec<&str> = host.agents.iter().map(String::as_str).collect();
                let labels = host.labels.iter();
                let labels = labels.map(|(name, value)| format!("  {name}={value}"));
                format!(
                    "{id}  {}/{}{}  {}{}  {}\n",
                    host.open,
                    host.capacity,
                    if host.draining { " draining" } else { "" },
                    agents.join(","),
                    labels.collect::<String>(),
                    host.address.as_deref().unwrap_or("over NATS"),
                )
            });
            console::print(&lines.collect::<String>(), exit::SUCCESS)
        }),
        Command::Sessions { cluster } => with_gateway(cluster, |gateway| async move {
            let sessions = match gateway.sessions().await {
                Ok(sessions) => sessions,
                Err(fault) => return exit::fail(exit::UNAVAILABLE, &fault),
            };
            let mut counts = BTreeMap::new();
            for one in sessions {
                *counts.entry((one.host, one.agent)).or_insert(0_usize) += 1;
            }
            let lines = counts.iter();
            let lines = lines.map(|((host, agent), count)| format!("{host}  {agent}  {count}\n"));
            console::print(&lines.collect::<String>(), exit::SUCCESS)
        }),
        Command::Drain { host, cluster } => with_gateway(cluster, |gateway| async move {
            let hosts = gateway.hosts();
            let name = format!("{host}.");
            let mut named = hosts
                .keys()
                .filter(|id| *id == host || id.starts_with(&name));
            let (Some(id), None) = (named.next(), named.next()) else {
                let fault =
                    format!("{host:?} names no host, or several: see `acp-relay cluster hosts`");
                return exit::fail(exit::USAGE, &fault);
            };
            match gateway.drain(id).await {
                Ok(()) => console::print(&format!("{id} is draining\n"), exit::SUCCESS),
                Err(fault) => exit::fail(exit::UNAVAILABLE, &format!("{id}: {fault}")),
            }
        }),
    }
}

/// Runs `main` with a gateway that serves no clients.
fn with_gateway<F: Future<Output = ExitCode>>(
    args: &ClusterArgs,
    main: impl FnOnce(Arc<Gateway>) -> F,
) -> ExitCode {
    runtime::drive(Builder::new_current_thread(), async {
        let settings = args.gateway(endpoints::setup());
        let (settings, nats) = match settings.and_then(|all| Ok((all, args.nats("gateway")?))) {
            Ok(settings) => settings,
            Err(fault) => return exit::fail(exit::USAGE, &fault),
        };
        let started = async { Gateway::start(Nats::connect(&nats).await?, settings).await };
        match started.await {
            Ok(gateway) => main(gateway).await,
            Err(error) => exit::open_failed(&error),
        }
    })
}

/// The public key of a file's key, which is made if there is no such file.
fn key(file: &Path) -> Result<String, String> {
    if file.exists() {
        return read_key(file).map(|signer| signer.public_key());
    }
    let (signer, seed) = Signer::generate()?;
    let written = state::write(file, &format!("{seed}\n"));
    written.map_err(|fault| fault.to_string())?;
    Ok(signer.public_key())
}
