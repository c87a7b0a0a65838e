//! Evaluates a filter on an event.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::field::Field;
use super::glob::Glob;
use super::parse::{Fault, parse};
use super::scan::Sign;
use crate::jsonrpc::Side;
use crate::recording::{Body, Event, Message, MessageKind, What, tree};

/// A parsed filter.
#[derive(Clone, Debug)]
pub struct Filter {
    text: String,
    expr: Expr,
}

/// Properties that are not part of the event itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// The time from the request to the answer, in microseconds.
    pub took: Option<u64>,
    /// The ids of the lint findings about it.
    pub lint: &'a [&'a str],
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    /// The empty filter.
    All,
    Every(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Term(Term),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term {
    Text(Field, Glob),
    Word(Field, &'static str),
    Number(Field, Bound),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    pub(super) sign: Sign,
    pub(super) value: f64,
}

/// An event under evaluation; its body is parsed on demand.
struct Subject<'a> {
    event: &'a Event,
    message: Option<&'a Message>,
    facts: Facts<'a>,
    tree: std::cell::OnceCell<Option<Value>>,
}

impl Filter {
    /// Whether the filter selects the event.
    #[must_use]
    pub fn matches(&self, event: &Event, facts: Facts<'_>) -> bool {
        let message = match &event.what {
            What::Message(message) => Some(&**message),
            _ => None,
        };
        let subject = Subject {
            event,
            message,
            facts,
            tree: std::cell::OnceCell::new(),
        };
        subject.satisfies(&self.expr)
    }

    /// Whether the filter uses the field. A filter that uses durations or lint needs a reader of
    /// the
    /// whole recording.
    #[must_use]
    pub fn asks(&self, field: Field) -> bool {
        self.expr.asks(field)
    }
}

impl FromStr for Filter {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
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

impl Expr {
    fn asks(&self, field: Field) -> bool {
        match self {
            Self::All => false,
            Self::Every(parts) | Self::Any(parts) => parts.iter().any(|part| part.asks(field)),
            Self::Not(inner) => inner.asks(field),
            Self::Term(Term::Text(own, _) | Term::Word(own, _) | Term::Number(own, _)) => {
                *own == field
            }
        }
    }
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self.sign {
            Sign::Is => value == self.value,
            Sign::Less => value < self.value,
            Sign::AtMost => value <= self.value,
            Sign::More => value > self.value,
            Sign::AtLeast => value >= self.value,
        }
    }
}

impl Subject<'_> {
    fn satisfies(&self, expr: &Expr) -> bool {
        match expr {
            Expr::All => true,
            Expr::Every(parts) => parts.iter().all(|part| self.satisfies(part)),
            Expr::Any(parts) => parts.iter().any(|part| self.satisfies(part)),
            Expr::Not(inner) => !self.satisfies(inner),
            Expr::Term(Term::Text(field, glob)) => self.has_text(*field, glob),
            Expr::Term(Term::Word(field, word)) => self.has_word(*field, word),
            Expr::Term(Term::Number(field, bound)) => {
                self.number(*field).is_some_and(|value| bound.holds(value))
            }
        }
    }

    fn has_text(&self, field: Field, glob: &Glob) -> bool {
        let message = self.message;
        match field {
            Field::Method => message
                .and_then(|m| m.method.as_deref())
                .is_some_and(|t| glob.is(t)),
            Field::Session => message
                .and_then(|m| m.session.as_deref())
                .is_some_and(|t| glob.starts(t)),
            Field::Id => {
                let id = message.and_then(|m| m.id.as_deref());
                id.is_some_and(|id| glob.is(id.trim_matches('"')))
            }
            Field::Rule => message.is_some_and(|m| m.rules.iter().any(|rule| glob.is(rule))),
            Field::Note => matches!(&self.event.what, What::Note { name, .. } if glob.is(name)),
            Field::Lint => self.facts.lint.iter().any(|id| glob.is(id)),
            Field::Update => self.update("/sessionUpdate").is_some_and(|t| glob.is(t)),
            Field::Tool => self
                .update("/toolCallId")
                .or_else(|| self.at("/params/toolCall/toolCallId"))
                .is_some_and(|t| glob.starts(t)),
            Field::Text => self.says(glob),
            _ => false,
        }
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
            Field::At => match &self.event.what {
                What::Link { side, .. } => is(Some(*side)),
                _ => is(self.message.map(|message| message.hop)),
            },
            _ => false,
        }
    }

    fn is_kind(&self, word: &str) -> bool {
        let own = match &self.event.what {
            What::Message(message) => match message.kind {
                None => "noise",
                Some(kind) => {
                    let is_answer = word == "answer" && kind.is_answer();
                    return word == "message" || is_answer || kind.name() == word;
                }
            },
            What::Passed(_) => "passed",
            What::Stderr(_) => "stderr",
            What::Process { .. } => "process",
            What::Link { .. } => "link",
            What::Note { .. } => "note",
            What::Gap { .. } => "gap",
            What::Clock { .. } => "clock",
            What::Mark(_) => "mark",
            What::Resume => "resume",
            What::End { .. } => "end",
            What::Other { .. } => "other",
        };
        own == word
    }

    fn number(&self, field: Field) -> Option<f64> {
        let value = match field {
            Field::N => self.event.n,
            Field::Time => self.event.t,
            Field::Dur => self.facts.took?,
            Field::Size => match &self.event.what {
                What::Stderr(body) => body.len(),
                _ => self.message?.body.len(),
            },
            _ => return None,
        };
        Some(value as f64)
    }

    fn tree(&self) -> Option<&Value> {
        let make = || tree(self.message?.body.bytes()?);
        self.tree.get_or_init(make).as_ref()
    }

    fn at(&self, pointer: &str) -> Option<&str> {
        self.tree()?.pointer(pointer)?.as_str()
    }

    /// A member of a `session/update`.
    fn update(&self, pointer: &str) -> Option<&str> {
        let message = self.message?;
        let is_update = message.method.as_deref() == Some("session/update")
            && message.kind == Some(MessageKind::Notification);
        let update = is_update.then(|| self.tree()).flatten()?;
        update.pointer("/params/update")?.pointer(pointer)?.as_str()
    }

    fn says(&self, glob: &Glob) -> bool {
        let loose = |body: &Body| {
            let bytes = body.bytes();
            bytes.is_some_and(|bytes| glob.within(&String::from_utf8_lossy(bytes)))
        };
        match &self.event.what {
            What::Message(message) => match self.tree() {
                Some(tree) => tree_says(tree, glob),
                None => loose(&message.body),
            },
            What::Stderr(body) => loose(body),
            What::Process { what: text, .. } | What::Link { what: text, .. } => glob.within(text),
            What::Note { text, .. } | What::Mark(text) => glob.within(text),
            What::Gap { why, .. } | What::End { why, .. } => glob.within(why),
            _ => false,
        }
    }
}

fn tree_says(tree: &Value, glob: &Glob) -> bool {
    match tree {
        Value::String(text) => glob.within(text),
        Value::Array(items) => items.iter().any(|item| tree_says(item, glob)),
        Value::Object(members) => members
            .iter()
            .any(|(name, member)| glob.within(name) || tree_says(member, glob)),
        Value::Number(number) => glob.within(&number.to_string()),
        Value::Bool(value) => glob.within(if *value { "true" } else { "false" }),
        Value::Null => false,
    }
}
