//! Prints a conversation as lines of text, or as JSON.
//!
//! A recording may hold any bytes, so control characters in its texts are escaped.

use clap::Args;
use serde_json::value::RawValue;

use crate::cli::console::{Output, note};
use crate::cli::text::{Paint, Tone};
use analysis::text::{duration, excerpt, size, summary, timestamp};
use analysis::{ChunkFolder, ChunkRun};
use jsonrpc::{Kind, Side, printable};
use recording::rfc3339;
use recording::{
    Entry, EventKind, Exchange, Exchanges, Header, Message, Parsed, RecordedEvent, parse_json,
};

/// Characters of a line before the description.
const HEAD_WIDTH: usize = 17;

/// How a conversation is printed.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Style {
    /// Show every event separately, also the notes that a frame was forwarded
    #[arg(long)]
    all: bool,
    /// Show whole message bodies
    #[arg(long)]
    bodies: bool,
    /// Print the lines of the recording, each answer with its duration
    #[arg(long)]
    pub(super) json: bool,
}

/// Prints events.
pub(super) struct Printer {
    style: Style,
    /// Nothing will be added to the recording: a request without an answer stays unanswered.
    complete: bool,
    paint: Paint,
    pub(super) output: Output,
    /// Of all events so far, and those that are known to follow.
    pub(super) exchanges: Exchanges,
    chunks: ChunkFolder,
}

impl Printer {
    /// `exchanges` has the answers recorded so far.
    pub(super) fn new(style: Style, complete: bool, exchanges: Exchanges) -> Self {
        let output = Output::new();
        Self {
            style,
            complete,
            paint: Paint::of(&output),
            output,
            exchanges,
            chunks: ChunkFolder::default(),
        }
    }

    /// Prints a line; reports a damaged one.
    pub(super) fn entry(&mut self, entry: Entry) {
        match entry.parsed {
            Parsed::Header(_) if self.style.json => {
                self.output.line(entry.line.trim_ascii_end());
            }
            Parsed::Header(header) => self.header(&header),
            Parsed::Event(event) if self.style.json => {
                self.raw(&event, entry.line.trim_ascii_end())
            }
            Parsed::Event(event) => self.event(&event),
            Parsed::Invalid(fault) => self.report(&format!("byte {}: {fault}", entry.at)),
        }
    }

    /// Prints on stderr what cannot be printed as a line, after the lines so far.
    pub(super) fn report(&mut self, fault: &str) {
        self.end_run();
        self.output.flush();
        note(&format!("acp-relay: {}", printable(fault.as_bytes())));
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
        self.output.line(line);
    }

    /// Prints the line as it is; an answer with its duration and the number of its request.
    fn raw(&mut self, event: &RecordedEvent, line: &[u8]) {
        let exchange = self.exchanges.add(event);
        let request = exchange.filter(|exchange| exchange.n != event.n);
        let took = request.and_then(|exchange| Some((exchange.n, exchange.duration()?)));
        match (took, serde_json::from_slice::<&RawValue>(line)) {
            (Some((n, took)), Ok(line)) => {
                let took = timestamp(took);
                let text = format!(r#"{{"took":{took},"request":{n},"event":{line}}}"#);
                self.output.line(text);
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
        let exchange = self.exchanges.add(event).cloned();
        let what = match &event.kind {
            EventKind::Message(message) => self.message(event, message, exchange.as_ref()),
            what => describe(what),
        };
        let line = head(event.n, event.t) + &what;
        let line = self.paint.line(HEAD_WIDTH, tone(&event.kind), &line);
        self.output.line(line);
        if let EventKind::Message(message) = &event.kind
            && self.style.bodies
            && let Some(bytes) = message.body.bytes()
        {
            let body = format!("{:>HEAD_WIDTH$}{}", "", printable(bytes));
            self.output.line(body);
        }
    }

    pub(super) fn end_run(&mut self) {
        if let Some(run) = self.chunks.end() {
            self.print_run(&run);
        }
    }

    fn print_run(&mut self, run: &ChunkRun) {
        let (head, edge, title) = (head(run.n, run.t), edge(&run.message), run.title());
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
        let line = format!("{head}{edge} {title}{lasted} ({size}): {text}");
        let tone = sender_tone(&run.message);
        let line = self.paint.line(HEAD_WIDTH, Some(tone), &line);
        self.output.line(line);
    }

    /// Describes a message and the exchange that it belongs to.
    fn message(
        &self,
        event: &RecordedEvent,
        message: &Message,
        exchange: Option<&Exchange>,
    ) -> String {
        let method = excerpt(message.method.as_deref().unwrap_or("?").as_bytes());
        let id = excerpt(message.id.as_deref().unwrap_or("no id").as_bytes());
        let mut line = edge(message);
        let mut other = String::new();
        match message.kind {
            Some(Kind::Request) => {
                line += &format!(" {method} [{id}]");
                let answer = exchange.and_then(|one| Some((one.answer?, one.duration()?)));
                if let Some((answer, took)) = answer {
                    other = format!(", answer {} after {}", answer.n, duration(took));
                } else if self.complete && message.is_received() {
                    other = ", no answer".to_owned();
                }
            }
            Some(Kind::Notification) => line += &format!(" {method}"),
            Some(kind) => {
                line += &format!(" {method} [{id}] {}", kind.name());
                if let Some(exchange) = exchange {
                    let took = duration(event.t.saturating_sub(exchange.requested_at));
                    line += &format!(" after {took}");
                    other = format!(", request {}", exchange.n);
                }
            }
            None => line += " no message",
        }
        line += &format!(" ({}{other})", size(message.body.len()));
        if let Some(of) = message.source {
            line += &format!(" from {of}");
        }
        if !message.rules.is_empty() {
            line += &format!(" by {}", excerpt(message.rules.join(", ").as_bytes()));
        }
        if !message.redacted.is_empty() {
            line += &format!(" ({} redacted)", message.redacted.len());
        }
        let text = message.body.bytes().and_then(|bytes| match message.kind {
            Some(_) => Some(summary(&parse_json(bytes)?)),
            None => Some(String::from_utf8_lossy(bytes).into_owned()),
        });
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            line += &format!(": {}", excerpt(text.as_bytes()));
        }
        line
    }
}

/// The number and time of an event, to the millisecond.
fn head(n: u64, t: u64) -> String {
    format!("{n:>5} {:>6}.{:03} ", t / 1_000_000, t / 1_000 % 1_000)
}

/// The side at which a message was recorded: `→` is received from it, `←` sent to it.
fn edge(message: &Message) -> String {
    let arrow = if message.is_received() { "→" } else { "←" };
    format!("{:<6} {arrow}", message.edge.name())
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
        } => {
            format!(
                "{events} events of {} are missing here: {reason}",
                size(*bytes)
            )
        }
        EventKind::Clock { jump } => format!("the wall clock jumped by {} µs", jump),
        EventKind::Mark(text) => format!("mark: {text}"),
        EventKind::Resume => "the recording continues".to_owned(),
        EventKind::End {
            rotated: true,
            reason,
            ..
        } => {
            format!("the recording continues in another file: {reason}")
        }
        EventKind::End { reason, .. } => format!("the recording ends: {reason}"),
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
