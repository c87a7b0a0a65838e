//! The command line of `acp-relay dialect new`, and the file that it writes.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::deviations;
use super::draft::Draft;
use crate::cli::console::{self, counted};
use crate::cli::{exit, recordings};
use crate::dialect::Library;
use crate::jsonrpc::printable;

/// Longest name of a table, in bytes.
const MAX_NAME: usize = 64;

/// The arguments of `new`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --from, each kind of message of the agent that deviates from ACP and that no known rule
repairs gets a rule in short form, with an example cut from the recording. What it means is guessed
by names, members and values; permissions never are. What cannot be guessed is a comment with `…`.

Exit codes: 0 written; 64 usage; 65 a table has faults, or the recording has nothing to repair; 66 a
file cannot be read; 73 the file exists, or cannot be written.")]
pub(in crate::cli::dialect) struct New {
    /// The dialect's name: small letters, digits and `-`; by default the agent's name in the recording
    #[arg(required_unless_present = "from", value_parser = table_name)]
    name: Option<String>,
    /// A recording, by path or name, or a capture, of a conversation with the agent
    #[arg(long, value_name = "RECORDING")]
    from: Option<PathBuf>,
    /// The `name` in the agent's `agentInfo`, if the recording does not have it
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The file to write, `-` for stdout; by default the dialect's name with `.toml`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

pub(in crate::cli::dialect) fn run(args: &New, library: Library) -> ExitCode {
    let library = Arc::new(library);
    let recording = match args.from.as_deref().map(recordings::locate).transpose() {
        Ok(recording) => recording,
        Err(code) => return code,
    };
    let read = |path| (path, deviations::read(path, &library));
    let from = match recording.as_deref().map(read) {
        None => None,
        Some((path, Ok(found))) => Some((path, found)),
        Some((path, Err(error))) => {
            let what = format!("{}: {}", path.display(), console::explain(&error));
            return exit::fail(exit::NO_INPUT, &what);
        }
    };
    if let Some((path, _)) = from.as_ref().filter(|(_, found)| found.groups.is_empty()) {
        let what = "the agent's messages have no deviation that a table could repair";
        return exit::fail(exit::DATA, &format!("{}: {what}", path.display()));
    }
    let recorded = from.as_ref().and_then(|(_, found)| found.agent.clone());
    let agent = args
        .agent
        .clone()
        .or_else(|| recorded.as_ref().map(|(name, _)| name.clone()));
    let made = || agent.as_deref().map(slug).filter(|name| !name.is_empty());
    let Some(name) = args.name.clone().or_else(made) else {
        let what = "the agent states no name in the recording; add one: acp-relay dialect new NAME --from …";
        return exit::fail(exit::USAGE, &what);
    };
    if library.source(&name).is_ok() || ["canonical", "auto", "v2"].contains(&&*name) {
        let what = format!("there is a dialect `{name}` already; choose another name");
        return exit::fail(exit::USAGE, &what);
    }
    let path = args
        .out
        .clone()
        .unwrap_or_else(|| format!("{name}.toml").into());
    let is_stdout = path == Path::new("-");
    if !is_stdout && path.extension().is_none_or(|ending| ending != "toml") {
        let what = format!(
            "{}: the name of a table in TOML ends with .toml",
            path.display()
        );
        return exit::fail(exit::USAGE, &what);
    }
    let file = if is_stdout {
        format!("{name}.toml")
    } else {
        path.display().to_string()
    };
    let title = match recorded.filter(|_| args.agent.is_none()) {
        Some((agent, version)) => format!("{agent} {version}").trim().to_owned(),
        None => agent.clone().unwrap_or_else(|| name.clone()),
    };
    let recording = recording.as_ref().and_then(|path| path.file_name());
    let recording = recording.unwrap_or_default().to_string_lossy();
    let mut draft = Draft {
        name: &name,
        file: &file,
        agent: agent.as_deref(),
        title,
        from: from.map(|(_, found)| (&*recording, found)),
    };
    let drafted = match draft.write(&library) {
        Ok(drafted) => drafted,
        Err(faults) => {
            let what =
                format!("this recording cannot be drafted, so nothing was written\n{faults}");
            return exit::fail(exit::DATA, &what);
        }
    };
    if is_stdout {
        return console::print(&drafted.text, 0);
    }
    if let Err(error) = write(&path, &drafted.text, args.force) {
        let remedy = match error.kind() {
            io::ErrorKind::AlreadyExists => "; replace it with --force, or name another with --out",
            _ => "",
        };
        let what = format!("{}: {}{remedy}", path.display(), console::explain(&error));
        return exit::fail(exit::CANNOT_CREATE, &what);
    }
    let (rules, open) = (
        counted(drafted.rules, "rule"),
        counted(drafted.open, "open question"),
    );
    let shown = printable(file.as_bytes());
    let text = format!("{shown}: {rules}, {open}\nnext: acp-relay dialect check {shown}\n");
    console::print(&text, 0)
}

/// Writes the file, which must not exist unless `force` is set. What is in a recording is private, and so
/// is what is cut from it.
fn write(path: &Path, text: &str, force: bool) -> io::Result<()> {
    let mut open = OpenOptions::new();
    open.write(true);
    match force {
        true => open.create(true).truncate(true),
        false => open.create_new(true),
    };
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut open, 0o600);
    open.open(path)?.write_all(text.as_bytes())
}

/// A name for a table, which is also that of a file.
fn table_name(text: &str) -> Result<String, String> {
    match text == slug(text) && !text.is_empty() {
        true => Ok(text.to_owned()),
        false => Err("a name has small letters, digits and single `-`, 64 at most".to_owned()),
    }
}

/// The name of an agent as that of a table.
fn slug(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let words = lower.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut slug = words.join("-");
    slug.truncate(MAX_NAME);
    slug.trim_end_matches('-').to_owned()
}
