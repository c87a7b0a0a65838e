//! Prints a conversation as lines of text, or as JSON.
//!
//! A recording may hold any bytes, so control characters in its texts are escaped.

use serde_json::value::RawValue;

use super::chunk_run::{ChunkFolder, ChunkRun};
use super::paint::{Paint, Tone};
use super::summary::summary;
use super::units::{duration, excerpt, size, timestamp};
use crate::cli::console::Output;
use crate::jsonrpc::{Kind, Side, printable};
use crate::recording::rfc3339;
use crate::recording::{
    Entry, EventKind, Exchange, Exchanges, Header, Message, Parsed, RecordedEvent, parse_json,
};

/// Characters of a line before the description.
const HEAD_WIDTH: usize = 17;

/// How a conversation is printed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Style {
    /// Every event separately.
    pub(super) all: bool,
    /// Whole message bodies.
    pub(super) bodies: bool,
    /// The lines of the recording.
    pub(super) json: bool,
    /// Nothing will be added to the recording: a request without an answer stays unanswered.
    pub(super) complete: bool,
}

/// Prints events.
pub(super) struct Printer {
    style: Style,
    paint: Paint,
    pub(super) output: Output,
    conversation: Exchanges,
    /// Exchanges that are known before their answers are printed.
    known: Exchanges,
    chunks: ChunkFolder,
}

impl Printer {
    /// `known` has the answers recorded so far.
    pub(super) fn new(style: Style, known: Exchanges) -> Self {
        let output = Output::new();
        Self {
            style,
            paint: Paint::of(&output),
            output,
            conversation: Exchanges::default(),
            known,
            chunks: ChunkFolder::default(),
        }
    }

    /// Notes an event that is not printed: later ones may belong to it.
    pub(super) fn skip(&mut self, event: &RecordedEvent) {
        self.conversation.add(event);
    }

    /// Prints a line; returns the fault if it is damaged.
    pub(super) fn entry(&mut self, entry: Entry) -> Option<String> {
        match entry.parsed {
            Parsed::Header(_) if self.style.json => {
                self.output.line(entry.line.trim_ascii_end());
            }
            Parsed::Header(header) => self.header(&header),
            Parsed::Event(event) if self.style.json => {
                self.raw(&event, entry.line.trim_ascii_end())
            }
            Parsed::Event(event) => self.event(&event),
            Parsed::Invalid(fault) => return Some(format!("byte {}: {fault}", entry.at)),
        }
        None
    }

    fn header(&mut self, header: &Header) {
        if header.segment > 0 && !self.style.all {
            return;
        }
        let escape = |text: &str| printable(text.as_bytes());
        let line = format!(
            "recording {} of {}: client {} ({}), agent {} ({}); secrets: {}",
            escape(&header.id),
            rfc3339(header.began),
            escape(&header.client.name),
            escape(&header.client.dialect),
            escape(&header.agent.name),
            escape(&header.agent.dialect),
            escape(&header.redaction.mode),
        );
        let line = self.paint.line(line.chars().count(), None, &line);
        self.output.line(line.as_bytes());
    }

    /// Prints the line as it is; an answer with its duration and the number of its request.
    fn raw(&mut self, event: &RecordedEvent, line: &[u8]) {
        let exchange = self.conversation.add(event);
        let took = exchange
            .filter(|exchange| exchange.n != event.n)
            .and_then(|exchange| Some((exchange.n, exchange.duration()?)));
        match (took, serde_json::from_slice::<&RawValue>(line)) {
            (Some((n, took)), Ok(line)) => {
                let took = timestamp(took);
                let text = format!(r#"{{"took":{took},"request":{n},"event":{line}}}"#);
                self.output.line(text.as_bytes());
            }
            _ => self.output.line(line),
        }
    }

    /// Prints an event.
    pub(super) fn event(&mut self, event: &RecordedEvent) {
        if let Some(chunk) = ChunkRun::from_event(event).filter(|_| !self.style.all) {
            if let Some(run) = self.chunks.add(chunk) {
                self.print_run(&run);
            }
            return;
        }
        // An event that chunks were forwarded does not end their run.
        if matches!(event.kind, EventKind::Passed(_)) && !self.style.all {
            return;
        }
        self.end_run();
        let exchange = self.conversation.add(event).cloned();
        let head = head(event.n, event.t);
        let line = match &event.kind {
            EventKind::Message(message) => self.message(&head, event, message, exchange.as_ref()),
            what => head + &describe(what),
        };
        let line = self.paint.line(HEAD_WIDTH, tone(&event.kind), &line);
        self.output.line(line.as_bytes());
        if let EventKind::Message(message) = &event.kind
            && self.style.bodies
            && let Some(bytes) = message.body.bytes()
        {
            let body = format!("{:>HEAD_WIDTH$}{}", "", printable(bytes));
            self.output.line(body.as_bytes());
        }
    }

    pub(super) fn end_run(&mut self) {
        if let Some(run) = self.chunks.end() {
            self.print_run(&run);
        }
    }

    fn print_run(&mut self, run: &ChunkRun) {
        let head = head(run.n, run.t);
        let edge = edge(&run.message);
        let title = run.title();
        let title = printable(title.as_bytes());
        let lasted = match run.until - run.t {
            0 => String::new(),
            lasted => format!(" in {}", duration(lasted)),
        };
        let size = size(run.text.len() as u64);
        let text = if self.style.bodies {
            printable(run.text.as_bytes())
        } else {
            excerpt(run.text.as_bytes())
        };
        let known = format!("{head}{edge} {title}{lasted}");
        let line = self.paint.fit(&known, &text, [&format!(" ({size})"), ""]);
        let line = self
            .paint
            .line(HEAD_WIDTH, Some(sender_tone(&run.message)), &line);
        self.output.line(line.as_bytes());
    }

    /// Describes a message and the exchange that it belongs to.
    fn message(
        &self,
        head: &str,
        event: &RecordedEvent,
        message: &Message,
        exchange: Option<&Exchange>,
    ) -> String {
        let method = message.method.as_deref().unwrap_or("?");
        let method = excerpt(method.as_bytes());
        let id = message.id.as_deref().unwrap_or("no id");
        let id = excerpt(id.as_bytes());
        let mut line = format!("{head}{}", edge(message));
        let mut other = String::new();
        match message.kind {
            Some(Kind::Request) => {
                line += &format!(" {method} [{id}]");
                if let Some(exchange) = self.known.exchange(event.n) {
                    other = match exchange.answer {
                        Some(answer) => {
                            let took = duration(exchange.duration().unwrap_or_default());
                            format!("answer {} after {took}", answer.n)
                        }
                        None if self.style.complete && message.is_received() => {
                            "no answer".to_owned()
                        }
                        None => String::new(),
                    };
                }
            }
            Some(Kind::Notification) => line += &format!(" {method}"),
            Some(kind) => {
                line += &format!(" {method} [{id}] {}", kind.name());
                if let Some(exchange) = exchange {
                    let took = duration(event.t.saturating_sub(exchange.requested_at));
                    line += &format!(" after {took}");
                    other = format!("request {}", exchange.n);
                }
            }
            None => line += " no message",
        }
        let bytes = message.body.bytes();
        let text = match message.kind {
            Some(_) => bytes.and_then(|bytes| Some(summary(&parse_json(bytes)?))),
            None => bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
        };
        let mut more = String::new();
        if let Some(of) = message.source {
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

/// The number and time of an event, to the millisecond.
fn head(n: u64, t: u64) -> String {
    format!("{n:>5} {:>6}.{:03} ", t / 1_000_000, t / 1_000 % 1_000)
}

/// The side at which a message was recorded: `→` is received from it, `←` sent to it.
fn edge(message: &Message) -> String {
    let (hop, arrow) = match (message.edge, message.to) {
        (Side::Client, Side::Agent) => ("client", "→"),
        (Side::Client, Side::Client) => ("client", "←"),
        (Side::Agent, Side::Client) => ("agent ", "→"),
        (Side::Agent, Side::Agent) => ("agent ", "←"),
    };
    format!("{hop} {arrow}")
}

/// Describes an event that is no message.
fn describe(what: &EventKind) -> String {
    let text = match what {
        EventKind::Passed(passed) => {
            let (first, last, count, to) = (passed.first, passed.last, passed.count, passed.to);
            format!("forwarded to the {to} unchanged: {first} to {last}, {count} messages")
        }
        EventKind::Stderr(body) => {
            let bytes = body.bytes().map(|bytes| excerpt(bytes.trim_ascii_end()));
            return format!("stderr: {}", bytes.unwrap_or_else(|| size(body.len())));
        }
        EventKind::Process { event, detail } => format!("process {event}: {detail}"),
        EventKind::Link {
            side,
            event,
            detail,
        } => format!("{side} {event}: {detail}"),
        EventKind::Note { name, text, .. } => format!("note {name}: {text}"),
        EventKind::Gap {
            events,
            bytes,
            reason,
        } => format!(
            "{events} events of {} are missing here: {reason}",
            size(*bytes)
        ),
        EventKind::Clock { jump } => format!("the wall clock jumped by {} µs", jump),
        EventKind::Mark(text) => format!("mark: {text}"),
        EventKind::Resume => "the recording continues".to_owned(),
        EventKind::End {
            rotated, reason, ..
        } => {
            let word = if *rotated {
                "continues in another file"
            } else {
                "ends"
            };
            format!("the recording {word}: {reason}")
        }
        EventKind::Other { kind, .. } => format!("{kind}: an unknown kind of event"),
        EventKind::Message(_) => String::new(),
    };
    excerpt(text.as_bytes())
}

const fn sender_tone(message: &Message) -> Tone {
    match message.to {
        Side::Client => Tone::Agent,
        Side::Agent => Tone::Client,
    }
}

/// The colour of an event.
fn tone(what: &EventKind) -> Option<Tone> {
    match what {
        EventKind::Message(message) => Some(match message.kind {
            Some(Kind::Error) => Tone::Bad,
            Some(_) => sender_tone(message),
            None => Tone::Odd,
        }),
        EventKind::Passed(_) | EventKind::Resume | EventKind::End { .. } => Some(Tone::Faint),
        EventKind::Gap { .. } => Some(Tone::Bad),
        EventKind::Mark(_) => Some(Tone::Strong),
        EventKind::Note { .. } | EventKind::Process { .. } | EventKind::Link { .. } => {
            Some(Tone::Odd)
        }
        _ => None,
    }
}
