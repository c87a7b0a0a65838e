//! The command line of `install`.

use std::ffi::OsString;
use std::path::{Path, PathBuf, absolute};
use std::process::ExitCode;

use clap::{Args, ValueEnum as _};
use serde_json::json;

use super::editors::{Editor, Entry};
use super::settings::{Change, Removal, Settings, SettingsError};
use crate::cli::config::{AgentPart, Source};
use crate::cli::policy::Files;
use crate::cli::ssh_install::SshInstallArgs;
use crate::cli::target::{self, AgentArgument, Target};
use crate::cli::{console, endpoints, exit, joined, stderr};
use policy::FolderPair;
use transport::Endpoint;
use transport::process::find_program;

/// Examples of `install`.
pub(in crate::cli) const EXAMPLES: &str = "\
Examples:
  acp-relay install zed claude
      Zed offers the well-known agent `claude`, through this relay.
  acp-relay install jetbrains wss://agents.example/agents/goose/acp --name \"goose over there\"
      An agent behind a relay on another machine.
  acp-relay install zed ssh://devbox/goose --map /home/me/app=/srv/app
      An agent on a machine that ssh reaches, which works on the files there.
  acp-relay install zed --join
      The agent of the line that you paste: what `acp-relay token new NAME --link URL` printed there.
  acp-relay install vscode -- goose acp
      An agent on this machine, by its command.
  acp-relay install zed claude --undo
      Remove it again.
  acp-relay install --list
      Which editors have an entry that starts acp-relay.";

/// Arguments of `install`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Install {
    /// The editor
    #[arg(value_enum, required_unless_present = "list")]
    editor: Option<Editor>,
    /// The agent: a name that `connect` accepts, or where it listens
    #[arg(value_name = "NAME|ENDPOINT", conflicts_with = "command")]
    agent: Option<String>,
    /// The name that the editor shows [default: the agent's name, program or host]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Whose files and commands the agent uses [default: its own machine's, if it is elsewhere]
    #[arg(long, value_enum, value_name = "WHOSE", conflicts_with_all = ["undo", "list"])]
    files: Option<Files>,
    /// A folder here and its path on the agent's machine; may be given several times
    #[arg(long, value_name = "LOCAL=REMOTE", conflicts_with_all = ["undo", "list"])]
    map: Vec<FolderPair>,
    #[command(flatten)]
    ssh: SshInstallArgs,
    /// Read a line of `token new NAME --link URL` from stdin, keep its address and token, and add
    /// an entry for that agent; NAME is the name to keep it under
    #[arg(long, conflicts_with_all = ["command", "undo", "list"])]
    join: bool,
    /// Print the entry, and change nothing
    #[arg(long, conflicts_with_all = ["undo", "list"])]
    print: bool,
    /// Remove the entry; the file becomes what it was, unless it was changed since
    #[arg(long, conflicts_with = "list")]
    undo: bool,
    /// List the entries that start acp-relay, of all editors or of one
    #[arg(long, conflicts_with_all = ["agent", "command", "name"])]
    list: bool,
    /// Print one JSON array with `--list`, for a program
    #[arg(long, requires = "list")]
    json: bool,
    /// The agent's command and its arguments
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&str>)]
    command: Vec<OsString>,
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: &Install) -> Result<ExitCode, ExitCode> {
    match args.editor.filter(|_| !args.list) {
        None => Ok(list(args)),
        Some(editor) if args.undo => undo(editor, args),
        Some(editor) => install(editor, args),
    }
}

/// Adds the entry or prints it. Errors are printed, and the exit code is returned.
fn install(editor: Editor, args: &Install) -> Result<ExitCode, ExitCode> {
    let agent = argument(args)?;
    let named = match &agent {
        Some(AgentArgument::Name(_)) => Some(target::find(agent.clone(), Vec::new(), "")?),
        _ => None,
    };
    let entry = entry(editor, args, agent)?;
    let next = editor.next_step(&entry.name);
    let text = match editor.member() {
        None => {
            stderr::print(&next);
            editor.lines(&entry)
        }
        Some(member) if args.print => {
            Settings::alone(editor, member, &entry).map_err(|fault| fail(&fault))?
        }
        Some(member) => {
            let settings = settings(editor, member).map_err(|fault| fail(&fault))?;
            let change = settings.add(&entry).map_err(|fault| fail(&fault))?;
            let (name, path) = (&entry.name, settings.path().display());
            let done = match change {
                Change::Added => format!("Added \"{name}\" to {path}"),
                Change::Changed => format!("Changed \"{name}\" in {path}"),
                Change::None => format!("\"{name}\" is already in {path}"),
            };
            let kept = match settings.kept() {
                Some(kept) => format!("Backup: {}\n", kept.display()),
                None => String::new(),
            };
            format!("{done}\n{kept}{next}")
        }
    };
    let mut code = console::print(&text, exit::SUCCESS);
    let agent = named.as_ref().map(|target| target.endpoint.clone());
    let agent = agent.or_else(|| entry.agent()?.parse().ok());
    if let Some(text) = agent
        .as_ref()
        .and_then(|agent| whose_files(agent, args.files))
    {
        stderr::print(&text);
    }
    if let Some(agent @ Endpoint::Ssh(_)) = &agent
        && console::input_is_terminal()
    {
        match args.ssh.reach(agent, endpoints::setup(), true)? {
            Ok(()) => stderr::print(&format!("{agent} can be reached.")),
            Err(error) => code = exit::open_failed(&error),
        }
    }
    if let Some(target) = &named {
        warn_unless_available(target);
    }
    Ok(code)
}

/// Removes the entry. Errors are printed, and the exit code is returned.
fn undo(editor: Editor, args: &Install) -> Result<ExitCode, ExitCode> {
    let usage = |fault: &str| exit::fail(exit::USAGE, &fault);
    let Some(member) = editor.member() else {
        return Err(usage(&by_hand(editor)));
    };
    let derived = match (&args.agent, args.command.first()) {
        (Some(agent), _) => match target::read(agent) {
            Ok(AgentArgument::Endpoint(at)) => name_of(&at),
            // Any text can be the name of an entry.
            _ => agent.clone(),
        },
        (None, Some(program)) => name_of(&Endpoint::Exec(vec![program.clone()])),
        (None, None) => String::new(),
    };
    let name = args.name.clone().unwrap_or(derived);
    if name.is_empty() {
        return Err(usage(
            "which one? Name it with --name; `acp-relay install --list` lists them",
        ));
    }
    let settings = settings(editor, member).map_err(|fault| fail(&fault))?;
    let path = settings.path().display();
    let text = match settings.remove(&name).map_err(|fault| fail(&fault))? {
        Removal::Undone => format!("{path} is as it was before \"{name}\" was added"),
        Removal::Removed => format!("Removed \"{name}\" from {path}"),
    };
    Ok(console::print(&text, exit::SUCCESS))
}

/// The settings of each editor, and the entries in them that start an acp-relay.
pub(in crate::cli) fn installed(
    only: Option<Editor>,
) -> impl Iterator<Item = (Editor, Result<(PathBuf, Vec<Entry>), SettingsError>)> {
    let editors = Editor::value_variants().iter().copied();
    let editors = editors.filter(move |editor| only.is_none_or(|one| one == *editor));
    editors.filter_map(|editor| {
        let file = settings(editor, editor.member()?);
        let read = file.and_then(|file| Ok((file.path().to_owned(), file.entries()?)));
        Some((editor, read))
    })
}

/// Prints the entries of all editors, or of one.
fn list(args: &Install) -> ExitCode {
    if let Some(editor) = args.editor.filter(|editor| editor.member().is_none()) {
        return exit::fail(exit::USAGE, &by_hand(editor));
    }
    let mut code = exit::SUCCESS;
    let mut rows = Vec::new();
    for (editor, read) in installed(args.editor) {
        match read {
            Ok((path, entries)) => rows.push((editor.title(), path, entries)),
            Err(fault) => {
                code = code_of(&fault);
                fail(&fault);
            }
        }
    }
    if args.json {
        let rows = rows.iter().map(|(editor, path, entries)| {
            let entries = entries.iter().map(
                |entry| json!({ "name": entry.name, "command": entry.program, "args": entry.args }),
            );
            json!({ "editor": editor, "settings": path, "entries": entries.collect::<Vec<_>>() })
        });
        return console::print_json(&rows.collect(), code);
    }
    let lines = rows.iter().map(|(editor, path, entries)| {
        let names = entries.iter().map(|entry| format!("{:?}", entry.name));
        let names = match entries.as_slice() {
            [] => "none".to_owned(),
            _ => names.collect::<Vec<_>>().join(", "),
        };
        format!("{editor:9}  {names}  ({})\n", path.display())
    });
    console::print(&lines.collect::<String>(), code)
}

/// Why there is nothing to remove or list.
fn by_hand(editor: Editor) -> String {
    let title = editor.title();
    format!("{title} is configured by a program: its lines are added and removed by hand")
}

fn settings(editor: Editor, member: &'static str) -> Result<Settings, SettingsError> {
    let path = editor.path().map_err(SettingsError::NoHome)?;
    Settings::read(editor, &path, member)
}

/// The agent that is named, or that is joined now. Errors are printed, and the exit code is returned.
fn argument(args: &Install) -> Result<Option<AgentArgument>, ExitCode> {
    let agent = args.agent.as_deref().map(target::read).transpose();
    let agent = agent.map_err(|fault| exit::fail(exit::USAGE, &fault))?;
    match (args.join, agent) {
        (false, agent) => Ok(agent),
        (true, None) => joined::receive(None).map(|name| Some(AgentArgument::Name(name))),
        (true, Some(AgentArgument::Name(name))) => {
            joined::receive(Some(&name)).map(|name| Some(AgentArgument::Name(name)))
        }
        (true, Some(AgentArgument::Endpoint(_))) => {
            Err(exit::fail(exit::USAGE, &joined::NEEDS_NAME))
        }
    }
}

/// The entry for an agent. Errors are printed, and the exit code is returned.
fn entry(editor: Editor, args: &Install, agent: Option<AgentArgument>) -> Result<Entry, ExitCode> {
    let usage = |fault: String| exit::fail(exit::USAGE, &fault);
    let (name, words) = match agent {
        Some(AgentArgument::Name(name)) => (name.clone(), vec![name.into()]),
        agent => {
            let at = agent.and_then(|agent| match agent {
                AgentArgument::Endpoint(at) => Some(at),
                AgentArgument::Name(_) => None,
            });
            let word = editor.to_possible_value();
            let word = word.as_ref().map_or("", |word| word.get_name());
            let usual = format!("install {word} ENDPOINT");
            let at = endpoints::agent(at, args.command.clone(), &usual).map_err(usage)?;
            (name_of(&at), words_of(at, args.agent.as_deref())?)
        }
    };
    let words = words.into_iter().map(|word: OsString| word.into_string());
    let args_of = words.collect::<Result<Vec<_>, _>>().map_err(|word| {
        usage(format!(
            "{word:?} is not UTF-8, as the settings of an editor are"
        ))
    })?;
    let entry = Entry {
        name: args.name.clone().unwrap_or(name),
        program: own_path().map_err(usage)?,
        args: [vec!["connect".to_owned()], options(args), args_of].concat(),
    };
    let is_odd = |c: char| c.is_control() && !"\n\r\t".contains(c);
    if entry.name.is_empty() || entry.name.contains(char::is_control) {
        return Err(usage("--name has to be a text of one line".to_owned()));
    }
    match entry.args.iter().find(|arg| arg.contains(is_odd)) {
        Some(arg) => Err(usage(format!("{arg:?} has a control character"))),
        None => Ok(entry),
    }
}

/// The options of `connect` in the entry.
fn options(args: &Install) -> Vec<String> {
    let files = args.files.and_then(|files| files.to_possible_value());
    let files = files.map(|files| ["--files".to_owned(), files.get_name().to_owned()]);
    let map = args.map.iter();
    let map = map.map(|pair| ["--map".to_owned(), pair.to_string()]);
    map.chain(files).flatten().collect()
}

/// Which machine's files an agent uses, where that is not plain: at a loopback address, only its
/// relay knows which machine it is on.
fn whose_files(agent: &Endpoint, files: Option<Files>) -> Option<String> {
    if !agent.is_socket() || agent.is_loopback() && files.is_none() {
        return None;
    }
    Some(match files {
        Some(Files::Editor) => {
            "The agent uses the files of this machine, through the editor.".into()
        }
        _ => format!(
            "The agent uses the files and commands of its own machine ({agent}). The folder that is \
             open in the editor has to exist there: --map HERE=THERE if it has another path. With \
             --files editor the agent uses the files of this machine."
        ),
    })
}

/// The editor starts the agent later, and may have another PATH.
fn warn_unless_available(agent: &Target) {
    let mut setup = endpoints::setup();
    if let Some(Source::Program(program)) = agent.part.as_ref().map(AgentPart::source) {
        setup.launch = program.launch;
    }
    let install = agent.install.as_deref();
    if let Err(error) = endpoints::check_agent_available(&agent.endpoint, &setup, install) {
        stderr::print(&format!("acp-relay: warning: {error}"));
    }
}

/// What the editor calls an agent without a name of its own.
fn name_of(agent: &Endpoint) -> String {
    match agent {
        Endpoint::Exec(argv) => {
            let program = argv.first().map(Path::new).and_then(Path::file_name);
            program.unwrap_or_default().to_string_lossy().into_owned()
        }
        Endpoint::Http(at) => {
            let path = at.path.strip_prefix("/agents/");
            match path.and_then(|path| path.strip_suffix("/acp")) {
                Some(name) => format!("{name} at {}", at.authority()),
                None => at.authority(),
            }
        }
        other => other.to_string(),
    }
}

/// The arguments that name the agent to `connect`; `given` is what names it here. The editor
/// starts it in a folder of its own choice and often with a short PATH, so paths are absolute.
fn words_of(agent: Endpoint, given: Option<&str>) -> Result<Vec<OsString>, ExitCode> {
    let system = |fault| exit::fail(exit::SYSTEM, &format!("no current directory: {fault}"));
    if let Endpoint::Exec(mut argv) = agent {
        let program = find_program(&argv, &Default::default());
        let program = program.map_err(|error| exit::open_failed(&error))?;
        argv[0] = absolute(program).map_err(system)?.into();
        argv.insert(0, "--".into());
        return Ok(argv);
    }
    let folder = std::env::current_dir().map_err(system)?;
    let there = agent.clone().relative_to(&folder);
    let given = given.filter(|_| there == agent);
    Ok(vec![
        given
            .map_or_else(|| there.to_string(), str::to_owned)
            .into(),
    ])
}

/// The absolute path of this program: where PATH has it, if that is it, because the target of a
/// link there may change with the version.
fn own_path() -> Result<String, String> {
    let own =
        std::env::current_exe().map_err(|fault| format!("no path of this program: {fault}"))?;
    let found = find_program(&["acp-relay".into()], &Default::default()).ok();
    let is_own = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path == own);
    let path = found
        .filter(|path| path.is_absolute() && is_own(path))
        .unwrap_or(own);
    let text = path
        .to_str()
        .ok_or("the path of this program is not UTF-8, as JSON requires")?;
    Ok(text.to_owned())
}

fn fail(fault: &SettingsError) -> ExitCode {
    exit::fail(code_of(fault), fault)
}

const fn code_of(fault: &SettingsError) -> u8 {
    match fault {
        SettingsError::NoHome(_) | SettingsError::Unreadable(..) => exit::NO_INPUT,
        SettingsError::Unwritable(..) => exit::CANNOT_CREATE,
        SettingsError::Unclear(..) => exit::DATA,
        SettingsError::Taken(..) | SettingsError::Edited(..) | SettingsError::Absent(..) => {
            exit::USAGE
        }
    }
}
