//! The events of a recording as lines of text.
//!
//! A recording may hold any bytes, so control characters in its texts are escaped.

use crate::chunk_run::ChunkRun;
use crate::text::{duration, excerpt, size, summary};
use jsonrpc::{Kind, printable};
use recording::{EventKind, Exchange, Header, Message, RecordedEvent, parse_json, rfc3339};

/// Characters of a line before the description.
pub const HEAD_WIDTH: usize = 17;

/// The line of a header.
pub fn header(header: &Header) -> String {
    let escape = |text: &str| printable(text.as_bytes());
    format!(
        "recording {} of {}: client {} ({}), agent {} ({}); secrets: {}",
        escape(&header.id),
        rfc3339(header.began),
        escape(&header.client.name),
        escape(&header.client.dialect),
        escape(&header.agent.name),
        escape(&header.agent.dialect),
        escape(&header.redaction.mode),
    )
}

/// The line of an event and the exchange that it belongs to; `complete`: nothing will be added to the
/// recording, and a request without an answer stays unanswered.
pub fn event(event: &RecordedEvent, exchange: Option<&Exchange>, complete: bool) -> String {
    let what = match &event.kind {
        EventKind::Message(message) => message_text(event, message, exchange, complete),
        kind => describe(kind),
    };
    head(event.n, event.t) + &what
}

/// The line of a run of chunks, with all of its text or the beginning.
pub fn run(run: &ChunkRun, whole: bool) -> String {
    let (head, edge, title) = (head(run.n, run.t), edge(&run.message), run.title());
    let title = printable(title.as_bytes());
    let lasted = match run.until - run.t {
        0 => String::new(),
        lasted => format!(" in {}", duration(lasted)),
    };
    let size = size(run.text.len() as u64);
    let text = if whole {
        printable(run.text.as_bytes())
    } else {
        excerpt(run.text.as_bytes())
    };
    format!("{head}{edge} {title}{lasted} ({size}): {text}")
}

/// Describes a message and the exchange that it belongs to.
fn message_text(
    event: &RecordedEvent,
    message: &Message,
    exchange: Option<&Exchange>,
    complete: bool,
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
            } else if complete && message.is_received() {
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
