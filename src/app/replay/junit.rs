//! A run as JUnit's XML, which every CI shows: a test case for the handshake and for each turn.
//!
//! Not here: the run.

use std::fmt::Write;

use super::play::Outcome;
use super::report::{changes, heading};

/// The report of a run.
pub(super) fn report(name: &str, outcome: &Outcome) -> String {
    let compared = &outcome.compared;
    let turns = compared.turns.len();
    let mut cases = String::new();
    let mut failures = 0;
    for turn in 0..=turns {
        let found: Vec<_> = compared
            .differences
            .iter()
            .filter(|one| one.turn.min(turns) == turn)
            .collect();
        let mut text: Vec<String> = found
            .iter()
            .flat_map(|one| [vec![heading(one)], changes(one)].concat())
            .collect();
        // What kept it from going on is told where it ended.
        if turn == turns {
            text.extend(outcome.troubles.iter().cloned());
        }
        let case = match turn {
            0 => "handshake".to_owned(),
            turn => format!("turn {turn} (event {})", compared.turns[turn - 1]),
        };
        let class = escaped(name);
        if text.is_empty() {
            let _ = writeln!(cases, "  <testcase classname=\"{class}\" name=\"{case}\"/>");
            continue;
        }
        failures += 1;
        let summary = escaped(text.first().map_or("", String::as_str));
        let _ = writeln!(
            cases,
            "  <testcase classname=\"{class}\" name=\"{case}\">\n    <failure message=\"{summary}\">{}</failure>\n  </testcase>",
            escaped(&text.join("\n"))
        );
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"0\" time=\"{:.3}\">\n{cases}</testsuite>\n",
        escaped(name),
        turns + 1,
        outcome.took.as_secs_f64(),
    )
}

/// Text as it may stand in XML 1.0; what may not at all is shown as U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(character),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            character if character.is_control() => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
    out
}
