//! The command line: its arguments, and the dispatch to the subcommands.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::builder::styling::{AnsiColor, Styles};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args as _, CommandFactory, FromArgMatches as _, Parser, Subcommand};

use super::renamed;
use super::telemetry::{self, LogArgs};
use super::{
    agents, assets, check, config, connect, console, demo, dialect, doctor, endpoints, examples,
    exit, features, inspect, install, limits, log_redaction, manual, memory, over_ssh, processes,
    replay, serve, shell, short_help, status, stderr, token, top, try_agent,
};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Examples:
  acp-relay demo
      Run a complete turn between a small agent and a small client, through two relays.
  acp-relay try goose \"What is in this folder?\"
      Talk to an agent at the terminal, without an editor.
  acp-relay install zed ssh://devbox/goose
      Add an agent on a machine that ssh reaches to the settings of an editor.
  acp-relay serve --listen ws://127.0.0.1:9000 -- goose acp
      On the machine with the agent: one agent process for each client that connects.
  acp-relay install zed ws://127.0.0.1:9000
      Adds it to the settings of an editor, whose command is `acp-relay connect ws://127.0.0.1:9000`.
  acp-relay serve --config team.toml
      Several agents by name, several listeners; `acp-relay config example` prints such a file.
  acp-relay check capture.jsonl
      Where a recorded conversation violates the official schema of ACP.
  acp-relay connect replay:talk.acpr
      Use a recording as the agent; `acp-relay replay --help` has more.

Exit codes: 0 success; 1 `check`, `dialect check`, `dialect test`, `translate` or `inspect` found
something wrong, `test`, `replay client` or `bisect` a difference; 64 usage; 65 faulty mapping table or
settings of an editor; 66 unreadable file; 68 unknown host; 69 peer, program or port not available;
70 fault of the relay; 71 system; 73 socket file, settings of an editor or (`--record-strict`)
recording; 75 stopped before the agent was reached, or asked twice to stop; 76 protocol; 77 not
permitted; 78 faulty configuration file.
`connect`, and `serve` on stdio:, return the agent's exit code where they know it (128 + n after
signal n); 76 after an agent that ended with 0 before it answered a request.";

static LONG_VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{}\n{}", env!("VERSION"), ::dialect::TABLES));

/// A bridge for the Agent Client Protocol (ACP): between any editor and any agent, over any
/// transport, byte for byte.
#[derive(Debug, Parser)]
#[command(name = "acp-relay", version = env!("VERSION"), long_version = LONG_VERSION.as_str())]
#[command(styles = STYLES, after_help = format!("{}\n\n{EXAMPLES}", manual::topics()))]
#[command(after_long_help = format!(
    "{}\n\n{}\n\n{}\n\n{EXAMPLES}", manual::topics(), endpoints::help(), limits::help()
))]
#[command(disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    log: LogArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Listen for clients and give each client an agent of its own
    #[command(after_help = examples::serve())]
    Serve(Box<serve::Serve>),
    /// Listen for clients, and have each served by a host with the agent that it asks for
    #[cfg(feature = "cluster")]
    #[command(after_help = super::cluster::GATEWAY_EXAMPLES)]
    Gateway(Box<serve::Serve>),
    /// Speak stdio to the editor that started this program, and forward it to an agent
    #[command(after_help = examples::connect())]
    Connect(Box<connect::Connect>),
    /// Talk to an agent at the terminal: what it can do, a turn, and what the relay did to its
    /// messages
    #[command(after_help = try_agent::EXAMPLES)]
    Try(Box<try_agent::Try>),
    /// Join ssh's streams to this user's relay on this machine, for ssh:// endpoints of others
    #[command(hide = true)]
    OverSsh(over_ssh::OverSsh),
    /// Check a conversation against the official schema of ACP: each violation, with its place
    #[command(after_help = examples::check())]
    Check(check::Check),
    /// Translate messages from one dialect into another
    Translate(dialect::Translate),
    /// List, show, check and test the mapping tables that describe dialects
    #[command(after_help = examples::DIALECT)]
    Dialect(dialect::Dialect),
    /// List, show, count, compare, lint, verify, export and import recordings
    #[command(after_help = examples::INSPECT)]
    Inspect(inspect::Inspect),
    /// Play a recording: as the agent to a client, or as the client to an agent
    #[command(after_help = examples::REPLAY)]
    Replay(replay::Replay),
    /// Replay a folder of recordings as tests of an agent
    #[command(after_help = replay::TEST)]
    Test(replay::Test),
    /// Find the first turn of a recording at which a live agent behaves differently
    #[command(after_help = replay::BISECT)]
    Bisect(replay::Bisect),
    /// Show, create, list and revoke the tokens that clients authenticate with
    Token(token::TokenArgs),
    /// Check, show and explain the configuration file
    #[command(after_help = examples::CONFIG)]
    Config(config::ConfigArgs),
    /// List the well-known agents, or import more of them
    #[command(after_help = examples::AGENTS)]
    Agents(agents::AgentsArgs),
    /// Add an agent to an editor's settings, or remove it again
    #[command(after_help = install::EXAMPLES)]
    Install(install::Install),
    /// Check this machine: tokens, configuration, agents, editors' entries; each fault with its fix
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::Doctor),
    /// Show the state of a running relay: listeners, connections, sessions, turns
    #[command(after_help = examples::WATCH)]
    Status(status::Status),
    /// Report by the exit code whether a relay accepts clients, for health checks
    #[command(after_help = examples::WATCH)]
    Health(status::Health),
    /// Watch a relay: connections, sessions, turns and rates, every second
    #[command(after_help = examples::WATCH)]
    Top(top::Top),
    /// Show the hosts of agents on many machines, drain one, and make the keys of gateways
    #[cfg(feature = "cluster")]
    Cluster(super::cluster::Cluster),
    /// Run a complete turn through two relays, with an embedded agent and client
    #[command(after_help = examples::DEMO)]
    Demo(demo::Demo),
    /// Show this help, the help of a subcommand, or a page of the manual
    #[command(after_help = manual::EXAMPLES)]
    Help(manual::Help),
    /// List and print the files for service managers and monitoring that the program contains
    #[command(after_help = assets::EXAMPLES)]
    Assets(assets::AssetsArgs),
    /// Print the completion script of a shell
    #[command(after_help = shell::COMPLETIONS)]
    Completions(shell::Completions),
    /// Print the manual page, or write one for each subcommand
    #[command(after_help = shell::MAN)]
    Man(shell::Manual),
}

/// The definition of the command line.
#[must_use]
pub fn command() -> clap::Command {
    short_help::shorten(Cli::command())
}

/// Runs the program with the arguments of this process.
#[must_use]
pub fn run() -> ExitCode {
    if let Some(code) = processes::watchdog() {
        return code;
    }
    panics::install(exit::report_panic);
    let _in_use = transport::ssh_version::keep();
    let code = execute().unwrap_or_else(|code| code);
    stderr::flush();
    code
}

/// Ignores variables that are set but empty: container files set all variables and leave the unused
/// ones empty.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    command
        .mut_args(|arg| match arg.get_env().is_some_and(is_empty) {
            true => arg.env(clap::builder::Resettable::Reset),
            false => arg,
        })
        .mut_subcommands(without_empty_variables)
}

/// The options of `connect`, if that is the first argument and the rest is valid. An editor starts it
/// for each conversation, so the options of the other subcommands are not built.
fn connect_options() -> Option<(LogArgs, connect::Connect)> {
    let words = std::env::args_os().skip(1);
    if std::env::args_os().nth(1)? != "connect" {
        return None;
    }
    let command = clap::Command::new("connect");
    let command = connect::Connect::augment_args(LogArgs::augment_args(command));
    let matches = without_empty_variables(command).try_get_matches_from(words);
    let matches = matches.ok()?;
    let log = LogArgs::from_arg_matches(&matches).ok()?;
    Some((log, connect::Connect::from_arg_matches(&matches).ok()?))
}

/// Runs a subcommand. An error was printed, and has the exit code.
fn execute() -> Result<ExitCode, ExitCode> {
    let start =
        |log: &LogArgs| telemetry::start(log).map_err(|error| exit::fail(exit::USAGE, &error));
    if let Some((log, args)) = connect_options() {
        start(&log)?;
        return processes::run_and_reap(|| connect::run(args));
    }
    let mut command = without_empty_variables(command());
    let parsed = command.try_get_matches_from_mut(std::env::args_os());
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = parsed.map_err(|error| report(&with_tip(error)))?;
    let given = match cli.command {
        Command::Serve(args) => return serve("serve", &args, &command, &matches),
        #[cfg(feature = "cluster")]
        Command::Gateway(args) => return serve("gateway", &args, &command, &matches),
        given => given,
    };
    start(&cli.log)?;
    Ok(match given {
        Command::Serve(_) => unreachable!("it is started above"),
        #[cfg(feature = "cluster")]
        Command::Gateway(_) => unreachable!("it is started above"),
        Command::Connect(args) => processes::run_and_reap(|| connect::run(*args))?,
        Command::Try(args) => processes::run_and_reap(|| try_agent::run(*args)),
        Command::OverSsh(args) => over_ssh::run(&args)?,
        Command::Check(args) => check::run(&args)?,
        Command::Translate(args) => dialect::translate(&args)?,
        Command::Dialect(args) => dialect::run(&args)?,
        Command::Inspect(args) => inspect::run(&args)?,
        Command::Replay(args) => replay::run(args)?,
        Command::Test(args) => processes::run_and_reap(|| replay::test(&args))?,
        Command::Bisect(args) => processes::run_and_reap(|| replay::bisect(&args))?,
        Command::Token(args) => token::run(&args),
        Command::Config(args) => config::run(&args, &matches, &command),
        Command::Agents(args) => agents::run(&args)?,
        Command::Install(args) => install::run(&args)?,
        Command::Doctor(args) => doctor::run(&args)?,
        Command::Status(args) => status::status(&args),
        Command::Health(args) => status::health(&args),
        Command::Top(args) => top::run(&args),
        #[cfg(feature = "cluster")]
        Command::Cluster(args) => super::cluster::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Help(args) => help(&args, command),
        Command::Assets(args) => match assets::run(&args) {
            Ok(text) => console::print(&text, exit::SUCCESS),
            Err(fault) => exit::fail(exit::USAGE, &fault),
        },
        Command::Completions(args) => shell::completions(&args, self::command()),
        Command::Man(args) => shell::manual(&args, self::command())?,
    })
}

/// Runs `serve`, under this name.
fn serve(
    name: &str,
    args: &serve::Serve,
    command: &clap::Command,
    matches: &clap::ArgMatches,
) -> Result<ExitCode, ExitCode> {
    memory::limit_retention();
    // Before anything is started that could inherit the sockets.
    let sockets = serve::sockets()?;
    let line = config::CommandLine::of(command, matches, &[name]);
    Ok(processes::run_and_reap(|| serve::run(args, line, sockets)))
}

/// Prints an error of the arguments, or the help or version that was asked for.
fn report(error: &clap::Error) -> ExitCode {
    // The quoted argument may be an address with a password in it.
    let text = error.to_string();
    if let Cow::Owned(clean) = log_redaction::clean(&text) {
        stderr::print(clean.trim_end());
        return ExitCode::from(exit::USAGE);
    }
    let printed = error.print();
    match error.use_stderr() {
        true => ExitCode::from(exit::USAGE),
        false => console::printed(exit::SUCCESS, printed),
    }
}

/// Prints a page of the manual, or the help of the program or of a subcommand.
fn help(args: &manual::Help, mut command: clap::Command) -> ExitCode {
    if let Some(page) = manual::page(args) {
        return console::print(&page, exit::SUCCESS);
    }
    match manual::find(&args.topic, &mut command) {
        Ok(found) => console::printed(exit::SUCCESS, found.print_long_help()),
        Err(fault) => exit::fail(exit::USAGE, &fault),
    }
}

/// Explains an unexpected word: most often it belongs to a command without its `--`, or to another
/// build of this program.
fn with_tip(mut error: clap::Error) -> clap::Error {
    if renamed::explain(&mut error) {
        return error;
    }
    let text = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let word = text(ContextKind::InvalidArg) + &text(ContextKind::InvalidSubcommand);
    let is_of_agent = error.kind() == ErrorKind::UnknownArgument
        && text(ContextKind::Usage).contains("-- <COMMAND>")
        && !word.starts_with('-');
    let usage = is_of_agent.then(|| "the agent's command goes after `--`: -- COMMAND ARGS…".into());
    let Some(hint) = features::missing(&word).or(usage) else {
        return error;
    };
    error.remove(ContextKind::SuggestedArg);
    let hints = ContextValue::StyledStrs(vec![hint.into()]);
    error.insert(ContextKind::Suggested, hints);
    error
}
