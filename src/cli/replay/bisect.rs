//! `acp-relay bisect`: finds the number of recorded turns after which a live agent behaves
//! differently, or a filter matches its messages.
//!
//! Each attempt starts a new agent and a new conversation.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::options::Play;
use super::report;
use crate::cli::console::{Output, uncreatable};
use crate::cli::exit;
use analysis::Annotations;
use analysis::filter::Filter;
use analysis::lint::Linter;
use analysis::text::counted;
use jsonrpc::printable;
use replay::{PlayOutcome, Script};

/// Shown below `--help`.
pub(in crate::cli) const EXAMPLES: &str = "\
Examples:
  acp-relay bisect talk.acpr -- goose acp
      The first turn at which the agent behaves differently.
  acp-relay bisect talk.acpr --save small.jsonl --cwd . -- goose acp
      The same, and saves the conversation up to there, to replay and to report.
  acp-relay bisect talk.acpr --until lint:unanswered -- goose acp
      The first turn at which the linter finds that; --until takes any filter of inspect, such as
      'kind:error and method:session/prompt' or 'dur>30s'.

Exit codes: 0 no difference, or no match; 1 a failing prefix was found; 64 usage; 66 unreadable file; 69 no agent.";

/// The arguments of `bisect`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Bisect {
    /// A recording (.acpr, .acpr.zst), or a capture of one JSON line per message
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the smallest prefix that fails, as a capture
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Look for a match of this filter, not for a difference; see inspect show --help
    #[arg(long, value_name = "FILTER")]
    until: Option<Filter>,
    #[command(flatten)]
    play: Play,
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: &Bisect) -> Result<ExitCode, ExitCode> {
    let agent = args.play.agent("bisect FILE")?;
    let script = args.play.script(&args.file)?;
    let turns = script.turns().len();
    let mut output = Output::new();
    // A prefix that was played, its outcome, and whether it fails.
    let mut attempt = |turns: usize| -> Result<(Arc<Script>, PlayOutcome, bool), ExitCode> {
        let prefix = Arc::new(script.prefix(turns));
        let outcome = args.play.run(&prefix, &agent, &mut |_| {})?;
        let until = args.until.as_ref();
        let matched = until.map(|filter| first_match(filter, &outcome.live));
        let (fails, verdict) = match &matched {
            Some(Some(text)) => (true, text.as_str()),
            Some(None) => (false, "not met"),
            None if outcome.is_same() => (false, "the same"),
            None => (true, "differs"),
        };
        output.clean_line(&format!("{}: {verdict}", turns_text(turns)));
        Ok((prefix, outcome, fails))
    };
    let (mut prefix, mut outcome, fails) = attempt(turns)?;
    if !fails {
        return Ok(output.done(exit::SUCCESS));
    }
    // If a prefix fails, every longer one fails too. The handshake alone is 0 turns.
    let (mut low, mut high) = (0, turns);
    while low < high {
        let middle = usize::midpoint(low, high);
        let (tried, result, fails) = attempt(middle)?;
        if fails {
            high = middle;
            (prefix, outcome) = (tried, result);
        } else {
            low = middle + 1;
        }
    }
    if let Some(path) = &args.save {
        let saved = std::fs::write(path, prefix.to_capture());
        saved.map_err(|error| uncreatable(path, &error))?;
    }
    let last = prefix.steps.last().map_or(0, |step| step.n);
    let turns = turns_text(high);
    output.line(format!("smallest failing prefix: {turns}, to event {last}"));
    if args.until.is_none() {
        for line in report::lines(&args.file.display().to_string(), &outcome, output.paint) {
            output.clean_line(&line);
        }
    }
    Ok(output.done(exit::VIOLATIONS))
}

fn turns_text(turns: usize) -> String {
    match turns {
        0 => "the handshake alone".to_owned(),
        turns => counted(turns as u64, "turn"),
    }
}

/// Describes the first message of `live` that matches the filter.
fn first_match(filter: &Filter, live: &Script) -> Option<String> {
    let events = live.events();
    let mut annotations = Annotations::for_filter(Some(filter));
    events.iter().for_each(|event| annotations.add(event));
    annotations.end();
    let is_match = |n, event| filter.matches(event, annotations.derived(n));
    let at = events.iter().position(|event| is_match(event.n, event))?;
    let step = &live.steps[at];
    let mut text = format!("{}: {}", step.from, step.title());
    if !annotations.derived(step.n).lint.is_empty() {
        let mut linter = Linter::default();
        events.iter().for_each(|event| drop(linter.add(event)));
        for finding in linter.end().iter().filter(|finding| finding.n == step.n) {
            text += &format!(" ({} {})", finding.rule.id, finding.what);
        }
    }
    Some(printable(text.as_bytes()))
}
