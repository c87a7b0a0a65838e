//! `acp-relay inspect stats`: statistics of conversations. `stats_report` prints them.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::figures;
use super::paint::Paint;
use super::round::Round;
use super::select::{At, Selection};
use crate::cli::console::Output;
use crate::cli::exit;
use crate::cli::several::Sources;
use crate::jsonrpc::Side;
use crate::recording::{Conversation, Event, Message, MessageKind, View, What, tree};

/// The arguments of `inspect stats`.
#[derive(Debug, Args)]
pub(super) struct Stats {
    #[command(flatten)]
    sources: Sources,
    /// Which messages to count
    #[arg(long, value_enum, default_value = "client")]
    at: At,
    /// One JSON object a file: file, lasted, client, agent (frames, bytes), turns, first_update, permission (count,
    /// p50, p99, max; in seconds), stop_reasons, methods (a list: from, method, requests,
    /// notifications, errors, unanswered, took, bytes), updates, rules, notes, links, noise,
    /// stderr_bytes, missing_events
    #[arg(long)]
    json: bool,
}

/// Statistics of a conversation.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// By the calling side, and the method.
    pub(super) methods: BTreeMap<(&'static str, String), Method>,
    /// Kinds of `session/update`.
    pub(super) updates: BTreeMap<String, u64>,
    /// Stop reasons of turns.
    pub(super) stops: BTreeMap<String, u64>,
    pub(super) turns: Times,
    pub(super) first_update: Times,
    pub(super) permission: Times,
    /// Frames and bytes sent by the client and by the agent.
    pub(super) said: [(u64, u64); 2],
    pub(super) noise: u64,
    pub(super) stderr: u64,
    pub(super) rules: BTreeMap<String, u64>,
    pub(super) notes: BTreeMap<String, u64>,
    pub(super) links: BTreeMap<String, u64>,
    pub(super) missing: u64,
    pub(super) lasted: u64,
    view: View,
    conversation: Conversation,
    /// Open prompts without an update so far, by session: the times of their requests.
    waiting: BTreeMap<String, u64>,
}

/// Statistics of a method.
#[derive(Debug, Default)]
pub(super) struct Method {
    pub(super) requests: u64,
    pub(super) notifications: u64,
    pub(super) errors: u64,
    /// From the request to the answer.
    pub(super) times: Times,
    /// Of requests, notifications and answers.
    pub(super) bytes: u64,
}

/// Durations in microseconds.
#[derive(Debug, Default)]
pub(super) struct Times(Vec<u64>);

/// Runs the subcommand.
pub(super) fn run(args: &Stats) -> ExitCode {
    let (files, filter) = match args.sources.read() {
        Ok(read) => read,
        Err(code) => return code,
    };
    let mut output = Output::new();
    let paint = Paint::of(&output);
    let mut round = Round::of(files, filter);
    while let Some(selection) = round.next(&mut output) {
        let mut figures = match count(&selection, args.at) {
            Ok(figures) => figures,
            Err(code) => {
                round.fail(code);
                continue;
            }
        };
        if args.json {
            let mut value = figures::json(&mut figures);
            value["file"] = selection.file.display().to_string().into();
            output.line(value.to_string().as_bytes());
        } else {
            round.head(&selection, paint, &mut output);
            output.bytes(figures::text(&mut figures, paint).as_bytes());
        }
    }
    round.done(output, exit::SUCCESS)
}

fn count(selection: &Selection, at: At) -> Result<Figures, ExitCode> {
    let chosen = selection.open(Some(at))?;
    let mut figures = Figures {
        view: at.view(),
        ..Figures::default()
    };
    let see = |event: &Event, in_view| {
        figures.look(event);
        if in_view {
            figures.see(event);
        }
    };
    chosen.each_told(|_| {}, see)?;
    Ok(figures)
}

impl Times {
    /// The nearest-rank percentile.
    pub(super) fn percentile(&mut self, percent: usize) -> Option<u64> {
        self.0.sort_unstable();
        let rank = (self.0.len() * percent).div_ceil(100);
        self.0.get(rank.checked_sub(1)?).copied()
    }

    pub(super) const fn count(&self) -> usize {
        self.0.len()
    }
}

impl Figures {
    /// Counts what does not depend on the view: exchanges and applied rules. They may be recorded
    /// with messages that the relay sent, which are in no view of both sides.
    fn look(&mut self, event: &Event) {
        self.conversation.see(event);
        match &event.what {
            What::Message(message) => {
                self.noise += u64::from(message.is_heard() && message.kind.is_none());
                for rule in &message.rules {
                    *self.rules.entry(rule.clone()).or_default() += 1;
                }
            }
            // A translation after which nothing of the message was left.
            What::Note { name, text, .. } if name == "translated" => {
                *self.rules.entry(text.clone()).or_default() += 1;
            }
            _ => {}
        }
    }

    fn see(&mut self, event: &Event) {
        self.lasted = self.lasted.max(event.t);
        let count = |map: &mut BTreeMap<String, u64>, name: &str| {
            *map.entry(name.to_owned()).or_default() += 1;
        };
        match &event.what {
            What::Message(message) => self.message(event, message),
            What::Stderr(body) => self.stderr += body.len(),
            What::Note { name, .. } => count(&mut self.notes, name),
            What::Link { side, event, .. } => count(&mut self.links, &format!("{side} {event}")),
            What::Process { event, .. } => count(&mut self.links, &format!("process {event}")),
            What::Gap { events, .. } => self.missing += events,
            _ => {}
        }
    }

    fn message(&mut self, event: &Event, message: &Message) {
        let from = message.to.other();
        let (frames, bytes) = &mut self.said[from as usize];
        *frames += 1;
        *bytes += message.body.len();
        // Of an answer that is recorded as received and as sent, one event is in the view. It
        // counts for the method of the request in that view.
        let is_answer = message.kind.is_some_and(MessageKind::is_answer);
        let asked = self.conversation.exchange_in(self.view, event.n);
        let asked = asked.filter(|_| is_answer);
        let took = asked.map(|asked| event.t.saturating_sub(asked.asked));
        let about = asked.map(|asked| (asked.method.clone(), asked.session.clone()));
        let (of_asked, session) = about.unwrap_or_default();
        let Some(kind) = message.kind else {
            return;
        };
        let caller = if kind.is_answer() { message.to } else { from };
        let name = Some(of_asked).filter(|name| !name.is_empty());
        let name = name.or_else(|| message.method.clone());
        let name = name.unwrap_or_else(|| "?".to_owned());
        let method = self
            .methods
            .entry((caller.name(), name.clone()))
            .or_default();
        method.bytes += message.body.len();
        match kind {
            MessageKind::Request => method.requests += 1,
            MessageKind::Notification => method.notifications += 1,
            MessageKind::Result => {}
            MessageKind::Error => method.errors += 1,
        }
        method.times.0.extend(took);
        let session = session.or_else(|| message.session.clone());
        let session = session.unwrap_or_default();
        match (caller, name.as_str()) {
            (Side::Client, "session/prompt") => self.prompt(kind, event.t, session, took, message),
            (Side::Agent, "session/update") => self.update(event.t, &session, message),
            (Side::Agent, "session/request_permission") => self.permission.0.extend(took),
            _ => {}
        }
    }

    fn prompt(
        &mut self,
        kind: MessageKind,
        t: u64,
        session: String,
        took: Option<u64>,
        message: &Message,
    ) {
        if kind == MessageKind::Request {
            self.waiting.insert(session, t);
            return;
        }
        self.waiting.remove(&session);
        self.turns.0.extend(took);
        let body = message.body.bytes().and_then(|bytes| tree(bytes));
        let reason = match kind {
            MessageKind::Error => Some("error"),
            _ => body
                .as_ref()
                .and_then(|b| b.pointer("/result/stopReason")?.as_str()),
        };
        *self
            .stops
            .entry(reason.unwrap_or("?").to_owned())
            .or_default() += 1;
    }

    fn update(&mut self, t: u64, session: &str, message: &Message) {
        let body = message.body.bytes().and_then(|bytes| tree(bytes));
        let kind = body.as_ref();
        let kind = kind.and_then(|b| b.pointer("/params/update/sessionUpdate"));
        let kind = kind.and_then(Value::as_str).unwrap_or("?");
        *self.updates.entry(kind.to_owned()).or_default() += 1;
        let speaks = kind.ends_with("_chunk") || kind.starts_with("tool_call") || kind == "plan";
        if speaks && let Some(asked) = self.waiting.remove(session) {
            self.first_update.0.push(t.saturating_sub(asked));
        }
    }
}
