//! The command line of `acp-relay token`, with its subcommands.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use clap::{Args, Subcommand};
use serde_json::json;

use super::Store;
use super::store::new_token;
use crate::cli::console::Output;
use crate::cli::joined::Invitation;
use crate::cli::local_time::local_time;
use crate::cli::state::StateError;
use crate::cli::{console, exit};
use auth::{Agents, Grant, Key, check_name, read_agents};
use jsonrpc::parse_duration;
use transport::{Pin, current_time};

/// For `--help`.
pub(in crate::cli) const EXAMPLES: &str = "\
Examples:
  acp-relay token show
      Your own token, for a program on this machine that cannot find it automatically.
  acp-relay token new alice --expires 30d --agents goose,gemini
      A token for another person, printed once and valid at once. Only its SHA-256 is kept.
  acp-relay token new alice --link wss://agents.example/agents/goose/acp
      One line for alice, who pastes it into `acp-relay connect --join`.
  acp-relay token revoke alice
      A running relay notices within a second, and closes alice's connections within a minute.";

/// Shortest and longest validity of a token.
const MINUTE: Duration = Duration::from_secs(60);
const CENTURY: Duration = Duration::from_secs(100 * 366 * 86_400);

/// Arguments of `token`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct TokenArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print your own token, which is created if there is none yet
    Show,
    /// Create a token for a person or program, and print it, or write it to a file, once
    New(New),
    /// List the tokens you have created
    List {
        /// Print an array for a program instead: name, id, expires (seconds since 1970), expired,
        /// agents (null for all), admin
        #[arg(long)]
        json: bool,
    },
    /// Make a token invalid
    Revoke {
        /// Its name
        #[arg(value_parser = read_name)]
        name: String,
    },
}

#[derive(Debug, Args)]
struct New {
    /// The name of its bearer, for logs and recordings
    #[arg(value_parser = read_name)]
    name: String,
    /// How long it is valid: 30d, 12h, 90m; without limit if omitted
    #[arg(long, value_name = "TIME", value_parser = read_validity)]
    expires: Option<Duration>,
    /// The agents it is valid for, by name, separated by commas; all if omitted
    #[arg(long, value_name = "NAMES", value_parser = read_agents)]
    agents: Option<Agents>,
    /// Its bearer may also see and change what belongs to others
    #[arg(long)]
    admin: bool,
    /// Print one line with the token and the address at which its bearer reaches the agent, for
    /// `connect --join` and `install --join`
    #[arg(long, value_name = "URL")]
    link: Option<String>,
    /// The hash of the certificate at that address, if no public authority has signed it; that of
    /// a file: `openssl x509 -in FILE -noout -fingerprint -sha256`
    #[arg(long, value_name = "HASH", requires = "link")]
    pin_sha256: Option<Pin>,
    /// Write it to this new file, which only you can read, instead of printing it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: &TokenArgs) -> ExitCode {
    let done = Store::find(None).and_then(|store| match &args.command {
        Command::Show => {
            let token = store.own_or_new()?;
            Ok(console::print(token.reveal(), exit::SUCCESS))
        }
        Command::New(args) => create(args, &store),
        Command::List { json } => list(*json, &store),
        Command::Revoke { name } => revoke(name, &store),
    });
    done.unwrap_or_else(|fault| fault.fail())
}

fn create(args: &New, store: &Store) -> Result<ExitCode, StateError> {
    let token = new_token()?;
    let link = args.link.as_deref();
    let invitation = link.map(|url| Invitation::new(url, &token, args.pin_sha256));
    let text = match invitation.transpose() {
        Ok(None) => token.reveal().to_owned(),
        Ok(Some(invitation)) => invitation.line(),
        Err(fault) => return Ok(exit::fail(exit::USAGE, &format!("--link {fault}"))),
    };
    let key = Key {
        expires: args
            .expires
            .map(|good| current_time().unix + good.as_secs()),
        grant: Grant {
            agents: args.agents.clone().unwrap_or(Agents::All),
            admin: args.admin,
        },
        ..Key::of(&token, &args.name)
    };
    if let Err(fault) = store.change(|ring| ring.add(key))? {
        return Ok(exit::fail(exit::USAGE, &fault));
    }
    let (shown, code) = match &args.out {
        Some(path) => match write_new(path, &text) {
            Ok(()) => (true, ExitCode::SUCCESS),
            Err(fault) => (false, exit::fail(exit::CANNOT_CREATE, &fault)),
        },
        None => {
            // A reader that has closed stdout has not seen the token.
            let mut output = Output::new();
            output.line(text.as_bytes());
            output.flush();
            (output.is_open(), output.done(exit::SUCCESS))
        }
    };
    if !shown {
        // Its name is free again.
        let _ = store.change(|ring| Ok(ring.remove(&args.name)))?;
    }
    Ok(code)
}

/// Writes a text to a new file that other users cannot read.
fn write_new(path: &Path, text: &str) -> Result<(), String> {
    let failed = |fault| {
        let why = console::explain(&fault);
        format!("{} cannot be written ({why})", path.display())
    };
    let mut open = File::options();
    let open = open.write(true).create_new(true).mode(0o600);
    let mut file = open.open(path).map_err(failed)?;
    writeln!(file, "{text}").map_err(|fault| {
        let _ = fs::remove_file(path);
        failed(fault)
    })
}

fn list(json: bool, store: &Store) -> Result<ExitCode, StateError> {
    let (ring, now) = (store.keyring()?, current_time().unix);
    if json {
        let all = ring.keys().map(|key| {
            let agents = match &key.grant.agents {
                Agents::All => None,
                Agents::These(names) => Some(names.to_vec()),
            };
            json!({
                "name": key.name,
                "id": key.id,
                "expires": key.expires,
                "expired": key.has_expired(now),
                "agents": agents,
                "admin": key.grant.admin,
            })
        });
        return Ok(console::print_json(&all.collect(), exit::SUCCESS));
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
            Some(at) => {
                let word = if key.has_expired(now) {
                    "expired"
                } else {
                    "until"
                };
                let at = match console::size() {
                    Some(_) => local_time(at),
                    None => httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(at)),
                };
                format!("{word} {at}")
            }
        };
        text.push_str(&format!(
            "{}  {}  {agents}{admin}, {expires}\n",
            key.id, key.name
        ));
    }
    if text.is_empty() {
        console::note("there are no tokens; `acp-relay token new NAME` creates one");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(console::print(&text, exit::SUCCESS))
}

fn revoke(name: &str, store: &Store) -> Result<ExitCode, StateError> {
    let none = || format!("there is no token called {name:?}; `acp-relay token list` lists them");
    let removed = store.change(|ring| ring.remove(name).ok_or_else(none))?;
    Ok(match removed {
        Ok(_) => ExitCode::SUCCESS,
        Err(fault) => exit::fail(exit::USAGE, &fault),
    })
}

/// Parses the name of a token.
fn read_name(text: &str) -> Result<String, &'static str> {
    check_name(text).map(|()| text.to_owned())
}

/// Parses `30d`, `12h`, `90m`.
fn read_validity(text: &str) -> Result<Duration, &'static str> {
    match parse_duration(text) {
        Err(_) => Err("expected a number of days, hours or minutes: 30d, 12h, 90m"),
        Ok(valid) if (MINUTE..=CENTURY).contains(&valid) => Ok(valid),
        Ok(_) => Err("a token is valid for at least a minute, and at most a hundred years"),
    }
}
