//! `acp-relay dialect new`: drafts a mapping table, by a recording of the agent.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use crate::cli::console;
use crate::cli::replace_file::replace_file;
use crate::cli::{exit, recordings};
use analysis::text::counted;
use dialect::Library;
use jsonrpc::printable;
use observe::recorder::{create, file_name_part};

/// Longest name of a table, in bytes.
const MAX_NAME: usize = 64;

/// The arguments of `new`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each kind of message of the agent that deviates from ACP and that no known rule repairs gets a rule
in short form, with an example cut from the recording. What it means is guessed by names, members and
values; permissions never are. What cannot be guessed is a comment with `…`.

Exit codes: 0 written; 64 usage; 65 a table has faults, or the recording has nothing to repair; 66 a
file cannot be read; 73 the file exists, or cannot be written.")]
pub(super) struct New {
    /// The dialect's name: small letters, digits and `-`; by default the agent's name in the recording
    #[arg(value_parser = table_name)]
    name: Option<String>,
    /// A recording, by path or name, or a capture, of a conversation with the agent
    #[arg(long, value_name = "RECORDING")]
    from: PathBuf,
    /// The file to write, `-` for stdout; by default the dialect's name with `.toml`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

/// Writes a table. Errors are printed, and the exit code is returned.
pub(super) fn run(args: &New, library: &Arc<Library>) -> Result<ExitCode, ExitCode> {
    let usage = |what: &str| exit::fail(exit::USAGE, &what);
    let from = recordings::locate(&args.from)?;
    let found = analysis::draft::read(&from, library);
    let found = found.map_err(|error| console::unreadable(&from, &error))?;
    if found.is_empty() {
        let what = "the agent's messages have no deviation that a table could repair";
        let what = format!("{}: {what}", from.display());
        return Err(exit::fail(exit::DATA, &what));
    }
    let stated = found.agent.as_ref();
    let made = || stated.map(|(name, _)| file_name_part(name, MAX_NAME));
    let name = args.name.clone().or_else(made).unwrap_or_default();
    if name.is_empty() {
        return Err(usage(
            "the agent states no name in the recording; add one: acp-relay dialect new NAME --from …",
        ));
    }
    if library.source(&name).is_ok() || ["canonical", "auto", "v2"].contains(&&*name) {
        let what = format!("there is a dialect `{name}` already; choose another name");
        return Err(usage(&what));
    }
    let file = PathBuf::from(format!("{name}.toml"));
    let path = args.out.as_ref().unwrap_or(&file);
    let is_stdout = path == Path::new("-");
    if !is_stdout && path.extension().is_none_or(|ending| ending != "toml") {
        let what = "the name of a table in TOML ends with .toml";
        return Err(usage(&format!("{}: {what}", path.display())));
    }
    let file = if is_stdout { &file } else { path };
    let file = file.display().to_string();
    let recording = from.file_name().unwrap_or_default().to_string_lossy();
    let drafted =
        analysis::draft::write(&name, &file, &recording, found, library).map_err(|faults| {
            let what = "this recording cannot be drafted, so nothing was written";
            exit::fail(exit::DATA, &format!("{what}\n{faults}"))
        })?;
    if is_stdout {
        return Ok(console::print(&drafted.text, 0));
    }
    write(path, &drafted.text, args.force).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::AlreadyExists => "; replace it with --force, or name another with --out",
            _ => "",
        };
        let why = console::explain(&error);
        let what = format!("{}: {why}{remedy}", path.display());
        exit::fail(exit::CANNOT_CREATE, &what)
    })?;
    let (rules, open) = (
        counted(drafted.rules, "rule"),
        counted(drafted.open, "open question"),
    );
    let quoted = shell_words::quote(&file);
    let [shown, quoted] = [&*file, &quoted].map(|text| printable(text.as_bytes()));
    let text = format!("{shown}: {rules}, {open}\nnext: acp-relay dialect check {quoted}\n");
    Ok(console::print(&text, 0))
}

/// Writes the file, which must not exist unless `force` is set. What is in a recording is private, and so
/// is what is cut from it.
fn write(path: &Path, text: &str, force: bool) -> io::Result<()> {
    match force {
        true => replace_file(path, text.as_bytes(), None),
        false => create(path)?.write_all(text.as_bytes()),
    }
}

/// A name for a table, which is also that of a file.
fn table_name(text: &str) -> Result<String, String> {
    match text == file_name_part(text, MAX_NAME) && !text.is_empty() {
        true => Ok(text.to_owned()),
        false => Err("a name has small letters, digits and single `-`, 64 at most".to_owned()),
    }
}
