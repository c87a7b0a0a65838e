//! A conversation as lines for a person, or for a program.
//!
//! All text of others is shown without control characters: a recording may hold anything. Not
//! here: where the events come from (see `show`, `follow`).

use serde_json::value::RawValue;

use super::detail::detail;
use super::fold::{Folding, Run};
use super::paint::{Paint, Tone};
use super::units::{excerpt, place, size, took};
use crate::cli::console::Output;
use crate::jsonrpc::{Side, printable};
use crate::recording::calendar;
use crate::recording::{
    Conversation, Entry, Event, Exchange, Found, Header, Message, MessageKind, What, tree,
};

/// Characters of a line before what happened.
const HEAD: usize = 17;

/// How a conversation is shown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Style {
    /// Every event by itself.
    pub(super) all: bool,
    /// The bodies of messages in full.
    pub(super) bodies: bool,
    /// The lines of the recording.
    pub(super) json: bool,
    /// Nothing comes after what is known: a request that has no answer gets none.
    pub(super) whole: bool,
}

/// What is being shown.
pub(super) struct Page {
    style: Style,
    paint: Paint,
    pub(super) output: Output,
    conversation: Conversation,
    /// What is known of requests before their answers are shown.
    known: Conversation,
    chunks: Folding,
}

impl Page {
    /// A page; `known` has the answers that are there already.
    pub(super) fn new(style: Style, known: Conversation) -> Self {
        let output = Output::new();
        Self {
            style,
            paint: Paint::of(&output),
            output,
            conversation: Conversation::default(),
            known,
            chunks: Folding::default(),
        }
    }

    /// Remembers an event that is not shown: what comes may belong to it.
    pub(super) fn pass_over(&mut self, event: &Event) {
        self.conversation.see(event);
    }

    /// Shows a line; what is wrong with it, if it cannot be shown.
    pub(super) fn entry(&mut self, entry: Entry) -> Option<String> {
        match entry.found {
            Found::Header(_) if self.style.json => {
                self.output.line(entry.line.trim_ascii_end());
            }
            Found::Header(header) => self.header(&header),
            Found::Event(event) if self.style.json => self.raw(&event, entry.line.trim_ascii_end()),
            Found::Event(event) => self.event(&event),
            Found::Broken(fault) => return Some(format!("byte {}: {fault}", entry.at)),
        }
        None
    }

    fn header(&mut self, header: &Header) {
        if header.segment > 0 && !self.style.all {
            return;
        }
        let say = |text: &str| printable(text.as_bytes());
        let line = format!(
            "recording {} of {}: client {} ({}), agent {} ({}); secrets: {}",
            say(&header.id),
            calendar(header.began),
            say(&header.client.name),
            say(&header.client.dialect),
            say(&header.agent.name),
            say(&header.agent.dialect),
            say(&header.redaction.mode),
        );
        let line = self.paint.line(line.chars().count(), None, &line);
        self.output.line(line.as_bytes());
    }

    /// The line as it is, and what only a reader of all of them knows.
    fn raw(&mut self, event: &Event, line: &[u8]) {
        let exchange = self.conversation.see(event);
        let took = exchange
            .filter(|exchange| exchange.n != event.n)
            .and_then(|exchange| Some((exchange.n, exchange.took()?)));
        match (took, serde_json::from_slice::<&RawValue>(line)) {
            (Some((n, took)), Ok(line)) => {
                let took = place(took);
                let text = format!(r#"{{"took":{took},"request":{n},"event":{line}}}"#);
                self.output.line(text.as_bytes());
            }
            _ => self.output.line(line),
        }
    }

    /// Shows an event.
    pub(super) fn event(&mut self, event: &Event) {
        if let Some(chunk) = Run::begin(event).filter(|_| !self.style.all) {
            if let Some(run) = self.chunks.add(chunk) {
                self.tell(&run);
            }
            return;
        }
        // That chunks were passed on does not part them.
        if matches!(event.what, What::Passed(_)) && !self.style.all {
            return;
        }
        self.end_run();
        let asked = self.conversation.see(event).cloned();
        let head = head(event.n, event.t);
        let line = match &event.what {
            What::Message(message) => self.message(&head, event, message, asked.as_ref()),
            what => head + &said(what),
        };
        let line = self.paint.line(HEAD, tone(&event.what), &line);
        self.output.line(line.as_bytes());
        if let What::Message(message) = &event.what
            && self.style.bodies
            && let Some(bytes) = message.body.bytes()
        {
            let body = format!("{:>HEAD$}{}", "", printable(bytes));
            self.output.line(body.as_bytes());
        }
    }

    pub(super) fn end_run(&mut self) {
        if let Some(run) = self.chunks.end() {
            self.tell(&run);
        }
    }

    fn tell(&mut self, run: &Run) {
        let head = head(run.n, run.t);
        let edge = edge(&run.message);
        let title = run.title();
        let title = printable(title.as_bytes());
        let lasted = match run.until - run.t {
            0 => String::new(),
            lasted => format!(" in {}", took(lasted)),
        };
        let size = size(run.text.len() as u64);
        let text = if self.style.bodies {
            printable(run.text.as_bytes())
        } else {
            excerpt(run.text.as_bytes())
        };
        let known = format!("{head}{edge} {title}{lasted}");
        let line = self.paint.fit(&known, &text, [&format!(" ({size})"), ""]);
        let line = self.paint.line(HEAD, Some(of_side(&run.message)), &line);
        self.output.line(line.as_bytes());
    }

    /// What a message is, and the exchange that it is part of.
    fn message(
        &self,
        head: &str,
        event: &Event,
        message: &Message,
        asked: Option<&Exchange>,
    ) -> String {
        let method = message.method.as_deref().unwrap_or("?");
        let method = excerpt(method.as_bytes());
        let id = message.id.as_deref().unwrap_or("no id");
        let id = excerpt(id.as_bytes());
        let mut line = format!("{head}{}", edge(message));
        let mut other = String::new();
        match message.kind {
            Some(MessageKind::Request) => {
                line += &format!(" {method} [{id}]");
                if let Some(asked) = self.known.exchange(event.n) {
                    other = match asked.answer {
                        Some(answer) => {
                            let took = took(asked.took().unwrap_or_default());
                            format!("answer {} after {took}", answer.n)
                        }
                        None if self.style.whole && message.is_heard() => "no answer".to_owned(),
                        None => String::new(),
                    };
                }
            }
            Some(MessageKind::Notification) => line += &format!(" {method}"),
            Some(kind) => {
                line += &format!(" {method} [{id}] {}", kind.name());
                if let Some(asked) = asked {
                    let took = took(event.t.saturating_sub(asked.asked));
                    line += &format!(" after {took}");
                    other = format!("request {}", asked.n);
                }
            }
            None => line += " no message",
        }
        let bytes = message.body.bytes();
        let text = match message.kind {
            Some(_) => bytes.and_then(|bytes| Some(detail(&tree(bytes)?))),
            None => bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
        };
        let mut more = String::new();
        if let Some(of) = message.of {
            more += &format!(" from {of}");
        }
        if !message.rules.is_empty() {
            more += &format!(" by {}", excerpt(message.rules.join(", ").as_bytes()));
        }
        if !message.redacted.is_empty() {
            more += &format!(" ({} redacted)", message.redacted.len());
        }
        let size = size(message.body.len());
        let (long, short) = match other.as_str() {
            "" => (format!(" ({size}){more}"), more),
            other => (
                format!(" ({size}, {other}){more}"),
                format!(" ({other}){more}"),
            ),
        };
        let text = excerpt(text.unwrap_or_default().as_bytes());
        self.paint.fit(&line, &text, [&long, &short])
    }
}

/// The number and the time of an event, to the millisecond.
fn head(n: u64, t: u64) -> String {
    format!("{n:>5} {:>6}.{:03} ", t / 1_000_000, t / 1_000 % 1_000)
}

/// At which edge a message crossed: `→` is said by that side, `←` is said to it.
fn edge(message: &Message) -> String {
    let (hop, arrow) = match (message.hop, message.to) {
        (Side::Client, Side::Agent) => ("client", "→"),
        (Side::Client, Side::Client) => ("client", "←"),
        (Side::Agent, Side::Client) => ("agent ", "→"),
        (Side::Agent, Side::Agent) => ("agent ", "←"),
    };
    format!("{hop} {arrow}")
}

/// Anything that is no message.
fn said(what: &What) -> String {
    let text = match what {
        What::Passed(passed) => {
            let (first, last, count, to) = (passed.first, passed.last, passed.count, passed.to);
            format!("passed on to the {to} unchanged: {first} to {last}, {count} messages")
        }
        What::Stderr(body) => {
            let bytes = body.bytes().map(|bytes| excerpt(bytes.trim_ascii_end()));
            return format!("stderr: {}", bytes.unwrap_or_else(|| size(body.len())));
        }
        What::Process { event, what } => format!("process {event}: {what}"),
        What::Link { side, event, what } => format!("{side} {event}: {what}"),
        What::Note { name, text, .. } => format!("note {name}: {text}"),
        What::Gap { events, bytes, why } => {
            format!(
                "{events} events of {} are missing here: {why}",
                size(*bytes)
            )
        }
        What::Clock { jump } => format!("the wall clock jumped by {} µs", jump),
        What::Mark(text) => format!("mark: {text}"),
        What::Resume => "the recording goes on".to_owned(),
        What::End { rotated, why, .. } => {
            let word = if *rotated {
                "goes on in another file"
            } else {
                "ends"
            };
            format!("the recording {word}: {why}")
        }
        What::Other { kind, .. } => format!("{kind}: of a kind that is not known here"),
        What::Message(_) => String::new(),
    };
    excerpt(text.as_bytes())
}

const fn of_side(message: &Message) -> Tone {
    match message.to {
        Side::Client => Tone::Agent,
        Side::Agent => Tone::Client,
    }
}

/// The colour of what happened.
fn tone(what: &What) -> Option<Tone> {
    match what {
        What::Message(message) => Some(match message.kind {
            Some(MessageKind::Error) => Tone::Bad,
            Some(_) => of_side(message),
            None => Tone::Odd,
        }),
        What::Passed(_) | What::Resume | What::End { .. } => Some(Tone::Faint),
        What::Gap { .. } => Some(Tone::Bad),
        What::Mark(_) => Some(Tone::Strong),
        What::Note { .. } | What::Process { .. } | What::Link { .. } => Some(Tone::Odd),
        _ => None,
    }
}
