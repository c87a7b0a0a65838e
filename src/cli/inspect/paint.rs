//! Colour, for a person at a terminal.
//!
//! None when stdout is no terminal, when `NO_COLOR` is set (no-color.org), and on a `dumb` one.

use crate::cli::console::Output;

/// Fewest characters of a text that are worth their place.
const LEAST: usize = 8;

/// Paints, or leaves as it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    on: bool,
    /// Where a line is cut.
    columns: Option<usize>,
}

/// What a colour says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// Said by the client.
    Client,
    /// Said by the agent.
    Agent,
    /// Something failed.
    Bad,
    /// Worth a look.
    Odd,
    /// Of less interest.
    Faint,
    /// A heading.
    Strong,
}

impl Paint {
    /// As the terminal wants it.
    pub(super) fn of(output: &Output) -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let columns = output.columns();
        Self {
            on: columns.is_some() && !is_set("NO_COLOR") && !dumb,
            columns,
        }
    }

    /// A text in its tone.
    pub(super) fn tone(self, tone: Tone, text: &str) -> String {
        if !self.on {
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

    /// What is known of a message and a text of it in a line that fits the terminal: of what does
    /// not, the text gives way first, then the `rest`, of which there is a short form.
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
        if room < LEAST {
            return format!("{known}{text}");
        }
        let cut: String = text.chars().take(room - 1).collect();
        format!("{known}{}…{short}", cut.trim_end())
    }

    /// A line that begins with a faint head of so many characters; cut where the terminal ends.
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
                let kept = line.chars().take(columns.saturating_sub(1));
                kept.chain(['…']).collect()
            }
            _ => line.to_owned(),
        }
    }
}
