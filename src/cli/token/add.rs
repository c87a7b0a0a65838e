//! `acp-relay token new`: a token for somebody, printed or written once.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::command::read_name;
use super::{Store, store, time};
use crate::auth::{Agents, Grant, Key, KeyId, read_agents};
use crate::cli::console::Output;
use crate::cli::state::Fault;
use crate::cli::{cli, exit};

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
    /// Write it to this new file, which only you can read, instead of printing it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
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
    let mut kept = args.out.as_deref().map(create).transpose()?;
    let added = store.change(|ring| ring.add(key));
    if let (Some((path, _)), Err(_) | Ok(Err(_))) = (&kept, &added) {
        // There is no such token.
        let _ = fs::remove_file(*path);
    }
    if let Err(fault) = added? {
        return Ok(cli::fail(exit::USAGE, &fault));
    }
    let (shown, code) = match &mut kept {
        Some((path, file)) => write(path, file, token.reveal()),
        None => print(token.reveal()),
    };
    if !shown {
        // Nobody has seen it, and its name would be taken.
        let _ = store.change(|ring| Ok(ring.remove(&args.name)))?;
    }
    Ok(code)
}

/// Makes a file that nobody else can read.
fn create(path: &Path) -> Result<(&Path, File), Fault> {
    let mut open = File::options();
    open.write(true).create_new(true).mode(0o600);
    let file = open.open(path).map_err(|fault| unwritable(path, &fault))?;
    Ok((path, file))
}

/// Whether it was written, and how the program ends.
fn write(path: &Path, file: &mut File, token: &str) -> (bool, ExitCode) {
    match writeln!(file, "{token}") {
        Ok(()) => (true, ExitCode::from(exit::SUCCESS)),
        Err(fault) => {
            let _ = fs::remove_file(path);
            (
                false,
                cli::fail(exit::CANNOT_CREATE, &unwritable(path, &fault)),
            )
        }
    }
}

/// The same of stdout. A reader that has gone has not seen it.
fn print(token: &str) -> (bool, ExitCode) {
    let mut output = Output::new();
    output.line(token.as_bytes());
    output.flush();
    (output.is_open(), output.done(exit::SUCCESS))
}

fn unwritable(path: &Path, fault: &io::Error) -> Fault {
    let why = match fault.kind() {
        io::ErrorKind::AlreadyExists => "there is such a file, and it is left as it is".to_owned(),
        _ => fault.to_string(),
    };
    Fault::Unavailable(format!("{} cannot be written ({why})", path.display()))
}
