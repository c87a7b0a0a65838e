//! Colours and line widths for a terminal.
//!
//! No colours if stdout is no terminal, `NO_COLOR` is set (no-color.org), or `TERM` is `dumb`.

use crate::cli::console::Output;

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

    /// Colours a line, the first `head` characters faint, and cuts it at the terminal's width.
    pub(super) fn line(self, head: usize, tone: Option<Tone>, line: &str) -> String {
        let line = self.cut(line);
        let split = line.char_indices().nth(head);
        let (head, rest) = line.split_at(split.map_or(line.len(), |(at, _)| at));
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
