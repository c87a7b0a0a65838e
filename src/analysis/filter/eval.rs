//! Evaluates a filter on an event.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::field::Field;
use super::parse::{Expr, FilterError, Glob, parse};
use jsonrpc::{Kind, Side};
use recording::{EventKind, Message, Payload, RecordedEvent, parse_json};

/// A parsed filter.
#[derive(Clone, Debug)]
pub struct Filter {
    text: String,
    expr: Expr,
}

/// Properties that are not part of the event itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct DerivedFields<'a> {
    /// The time from the request to the answer, in microseconds.
    pub duration: Option<u64>,
    /// The ids of the lint findings about it.
    pub lint: &'a [&'a str],
}

/// An event under evaluation; its body is parsed on demand.
struct Subject<'a> {
    event: &'a RecordedEvent,
    message: Option<&'a Message>,
    derived: DerivedFields<'a>,
    tree: std::cell::OnceCell<Option<Value>>,
}

impl Filter {
    /// Whether the filter selects the event.
    #[must_use]
    pub fn matches(&self, event: &RecordedEvent, derived: DerivedFields<'_>) -> bool {
        let message = event.message();
        let subject = Subject {
            event,
            message,
            derived,
            tree: std::cell::OnceCell::new(),
        };
        subject.satisfies(&self.expr)
    }

    /// Whether the filter uses the field. A filter that uses durations or lint needs a reader of
    /// the whole recording.
    #[must_use]
    pub fn uses(&self, field: Field) -> bool {
        self.expr.uses(field)
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        Ok(Self {
            text: text.to_owned(),
            expr: parse(text)?,
        })
    }
}

impl fmt::Display for Filter {
    /// The filter as it was written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Subject<'_> {
    fn satisfies(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Every(parts) => parts.iter().all(|part| self.satisfies(part)),
            Expr::Any(parts) => parts.iter().any(|part| self.satisfies(part)),
            Expr::Not(inner) => !self.satisfies(inner),
            Expr::Text(field, glob) => self.has_text(*field, glob),
            Expr::Word(field, word) => self.has_word(*field, word),
            Expr::Number(field, operator, bound) => {
                let value = self.number(*field);
                value.is_some_and(|value| operator.holds(value, *bound))
            }
        }
    }

    fn has_text(&self, field: Field, glob: &Glob) -> bool {
        let message = self.message;
        let text = match field {
            Field::Method => message.and_then(|message| message.method.as_deref()),
            Field::Session => message.and_then(|message| message.session.as_deref()),
            Field::Id => message.and_then(|message| Some(message.id.as_deref()?.trim_matches('"'))),
            Field::Update => self.update("/sessionUpdate"),
            Field::Tool => {
                let tool = self.update("/toolCallId");
                tool.or_else(|| self.at("/params/toolCall/toolCallId"))
            }
            Field::Note => match &self.event.kind {
                EventKind::Note { name, .. } => Some(name.as_str()),
                _ => None,
            },
            Field::Rule => {
                let mut rules = message.iter().flat_map(|message| &message.rules);
                return rules.any(|rule| glob.matches(rule, true));
            }
            Field::Lint => return self.derived.lint.iter().any(|id| glob.matches(id, true)),
            _ => return field == Field::Text && self.contains_text(glob),
        };
        // Ids are usually abbreviated.
        let whole = !matches!(field, Field::Session | Field::Tool);
        text.is_some_and(|text| glob.matches(text, whole))
    }

    fn has_word(&self, field: Field, word: &str) -> bool {
        let is = |side: Option<Side>| side.is_some_and(|side| side.name() == word);
        match field {
            Field::Kind => self.is_kind(word),
            Field::Dir => match self.message {
                Some(message) => (message.to == Side::Client) == (word == "<"),
                None => false,
            },
            Field::From => is(self.message.map(|message| message.to.other())),
            Field::At => match &self.event.kind {
                EventKind::Link { side, .. } => is(Some(*side)),
                _ => is(self.message.map(|message| message.edge)),
            },
            _ => false,
        }
    }

    fn is_kind(&self, word: &str) -> bool {
        let name = match &self.event.kind {
            EventKind::Message(message) => match message.kind {
                None => "noise",
                Some(kind) => {
                    let is_answer = word == "answer" && kind.is_answer();
                    return word == "message" || is_answer || kind.name() == word;
                }
            },
            EventKind::Passed(_) => "passed",
            EventKind::Stderr(_) => "stderr",
            EventKind::Process { .. } => "process",
            EventKind::Link { .. } => "link",
            EventKind::Note { .. } => "note",
            EventKind::Gap { .. } => "gap",
            EventKind::Clock { .. } => "clock",
            EventKind::Mark(_) => "mark",
            EventKind::Resume => "resume",
            EventKind::End { .. } => "end",
            EventKind::Other { .. } => "other",
        };
        name == word
    }

    fn number(&self, field: Field) -> Option<f64> {
        let value = match field {
            Field::N => self.event.n,
            Field::Time => self.event.t,
            Field::Dur => self.derived.duration?,
            Field::Size => match &self.event.kind {
                EventKind::Stderr(body) => body.len(),
                _ => self.message?.body.len(),
            },
            _ => return None,
        };
        Some(value as f64)
    }

    fn tree(&self) -> Option<&Value> {
        let make = || parse_json(self.message?.body.bytes()?);
        self.tree.get_or_init(make).as_ref()
    }

    fn at(&self, pointer: &str) -> Option<&str> {
        self.tree()?.pointer(pointer)?.as_str()
    }

    /// A member of a `session/update`.
    fn update(&self, pointer: &str) -> Option<&str> {
        let message = self.message?;
        let is_update = message.method.as_deref() == Some("session/update")
            && message.kind == Some(Kind::Notification);
        let update = is_update.then(|| self.tree()).flatten()?;
        update.pointer("/params/update")?.pointer(pointer)?.as_str()
    }

    fn contains_text(&self, glob: &Glob) -> bool {
        let bytes_contain = |body: &Payload| {
            let bytes = body.bytes();
            bytes.is_some_and(|bytes| glob.matches_within(&String::from_utf8_lossy(bytes)))
        };
        match &self.event.kind {
            EventKind::Message(message) => match self.tree() {
                Some(tree) => tree_contains(tree, glob),
                None => bytes_contain(&message.body),
            },
            EventKind::Stderr(body) => bytes_contain(body),
            kind => kind.text().is_some_and(|text| glob.matches_within(text)),
        }
    }
}

fn tree_contains(tree: &Value, glob: &Glob) -> bool {
    match tree {
        Value::String(text) => glob.matches_within(text),
        Value::Array(items) => items.iter().any(|item| tree_contains(item, glob)),
        Value::Object(members) => members
            .iter()
            .any(|(name, member)| glob.matches_within(name) || tree_contains(member, glob)),
        Value::Number(number) => glob.matches_within(&number.to_string()),
        Value::Bool(value) => glob.matches_within(if *value { "true" } else { "false" }),
        Value::Null => false,
    }
}
