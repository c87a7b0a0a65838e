//! `acp-relay token new`: creates a token, and prints it or writes it to a file, once.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::store::read_name;
use super::{Store, store, time};
use crate::auth::{Agents, Grant, Key, KeyId, read_agents};
use crate::cli::console::Output;
use crate::cli::exit;
use crate::cli::state::StateError;

/// Arguments of `new`.
#[derive(Debug, Args)]
pub(super) struct New {
    /// The name of its bearer, for logs and recordings
    #[arg(value_parser = read_name)]
    name: String,
    /// How long it is valid: 30d, 12h, 90m; without limit if omitted
    #[arg(long, value_name = "TIME", value_parser = time::read)]
    expires: Option<Duration>,
    /// The agents it is valid for, by name, separated by commas; all if omitted
    #[arg(long, value_name = "NAMES", value_parser = read_agents)]
    agents: Option<Agents>,
    /// Its bearer may also see and change what belongs to others
    #[arg(long)]
    admin: bool,
    /// Write it to this new file, which only you can read, instead of printing it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &New, store: &Store) -> Result<ExitCode, StateError> {
    let token = store::new_token()?;
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
    let mut output = args.out.as_deref().map(create).transpose()?;
    let added = store.change(|ring| ring.add(key));
    if let (Some((path, _)), Err(_) | Ok(Err(_))) = (&output, &added) {
        // The token was not stored.
        let _ = fs::remove_file(*path);
    }
    if let Err(fault) = added? {
        return Ok(exit::fail(exit::USAGE, &fault));
    }
    let (shown, code) = match &mut output {
        Some((path, file)) => write(path, file, token.reveal()),
        None => print(token.reveal()),
    };
    if !shown {
        // The token was not seen, so it is removed to free its name.
        let _ = store.change(|ring| Ok(ring.remove(&args.name)))?;
    }
    Ok(code)
}

/// Creates a file that other users cannot read.
fn create(path: &Path) -> Result<(&Path, File), StateError> {
    let mut open = File::options();
    open.write(true).create_new(true).mode(0o600);
    let file = open.open(path).map_err(|fault| unwritable(path, &fault))?;
    Ok((path, file))
}

/// Writes the token to the file: whether that worked, and the exit code.
fn write(path: &Path, file: &mut File, token: &str) -> (bool, ExitCode) {
    match writeln!(file, "{token}") {
        Ok(()) => (true, ExitCode::from(exit::SUCCESS)),
        Err(fault) => {
            let _ = fs::remove_file(path);
            (
                false,
                exit::fail(exit::CANNOT_CREATE, &unwritable(path, &fault)),
            )
        }
    }
}

/// The same for stdout. A reader that has closed it has not seen the token.
fn print(token: &str) -> (bool, ExitCode) {
    let mut output = Output::new();
    output.line(token.as_bytes());
    output.flush();
    (output.is_open(), output.done(exit::SUCCESS))
}

fn unwritable(path: &Path, fault: &io::Error) -> StateError {
    let why = match fault.kind() {
        io::ErrorKind::AlreadyExists => "it exists already, and is left unchanged".to_owned(),
        _ => fault.to_string(),
    };
    StateError::Unavailable(format!("{} cannot be written ({why})", path.display()))
}
