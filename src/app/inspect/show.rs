//! `acp-relay inspect show`: a conversation, line by line.
//!
//! All text of others is shown without control characters: a recording may hold anything.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::value::RawValue;

use super::command::recording;
use super::fold::Run;
use super::units::{excerpt, place, size, took};
use crate::app::console::{Output, remark};
use crate::app::exit;
use crate::recording::write::calendar;
use crate::recording::{Conversation, Entry, Event, Found, Header, Message, MessageKind, What};
use crate::wire::{Side, printable};

/// What `inspect show` is asked for.
#[derive(Debug, Args)]
pub(super) struct Show {
    /// The recording; of one in several segments, any of them
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Every event by itself, also those that only say that a frame was passed on
    #[arg(long)]
    all: bool,
    /// The bodies of messages in full
    #[arg(long)]
    bodies: bool,
    /// The lines of the recording, each answer with the time it took
    #[arg(long)]
    json: bool,
}

/// What is being shown.
struct Page<'a> {
    args: &'a Show,
    output: Output,
    conversation: Conversation,
    run: Option<Run>,
}

/// Runs the subcommand.
pub(super) fn run(args: &Show) -> ExitCode {
    let recording = match recording(&args.file) {
        Ok(recording) => recording,
        Err(code) => return code,
    };
    let mut page = Page {
        args,
        output: Output::new(),
        conversation: Conversation::default(),
        run: None,
    };
    let mut code = exit::SUCCESS;
    for entry in recording.entries() {
        let fault = match entry {
            Ok((_, entry)) => page.entry(entry),
            Err(error) => Some(error.to_string()),
        };
        if let Some(fault) = fault {
            code = exit::DEVIATES;
            page.end_run();
            page.output.flush();
            remark(&format!("acp-relay: {}", printable(fault.as_bytes())));
        }
        if !page.output.is_open() {
            break;
        }
    }
    page.end_run();
    page.output.done(code)
}

impl Page<'_> {
    /// Shows a line; what is wrong with it, if it cannot be shown.
    fn entry(&mut self, entry: Entry) -> Option<String> {
        match entry.found {
            Found::Header(header) if self.args.json => {
                self.output.line(entry.line.trim_ascii_end());
                let _ = header;
            }
            Found::Header(header) => self.header(&header),
            Found::Event(event) if self.args.json => self.raw(&event, entry.line.trim_ascii_end()),
            Found::Event(event) => self.event(&event),
            Found::Broken(fault) => return Some(format!("byte {}: {fault}", entry.at)),
        }
        None
    }

    fn header(&mut self, header: &Header) {
        if header.segment > 0 && !self.args.all {
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

    fn event(&mut self, event: &Event) {
        if let Some(run) = Run::begin(event).filter(|_| !self.args.all) {
            let left = match &mut self.run {
                Some(current) => current.take(run),
                None => Some(run),
            };
            if left.is_some() {
                self.end_run();
                self.run = left;
            }
            return;
        }
        // That chunks were passed on does not part them.
        if matches!(event.what, What::Passed(_)) && !self.args.all {
            return;
        }
        self.end_run();
        self.conversation.see(event);
        let text = match &event.what {
            What::Message(message) => self.message(event, message),
            what => said(what),
        };
        let line = format!("{:>6} {:>12}  {text}", event.n, place(event.t));
        self.output.line(line.as_bytes());
        if let What::Message(message) = &event.what
            && self.args.bodies
            && let Some(bytes) = message.body.bytes()
        {
            let body = format!("{:>21}{}", "", printable(bytes));
            self.output.line(body.as_bytes());
        }
    }

    fn end_run(&mut self) {
        let Some(run) = self.run.take() else {
            return;
        };
        let (n, at) = (run.n, place(run.t));
        let edge = edge(&run.message);
        let (kind, count) = (printable(run.kind.as_bytes()), run.count);
        let lasted = took(run.until - run.t);
        let size = size(run.text.len() as u64);
        let text = if self.args.bodies {
            printable(run.text.as_bytes())
        } else {
            excerpt(run.text.as_bytes())
        };
        let line = format!("{n:>6} {at:>12}  {edge} {kind} ×{count} in {lasted}, {size}: {text}");
        self.output.line(line.as_bytes());
    }

    fn message(&self, event: &Event, message: &Message) -> String {
        let method = message.method.as_deref().unwrap_or("?");
        let method = excerpt(method.as_bytes());
        let id = message.id.as_deref().unwrap_or("no id");
        let id = excerpt(id.as_bytes());
        let size = size(message.body.len());
        let mut line = edge(message);
        match message.kind {
            Some(MessageKind::Request) => line += &format!(" {method} [{id}] {size}"),
            Some(MessageKind::Notification) => line += &format!(" {method} {size}"),
            Some(kind) => {
                let word = if kind == MessageKind::Error {
                    "error"
                } else {
                    "result"
                };
                line += &format!(" {method} [{id}] {word} {size}");
                let asked = message.answers.and_then(|n| self.conversation.exchange(n));
                if let Some(asked) = asked {
                    let took = took(event.t.saturating_sub(asked.asked));
                    line += &format!(" after {took} (request {})", asked.n);
                }
            }
            None => {
                let body = message.body.bytes().map(|bytes| excerpt(bytes));
                line += &format!(" no message, {size}: {}", body.unwrap_or_default());
            }
        }
        if let Some(of) = message.of {
            line += &format!(" from {of}");
        }
        if !message.rules.is_empty() {
            line += &format!(" by {}", excerpt(message.rules.join(", ").as_bytes()));
        }
        if !message.redacted.is_empty() {
            line += &format!(" ({} redacted)", message.redacted.len());
        }
        line
    }
}

/// Which edge a message crossed, and in which direction.
fn edge(message: &Message) -> String {
    let (hop, arrow) = match (message.hop, message.to) {
        (Side::Client, Side::Agent) => ("client", "→ relay"),
        (Side::Client, Side::Client) => ("client", "← relay"),
        (Side::Agent, Side::Client) => ("agent ", "→ relay"),
        (Side::Agent, Side::Agent) => ("agent ", "← relay"),
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
