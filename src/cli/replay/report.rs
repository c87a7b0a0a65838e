//! The report of a run: lines for people, JSON, and a JUnit suite.

use serde_json::{Value, json};

use crate::cli::text::{Paint, Tone};
use analysis::junit::{Case, Suite};
use analysis::text::counted;
use jsonrpc::printable;
use recording::show_halves;
use replay::{PlayOutcome, ReplayDifference};

/// Maximum differences in the text; `--json` has all.
const MAX_DIFFERENCES: usize = 40;

/// Maximum changes shown of one message.
const MAX_CHANGES: usize = 6;

/// The run as lines of text, of which the last is the verdict.
pub(super) fn lines(name: &str, outcome: &PlayOutcome, paint: Paint) -> Vec<String> {
    let mut lines = differences(outcome, paint);
    lines.push(format!(
        "{}: {}: {}",
        printable(name.as_bytes()),
        size(outcome),
        verdict(outcome)
    ));
    lines
}

/// How much was played.
pub(super) fn size(outcome: &PlayOutcome) -> String {
    let [turns, steps] = [
        (outcome.compared.turns.len(), "turn"),
        (outcome.compared.steps, "step"),
    ]
    .map(|(count, what)| counted(count as u64, what));
    let took = outcome.took.as_secs_f64();
    let place = outcome.missing_folder.as_ref().map(|folder| {
        let folder = printable(folder.as_bytes());
        format!(", in this folder because {folder} is not here")
    });
    let place = place.unwrap_or_default();
    format!("{turns}, {steps}, {took:.1} s{place}")
}

fn verdict(outcome: &PlayOutcome) -> String {
    match outcome.compared.differences.len() {
        0 if outcome.is_same() => "the same".to_owned(),
        0 => "it stopped early".to_owned(),
        count => counted(count as u64, "difference"),
    }
}

/// The differences and troubles.
pub(super) fn differences(outcome: &PlayOutcome, paint: Paint) -> Vec<String> {
    let compared = &outcome.compared;
    let mut lines = Vec::new();
    for difference in compared.differences.iter().take(MAX_DIFFERENCES) {
        lines.push(paint.tone(Tone::Strong, &heading(difference)));
        lines.extend(changes(difference, paint));
    }
    let more = compared.differences.len().saturating_sub(MAX_DIFFERENCES);
    if more > 0 {
        lines.push(format!("… and {more} more; `replay client --json` has all"));
    }
    lines.extend(
        outcome
            .troubles
            .iter()
            .map(|text| printable(text.as_bytes())),
    );
    lines
}

/// The run as JSON.
pub(super) fn json(name: &str, outcome: &PlayOutcome) -> Value {
    json!({
        "file": name,
        "same": outcome.is_same(),
        "turns": outcome.compared.turns.len(),
        "steps": outcome.compared.steps,
        "seconds": outcome.took.as_secs_f64(),
        "differences": outcome.compared.differences,
        "troubles": outcome.troubles,
    })
}

/// The run as a test suite: one case for the handshake and one for each turn.
pub(super) fn suite(name: &str, outcome: &PlayOutcome) -> Suite {
    let compared = &outcome.compared;
    let turns = compared.turns.len();
    let case = |turn: usize| {
        let in_turn = |one: &&ReplayDifference| one.turn.min(turns) == turn;
        let found = compared.differences.iter().filter(in_turn);
        let texts = found.flat_map(|one| [vec![heading(one)], changes(one, Paint::PLAIN)].concat());
        let mut lines: Vec<String> = texts.collect();
        // What stopped the run belongs to the turn in which it stopped.
        if turn == turns {
            lines.extend(outcome.troubles.iter().cloned());
        }
        Case {
            name: match turn {
                0 => "handshake".to_owned(),
                turn => format!("turn {turn} (event {})", compared.turns[turn - 1]),
            },
            faults: lines,
            broken: false,
        }
    };
    Suite {
        name: name.to_owned(),
        took: outcome.took,
        cases: (0..=turns).map(case).collect(),
    }
}

/// One difference in one line: `turn 2  event 31  agent  changed  session/update tool_call`.
fn heading(difference: &ReplayDifference) -> String {
    let turn = match difference.turn {
        0 => "handshake".to_owned(),
        turn => format!("turn {turn}"),
    };
    let event = difference
        .event
        .map_or_else(|| "-".to_owned(), |n| format!("event {n}"));
    let line = format!(
        "{turn:9}  {event:10}  {:6}  {:7}  {}",
        difference.from.name(),
        difference.kind,
        difference.title
    );
    printable(show_halves(&line).as_bytes())
}

/// The changes of a message: what was there and what is.
fn changes(difference: &ReplayDifference, paint: Paint) -> Vec<String> {
    let all = &difference.changes;
    let lines = all.iter().take(MAX_CHANGES).flat_map(|change| {
        let place = change.at.strip_prefix("/body").unwrap_or(&change.at);
        paint.change("    ", place, change)
    });
    let more = all.len().saturating_sub(MAX_CHANGES);
    let more = (more > 0).then(|| format!("    … {more} more"));
    lines.chain(more).collect()
}
