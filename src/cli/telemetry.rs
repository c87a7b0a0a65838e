//! The log: its options, and its start.
//!
//! It goes to stderr (see `stderr`), because stdout carries the protocol. Message bodies are never
//! logged.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use tracing::field::{Field, Visit};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::{RecordFields, VisitOutput as _};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultVisitor, Writer};
use tracing_subscriber::fmt::time::FormatTime;

use super::exit;
use super::local_time::local_time;
use super::stderr;
use transport::current_time;

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    /// For people
    #[default]
    Human,
    /// One JSON object per line, for programs
    Json,
}

/// Options of the log.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(super) struct LogArgs {
    /// What is logged on stderr: error, warn, info, debug, trace, or a filter such as `agent=info`
    // After the options of the subcommand.
    #[arg(id = "log.level", long = "log", global = true, display_order = 1000)]
    #[arg(env = "ACP_RELAY_LOG", value_name = "LEVEL", default_value = "warn")]
    pub(super) level: String,
    /// The format of the log: for people, or one JSON object per line
    #[arg(id = "log.format", long = "log-format", global = true)]
    #[arg(display_order = 1001, hide_short_help = true)]
    #[arg(env = "ACP_RELAY_LOG_FORMAT", value_name = "FORM", value_enum)]
    #[arg(default_value_t)]
    format: LogFormat,
}

/// The crates of this program but for its own, whose names begin the targets of their events.
const CRATES: [&str; 18] = [
    "acp",
    "agent_connect",
    "analysis",
    "auth",
    "cluster",
    "conversation",
    "dialect",
    "jsonrpc",
    "link",
    "observe",
    "panics",
    "policy",
    "login",
    "proxy",
    "recording",
    "replay",
    "transport",
    "viewer",
];

/// The time of a line at a terminal.
struct LocalClock;

/// The fields of a line at a terminal: without the names of notes, which are for programs.
struct WithoutNotes;

/// Passes all fields but the names of notes on.
struct NoteFilter<'a>(&'a mut dyn Visit);

/// Checks an `env-filter` directive.
///
/// # Errors
/// Why, and what is expected.
pub(super) fn check(level: &str) -> Result<(), String> {
    filter(level).map(|_| ())
}

/// Starts the log; with colour only on a terminal and without `NO_COLOR`.
///
/// # Errors
/// The level is not an `env-filter` directive.
pub(super) fn start(args: &LogArgs) -> Result<(), String> {
    let form = args.format;
    let filter = filter(&args.level).map_err(|fault| format!("--log {fault}"))?;
    if filter
        .max_level_hint()
        .is_none_or(|most| most > LevelFilter::INFO)
    {
        // A detailed log is not rate-limited.
        stderr::lift_rate_limit();
    }
    let is_terminal = std::io::stderr().is_terminal();
    let has_colour =
        is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| stderr::Log)
        .with_ansi(has_colour && form == LogFormat::Human)
        .with_target(false);
    match form {
        LogFormat::Human if is_terminal => {
            log.with_timer(LocalClock).fmt_fields(WithoutNotes).init();
        }
        LogFormat::Human => log.init(),
        LogFormat::Json => {
            exit::print_json();
            log.json()
                .flatten_event(true)
                .with_current_span(true)
                .with_span_list(false)
                .init();
        }
    }
    Ok(())
}

fn filter(level: &str) -> Result<EnvFilter, String> {
    let builder = EnvFilter::builder().with_default_directive(LevelFilter::WARN.into());
    let fault = |what: &str| format!("{level}: {what}. Use error, warn, info, debug or trace");
    // `EnvFilter` would read an unknown word as the name of a module, and silence all others.
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    let words = level.split(',').map(str::trim);
    let words: Vec<Cow<'_, str>> = words
        .filter(|word| !word.is_empty())
        .flat_map(of_crates)
        .collect();
    if let Some(word) = words
        .iter()
        .find(|word| !word.contains(['=', '[']) && !is_level(word))
    {
        return Err(fault(&format!("{word:?} is not a level")));
    }
    // A directive for one module leaves the warnings of the others enabled.
    let whole = words.iter().any(|word| !word.contains('='));
    let directives = words.join(",");
    let read = match whole {
        true => builder.parse(&directives),
        false => builder.parse(format!("warn,{directives}")),
    };
    read.map_err(|error| fault(&error.to_string()))
}

/// A directive for `acp_relay` or a module of it, as directives for the crates that it consists of.
fn of_crates(word: &str) -> Vec<Cow<'_, str>> {
    match word.strip_prefix("acp_relay") {
        Some(rest) if rest.starts_with(['=', '[']) => {
            let others = CRATES.iter().map(|name| format!("{name}{rest}").into());
            others.chain([word.into()]).collect()
        }
        Some(rest) => {
            let path = rest.strip_prefix("::").unwrap_or_default();
            let is_ours = CRATES.iter().any(|name| path.starts_with(name));
            vec![if is_ours { path } else { word }.into()]
        }
        None => vec![word.into()],
    }
}

impl FormatTime for LocalClock {
    fn format_time(&self, to: &mut Writer<'_>) -> fmt::Result {
        to.write_str(&local_time(current_time().unix))
    }
}

impl<'w> FormatFields<'w> for WithoutNotes {
    fn format_fields<R: RecordFields>(&self, to: Writer<'w>, fields: R) -> fmt::Result {
        let mut visitor = DefaultVisitor::new(to, true);
        fields.record(&mut NoteFilter(&mut visitor));
        visitor.finish()
    }
}

impl Visit for NoteFilter<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() != "note" {
            self.0.record_debug(field, value);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() != "note" {
            self.0.record_str(field, value);
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.0.record_error(field, value);
    }
}
