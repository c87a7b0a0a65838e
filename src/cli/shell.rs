//! Shell completions and manual pages, both generated from the definition of the command line.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use super::{agents, console, dialect_options, exit, manual};

/// Examples of `completions`.
pub(super) const COMPLETIONS: &str = "\
Examples:
  acp-relay completions bash > ~/.local/share/bash-completion/completions/acp-relay
  acp-relay completions zsh > ~/.zfunc/_acp-relay
      With ~/.zfunc in $fpath before compinit.
  acp-relay completions fish > ~/.config/fish/completions/acp-relay.fish";

/// Examples of `man`.
pub(super) const MAN: &str = "\
Examples:
  acp-relay man | man -l -
  acp-relay man inspect show | man -l -
  acp-relay man --dir ~/.local/share/man/man1
      A page for each subcommand; `man acp-relay-serve` finds them.";

/// Offers recordings and folders after `inspect`, besides what clap's script for bash offers.
const BASH_RECORDINGS: &str = r#"
_acp_relay_recordings() {
    _acp__relay "$@"
    if [[ ${COMP_WORDS[1]} == inspect && $COMP_CWORD -gt 2 && $2 != -* ]] &&
        [[ $3 != -* || ${#COMPREPLY[@]} -eq 0 ]]; then
        local IFS=$'\n'
        COMPREPLY+=($(compgen -d -- "$2"; compgen -f -X '!*.acpr' -- "$2"
            compgen -f -X '!*.acpr.zst' -- "$2"))
        compopt -o filenames 2>/dev/null
    fi
}
"#;

/// The same for zsh: the action of an argument.
const ZSH_RECORDINGS: &str = r#":_files -g "*.acpr(|.zst)"' \"#;

/// Non-ASCII characters in our texts, and their replacement in roff.
const PLAIN: [(char, &str); 4] = [('…', "..."), ('→', "\\(->"), ('←', "\\(<-"), ('⇄', "<->")];

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(super) struct Manual {
    /// The subcommand whose page is printed, such as `serve` or `inspect show`
    #[arg(value_name = "SUBCOMMAND", conflicts_with = "dir")]
    of: Vec<String>,
    /// Write a page for each subcommand into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Offers the names of dialects and well-known agents where one is expected, instead of files.
fn with_names(command: Command) -> Command {
    let offer = |arg: Arg| {
        let is = |name: &str| arg.get_value_names().is_some_and(|all| all[0] == name);
        let names: Vec<&str> = match () {
            () if is("DIALECT") => dialect_options::names().collect(),
            () if ["PROFILE", "AGENT", "NAME|ENDPOINT"]
                .iter()
                .any(|name| is(name)) =>
            {
                agents::profile_names().collect()
            }
            () => return arg,
        };
        arg.value_parser(PossibleValuesParser::new(names))
    };
    command.mut_args(offer).mut_subcommands(with_names)
}

/// Prints the script that completes `command`.
pub(super) fn completions(args: &Completions, command: Command) -> ExitCode {
    let mut script = Vec::new();
    let mut command = with_names(manual::with_topics(command));
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    let script = String::from_utf8_lossy(&script);
    // clap_complete 4.6 takes the hyphen in our name for a separator of subcommands where it lists
    // their arguments, so that bash would not find those.
    let script = script.replace("acp__subcmd__relay", "acp__relay");
    let script = match args.shell {
        Shell::Bash => {
            script.replace(
                "complete -F _acp__relay ",
                "complete -F _acp_relay_recordings ",
            ) + BASH_RECORDINGS
        }
        Shell::Zsh => script.lines().map(with_recordings).collect(),
        _ => script,
    };
    console::print(&script, exit::SUCCESS)
}

/// A line of the script for zsh, whose argument takes recordings only if its help says so.
fn with_recordings(line: &str) -> String {
    let is_recording = [
        "The recording",
        "Recordings",
        "A recording",
        "Folders, or recordings",
    ]
    .iter()
    .any(|begin| line.contains(&format!(" -- {begin}")));
    let action = [":_files' \\", ":_default' \\"].into_iter();
    let mut rest = action.filter_map(|action| line.strip_suffix(action));
    match rest.next() {
        Some(rest) if is_recording && !line.contains("capture") => {
            format!("{rest}{ZSH_RECORDINGS}\n")
        }
        _ => format!("{line}\n"),
    }
}

/// Prints the manual page of `command`, or writes it and those of its subcommands.
pub(super) fn manual(args: &Manual, command: Command) -> Result<ExitCode, ExitCode> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    if let Some(dir) = &args.dir {
        let written = fs::create_dir_all(dir).and_then(|()| write_pages(&command, dir));
        let failed = |error| {
            let what = format!("cannot write the manual to {}: {error}", dir.display());
            exit::fail(exit::CANNOT_CREATE, &what)
        };
        return written.map(|()| ExitCode::SUCCESS).map_err(failed);
    }
    let found = manual::find(&args.of, &mut command);
    let found = found.map_err(|fault| exit::fail(exit::USAGE, &fault))?;
    let text = page(&Man::new(found.clone()));
    let text = text.map_err(|error| exit::fail(exit::SYSTEM, &error))?;
    Ok(console::print(&text, exit::SUCCESS))
}

fn write_pages(command: &Command, dir: &Path) -> io::Result<()> {
    for subcommand in command.get_subcommands() {
        write_pages(subcommand, dir)?;
    }
    let man = Man::new(command.clone());
    fs::write(dir.join(man.get_filename()), page(&man)?)
}

/// A manual page in roff. The text after the options is laid out already and stays unfilled.
/// Non-ASCII characters are written as roff escapes, because not every manual reader supports
/// UTF-8.
fn page(man: &Man) -> io::Result<String> {
    let mut roff = Vec::new();
    man.render(&mut roff)?;
    let roff = String::from_utf8_lossy(&roff)
        .replace(".SH EXTRA\n", ".SH NOTES\n.nf\n")
        .replace(".SH VERSION\n", ".fi\n.SH VERSION\n");
    // A reader in ASCII shows nothing for a numeric escape.
    let roff = PLAIN
        .iter()
        .fold(roff, |roff, (letter, text)| roff.replace(*letter, text));
    let plain = roff.chars().map(|letter| match letter.is_ascii() {
        true => letter.to_string(),
        false => format!("\\[u{:04X}]", u32::from(letter)),
    });
    Ok(plain.collect())
}
