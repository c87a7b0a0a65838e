//! Texts on a terminal: colours and widths; `analysis::text` has the texts themselves.
//!
//! No colours if stdout is no terminal, `NO_COLOR` is set (no-color.org), or `TERM` is `dumb`.

use serde_json::Value;

use analysis::text::excerpt;
use jsonrpc::{printable, truncated};
use recording::patch::Change;

/// Colours text, or returns it unchanged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    enabled: bool,
    /// The width at which lines are cut.
    columns: Option<usize>,
}

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// Sent by the client.
    Client,
    /// Sent by the agent; what has passed, or was added.
    Agent,
    /// A failure, or what is missing.
    Bad,
    /// Unusual.
    Odd,
    /// Less important.
    Faint,
    /// A heading.
    Strong,
}

impl Paint {
    /// No colours, and whole lines.
    pub(super) const PLAIN: Self = Self {
        enabled: false,
        columns: None,
    };

    /// For a terminal of so many columns, if there is one; follows the environment.
    pub(super) fn of(columns: Option<usize>) -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            enabled: columns.is_some() && !is_set("NO_COLOR") && !is_dumb,
            columns,
        }
    }

    /// Whether it colours.
    pub(super) const fn is_enabled(self) -> bool {
        self.enabled
    }

    /// The lines of a difference, the removed ones red and the added ones green.
    pub(super) fn diff(self, lines: &[String]) -> String {
        let line = |line: &String| {
            let tone = match line.as_bytes().first() {
                Some(b'-') => Some(Tone::Bad),
                Some(b'+') => Some(Tone::Agent),
                _ => None,
            };
            let text = printable(line.as_bytes());
            let text = tone.map_or_else(|| text.clone(), |tone| self.tone(tone, &text));
            format!("    {text}\n")
        };
        lines.iter().map(line).collect()
    }

    /// Colours a text.
    pub(super) fn tone(self, tone: Tone, text: &str) -> String {
        if !self.enabled {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Client => "36",
            Tone::Agent => "32",
            Tone::Bad => "31",
            Tone::Odd => "33",
            Tone::Faint => "2",
            Tone::Strong => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Colours a line, the first `head` characters faint, and cuts it at the terminal's width.
    pub(super) fn line(self, head: usize, tone: Option<Tone>, line: &str) -> String {
        let line = self.cut(line);
        let split = line.char_indices().nth(head);
        let (head, rest) = line.split_at(split.map_or(line.len(), |(at, _)| at));
        let rest = tone.map_or_else(|| rest.to_owned(), |tone| self.tone(tone, rest));
        self.tone(Tone::Faint, head) + &rest
    }

    /// The lines of a change at a place: what was there with `-`, what is with `+`.
    pub(super) fn change(self, indent: &str, place: &str, change: &Change) -> Vec<String> {
        let place = excerpt(place.as_bytes());
        let (before, after) = from_difference(change.before.as_ref(), change.after.as_ref());
        let line = |sign, tone, text| {
            self.tone(tone, &self.cut(&format!("{indent}{sign} {place}: {text}")))
        };
        let before = change.before.as_ref().map(|_| line('-', Tone::Bad, before));
        let after = change.after.as_ref().map(|_| line('+', Tone::Agent, after));
        before.into_iter().chain(after).collect()
    }

    fn cut(self, line: &str) -> String {
        cut(line, self.columns.unwrap_or(usize::MAX))
    }
}

/// A line cut to a width.
pub(super) fn cut(line: &str, width: usize) -> String {
    match line.chars().count() <= width {
        true => line.to_owned(),
        false => truncated(line, width.saturating_sub(1)),
    }
}

/// Two values, from a little before their first difference.
fn from_difference(before: Option<&Value>, after: Option<&Value>) -> (String, String) {
    let text = |value: Option<&Value>| value.map(Value::to_string).unwrap_or_default();
    let (before, after) = (text(before), text(after));
    let same = before
        .chars()
        .zip(after.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let cut = |text: &str| {
        let skipped = same.saturating_sub(20);
        let rest: String = text.chars().skip(skipped).collect();
        let ellipsis = if skipped > 0 { "…" } else { "" };
        format!("{ellipsis}{}", excerpt(rest.as_bytes()))
    };
    (cut(&before), cut(&after))
}
