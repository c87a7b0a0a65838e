//! Colours and line widths for a terminal.
//!
//! No colours if stdout is no terminal, `NO_COLOR` is set (no-color.org), or `TERM` is `dumb`.

use crate::cli::console::Output;

/// Minimum characters of a text that is shown at all.
const MIN_TEXT: usize = 8;

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
    /// Sent by the agent.
    Agent,
    /// A failure.
    Bad,
    /// Unusual.
    Odd,
    /// Less important.
    Faint,
    /// A heading.
    Strong,
}

impl Paint {
    /// Follows the terminal and the environment.
    pub(super) fn of(output: &Output) -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let columns = output.columns();
        Self {
            enabled: columns.is_some() && !is_set("NO_COLOR") && !is_dumb,
            columns,
        }
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

    /// Joins the head of a line, a text and the rest, fitted to the terminal: first the text is
    /// shortened, then the long form of `rest` is replaced by the short one.
    pub(super) fn fit(self, known: &str, text: &str, rest: [&str; 2]) -> String {
        let text = match text {
            "" => String::new(),
            text => format!(": {text}"),
        };
        let [long, short] = rest;
        let length = |text: &str| text.chars().count();
        let whole = format!("{known}{text}{long}");
        let Some(columns) = self.columns.filter(|columns| length(&whole) > *columns) else {
            return whole;
        };
        let room = columns.saturating_sub(length(known) + length(short));
        if length(&text) <= room {
            return format!("{known}{text}{short}");
        }
        if room < MIN_TEXT {
            return format!("{known}{text}");
        }
        let cut: String = text.chars().take(room - 1).collect();
        format!("{known}{}…{short}", cut.trim_end())
    }

    /// Colours a line, the first `head` characters faint, and cuts it at the terminal's width.
    pub(super) fn line(self, head: usize, tone: Option<Tone>, line: &str) -> String {
        let line = self.cut(line);
        let split = line
            .char_indices()
            .nth(head)
            .map_or(line.len(), |(at, _)| at);
        let (head, rest) = line.split_at(split);
        let rest = tone.map_or_else(|| rest.to_owned(), |tone| self.tone(tone, rest));
        self.tone(Tone::Faint, head) + &rest
    }

    fn cut(self, line: &str) -> String {
        match self.columns {
            Some(columns) if line.chars().count() > columns => {
                let shortened = line.chars().take(columns.saturating_sub(1));
                shortened.chain(['…']).collect()
            }
            _ => line.to_owned(),
        }
    }
}
