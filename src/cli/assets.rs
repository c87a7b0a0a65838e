//! `acp-relay assets`: the files for service managers and monitoring that the program contains.
//! `command_line` prints them.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::config;
use jsonrpc::did_you_mean;

/// Examples of `assets`.
pub(super) const EXAMPLES: &str = "\
Examples:
  acp-relay assets list
  acp-relay assets print systemd/acp-relay.service > acp-relay.service
  acp-relay assets print prometheus/alerts.yaml";

/// Arguments of `assets`.
#[derive(Debug, Args)]
pub(super) struct AssetsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the files
    List {
        /// Print one JSON array, for a program
        #[arg(long)]
        json: bool,
    },
    /// Print a file
    Print {
        /// Its name, as listed
        name: String,
    },
}

/// A file.
struct Asset {
    name: &'static str,
    about: &'static str,
    text: fn() -> String,
}

macro_rules! assets {
    ($($name:literal $about:literal)*) => {
        const ASSETS: &[Asset] = &[
            Asset {
                name: "acp-relay.toml",
                about: "configuration file with every option",
                text: config::example,
            },
            $(Asset {
                name: $name,
                about: $about,
                text: || include_str!(concat!("../assets/", $name)).to_owned(),
            },)*
        ];
    };
}

assets! {
    "grafana/dashboard.json" "Grafana dashboard"
    "nats/cluster.conf" "accounts and permissions of NATS servers, for hosts and gateways"
    "prometheus/alerts.yaml" "Prometheus alert rules"
    "systemd/acp-relay.service" "systemd unit of the relay"
    "systemd/acp-relay.socket" "systemd unit of its sockets"
}

/// The output of the subcommand.
///
/// # Errors
/// There is no file of the name.
pub(super) fn run(args: &AssetsArgs) -> Result<String, String> {
    match &args.command {
        Command::List { json: true } => {
            let all = ASSETS.iter();
            let all = all.map(|asset| json!({ "name": asset.name, "about": asset.about }));
            Ok(format!("{:#}", Value::Array(all.collect())))
        }
        Command::List { json: false } => {
            let width = ASSETS.iter().map(|asset| asset.name.len()).max();
            let width = width.unwrap_or(0);
            let lines = ASSETS.iter();
            let lines = lines.map(|asset| format!("{:width$}  {}\n", asset.name, asset.about));
            Ok(lines.collect())
        }
        Command::Print { name } => {
            let asset = ASSETS.iter().find(|asset| asset.name == name);
            asset.map(|asset| (asset.text)()).ok_or_else(|| {
                let known = ASSETS.iter().map(|asset| asset.name);
                let remedy = did_you_mean(name, known, "`acp-relay assets list` lists them");
                format!("there is no file `{name}`; {remedy}")
            })
        }
    }
}
