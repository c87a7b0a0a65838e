//! `acp-relay assets`: the files for service managers and monitoring that the program contains.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::config::nearest;
use super::{command_line, console, exit};

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
    text: &'static str,
}

macro_rules! assets {
    ($($name:literal $about:literal)*) => {
        const ASSETS: &[Asset] = &[$(Asset {
            name: $name,
            about: $about,
            text: include_str!(concat!("../assets/", $name)),
        },)*];
    };
}

assets! {
    "acp-relay.toml" "configuration file with every option"
    "grafana/dashboard.json" "Grafana dashboard"
    "prometheus/alerts.yaml" "Prometheus alert rules"
    "systemd/acp-relay.service" "systemd unit of the relay"
    "systemd/acp-relay.socket" "systemd unit of its sockets"
}

/// Runs the subcommand.
pub(super) fn run(args: &AssetsArgs) -> ExitCode {
    match &args.command {
        Command::List { json: true } => {
            let all = ASSETS.iter();
            let all = all.map(|asset| json!({ "name": asset.name, "about": asset.about }));
            console::print_json(&Value::Array(all.collect()), exit::SUCCESS)
        }
        Command::List { json: false } => {
            let width = ASSETS.iter().map(|asset| asset.name.len()).max();
            let width = width.unwrap_or(0);
            let mut text = String::new();
            for asset in ASSETS {
                text.push_str(&format!("{:width$}  {}\n", asset.name, asset.about));
            }
            console::print(&text, exit::SUCCESS)
        }
        Command::Print { name } => {
            let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
                let remedy = match nearest(name, ASSETS.iter().map(|asset| asset.name)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`acp-relay assets list` lists them".to_owned(),
                };
                let what = format!("there is no file `{name}`; {remedy}");
                return command_line::fail(exit::USAGE, &what);
            };
            console::print(asset.text, exit::SUCCESS)
        }
    }
}
