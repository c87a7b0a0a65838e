//! Prints a conversation as lines of text, or as JSON. `analysis::lines` has the lines.

use clap::Args;
use serde_json::value::RawValue;

use crate::cli::console::{Output, note};
use crate::cli::text::Tone;
use analysis::lines::{self, HEAD_WIDTH};
use analysis::text::timestamp;
use analysis::{ChunkFolder, ChunkRun};
use jsonrpc::{Kind, Side, printable};
use recording::{Entry, EventKind, Exchanges, Header, Message, Parsed, RecordedEvent};

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
    pub(super) output: Output,
    /// Of all events so far, and those that are known to follow.
    pub(super) exchanges: Exchanges,
    chunks: ChunkFolder,
}

impl Printer {
    /// `exchanges` has the answers recorded so far.
    pub(super) fn new(style: Style, complete: bool, exchanges: Exchanges) -> Self {
        Self {
            style,
            complete,
            output: Output::new(),
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
        let line = lines::header(header);
        let line = self.output.paint.line(line.chars().count(), None, &line);
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
        let line = lines::event(event, exchange.as_ref(), self.complete);
        let line = self.output.paint.line(HEAD_WIDTH, tone(&event.kind), &line);
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
        let line = lines::run(run, self.style.bodies);
        let tone = sender_tone(&run.message);
        let line = self.output.paint.line(HEAD_WIDTH, Some(tone), &line);
        self.output.line(line);
    }
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
