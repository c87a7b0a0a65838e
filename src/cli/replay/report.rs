//! The report of a run: lines for people, JSON, and a JUnit suite.

use serde_json::{Value, json};

use super::play::Outcome;
use crate::cli::console::counted;
use crate::cli::junit::{Case, Suite};
use crate::jsonrpc::printable;
use crate::recording::replay::ReplayDifference;
use crate::recording::show_halves;

/// Maximum differences in the text; `--json` has all.
const MAX_DIFFERENCES: usize = 40;

/// Maximum changes shown of one message.
const MAX_CHANGES: usize = 6;

/// Maximum characters shown of a value.
const MAX_VALUE: usize = 160;

/// The run as lines of text.
pub(super) fn lines(name: &str, outcome: &Outcome) -> Vec<String> {
    let compared = &outcome.compared;
    let mut lines = Vec::new();
    for difference in compared.differences.iter().take(MAX_DIFFERENCES) {
        lines.push(heading(difference));
        lines.extend(changes(difference).iter().map(|line| format!("    {line}")));
    }
    let more = compared.differences.len().saturating_sub(MAX_DIFFERENCES);
    if more > 0 {
        lines.push(format!("… and {more} more; --json has all"));
    }
    lines.extend(
        outcome
            .troubles
            .iter()
            .map(|text| printable(text.as_bytes())),
    );
    let verdict = match compared.differences.len() {
        0 if outcome.is_same() => "the same".to_owned(),
        0 => "it stopped early".to_owned(),
        count => counted(count as u64, "difference"),
    };
    lines.push(format!(
        "{}: {} turns, {} steps, {:.1} s: {verdict}",
        printable(name.as_bytes()),
        compared.turns.len(),
        compared.steps,
        outcome.took.as_secs_f64(),
    ));
    lines
}

/// The run as JSON.
pub(super) fn json(name: &str, outcome: &Outcome) -> Value {
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
pub(super) fn suite(name: &str, outcome: &Outcome) -> Suite {
    let compared = &outcome.compared;
    let turns = compared.turns.len();
    let case = |turn: usize| {
        let in_turn = |one: &&ReplayDifference| one.turn.min(turns) == turn;
        let found = compared.differences.iter().filter(in_turn);
        let texts = found.flat_map(|one| [vec![heading(one)], changes(one)].concat());
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

/// The changes, one per line.
fn changes(difference: &ReplayDifference) -> Vec<String> {
    let all = difference.patch.as_array().map_or(&[][..], Vec::as_slice);
    let text = |change: &Value, name: &str| change[name].as_str().unwrap_or_default().to_owned();
    let mut lines: Vec<String> = all
        .iter()
        .take(MAX_CHANGES)
        .map(|change| {
            let path = text(change, "path");
            let path = path.strip_prefix("/body").unwrap_or(&path);
            let what = match text(change, "op").as_str() {
                "remove" => format!("{path} is missing"),
                "add" => format!("{path} is new: {}", cut(&change["value"])),
                _ => format!("{path} is now {}", cut(&change["value"])),
            };
            printable(show_halves(&what).as_bytes())
        })
        .collect();
    if all.len() > MAX_CHANGES {
        lines.push(format!("… {} more", all.len() - MAX_CHANGES));
    }
    lines
}

fn cut(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_VALUE) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
