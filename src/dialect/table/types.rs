//! The words of the table language, as types.
//!
//! Not here: how they are read from JSON (see `read`).

use std::sync::Arc;

use super::Action;
use crate::jsonrpc::Side;

use super::super::convert::As;
use super::super::pointer::Place;
use super::loss::Loss;

/// The two ways of translating.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// From the dialect to canonical.
    Read,
    /// From canonical to the dialect.
    Write,
}

/// A JSON value of a table, without white space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal(pub Box<[u8]>);

/// One file.
#[derive(Clone, Debug)]
pub struct Table {
    /// The dialect's name.
    pub name: String,
    /// Other names that mean the same table.
    pub aliases: Vec<String>,
    /// One line for a person.
    pub title: String,
    /// When and where the dialect was spoken.
    pub dates: Option<String>,
    /// The side that speaks it, when only one does.
    pub speaker: Option<Side>,
    /// Tables this one builds on, nearest first.
    pub extends: Vec<String>,
    /// Tables that what its peers say is read with, too; nothing is written with them.
    pub reads: Vec<String>,
    /// How a peer that speaks it is recognised.
    pub detect: Vec<Clue>,
    /// The framing its peers use.
    pub framing: Option<String>,
    /// Where its writers put the member `jsonrpc`.
    pub jsonrpc: Jsonrpc,
    /// Whether its peers understand only ids that are 32-bit integers.
    pub int_ids: bool,
    /// Whether its peers want `params` in every request.
    pub params: bool,
    /// What is remembered.
    pub memory: Vec<Memory>,
    /// Named sets of cases.
    pub shapes: Vec<Shape>,
    /// The rules.
    pub rules: Vec<Rule>,
}

/// Where a dialect's writers put `jsonrpc`; readers never need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Jsonrpc {
    /// On every message.
    Always,
    /// Only on requests of these methods and their answers.
    Only(Vec<String>),
}

/// One clue that a peer speaks the dialect; all its parts must hold.
#[derive(Clone, Debug)]
pub struct Clue {
    /// The message it looks at.
    pub on: Selector,
    /// What must be there, relative to the message's params or result.
    pub when: Guard,
    /// What must have been in the sender's result of `initialize`, where that is another message.
    pub stated: Guard,
    /// A bound on the version in `agentInfo` or `clientInfo`, as `<1.0` or `>=0.4`.
    pub version: Option<String>,
}

/// A message of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Requests and notifications.
    Method(Names),
    /// Results of a method.
    Answers(Names),
    /// Errors of a method, `*` for all.
    ErrorsOf(Names),
}

/// A method's name in the two columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// In the dialect; `None` when the dialect has no such message.
    pub dialect: Option<String>,
    /// In canonical.
    pub canonical: Option<String>,
}

/// Which messages a rule is for.
#[derive(Clone, Debug)]
pub struct On {
    /// The side that sends.
    pub from: Side,
    /// Which of its messages.
    pub what: Selector,
    /// What the message is in the two columns, when that differs.
    pub kinds: Option<Kinds>,
}

/// A request in one column that is a notification in the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinds {
    /// The dialect asks where canonical only tells.
    DialectAsks,
}

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name, unique in the table.
    pub id: Arc<str>,
    /// Where it stands in the file.
    pub at: String,
    /// Why it is there, with its source.
    pub why: String,
    /// The messages it is for.
    pub on: On,
    /// What is lost by it, if anything is.
    pub lossy: Option<String>,
    /// The same for canonical messages on their trip to the dialect and back, as data.
    pub loses: Vec<Loss>,
    /// What holds for all its cases.
    pub base: Case,
    /// The cases, tried in order; empty when the base is all.
    pub cases: Vec<Case>,
    /// The array that becomes one message per element.
    pub split: Option<(Way, Place)>,
    /// What becomes of a message that cannot be translated.
    pub failure: Option<Failure>,
    /// Messages in both columns.
    pub examples: Vec<Example>,
}

/// What becomes of a message that a rule cannot translate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It goes on as it is, with a note.
    Pass,
    /// It is answered with an error.
    Refuse,
}

/// A guard with what is done when it holds.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// Its guards.
    pub dialect: Guard,
    /// Its guards on the canonical side.
    pub canonical: Guard,
    /// The only way it works, if not both.
    pub only: Option<Way>,
    /// What it loses.
    pub lossy: Option<String>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// What becomes of members that no row names.
    pub rest: Rest,
    /// Further messages.
    pub emit: Vec<Emit>,
    /// The bridge answers.
    pub answer: Option<Answer>,
    /// A result that becomes an error.
    pub fail: Option<Literal>,
    /// The sender is answered with this error, and nothing is forwarded.
    pub refuse: Option<Literal>,
    /// The message, or the element, is left out, for this reason.
    pub drop: Option<String>,
    /// Named actions.
    pub actions: Vec<Action>,
}

/// Expectations that must all hold.
pub type Guard = Vec<(Place, Expect)>;

/// What is expected at a place.
#[derive(Clone, Debug)]
pub enum Expect {
    /// This value; written when the guard builds.
    Const(Literal),
    /// A value of one of these types.
    Is(Vec<super::super::text::Type>),
    /// One of these values.
    In(Vec<Literal>),
    /// None of these values, or nothing.
    NotIn(Vec<Literal>),
    /// Nothing (`true`), or something (`false`).
    Absent(bool),
    /// A string that matches.
    Matches(Box<regex_lite::Regex>),
}

/// One value in two columns.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its place in the dialect.
    pub dialect: Option<Place>,
    /// Its place in canonical.
    pub canonical: Option<Place>,
    /// The only way the row works, if not both.
    pub only: Option<Way>,
    /// What is done to the value.
    pub convert: Vec<Conversion>,
    /// What is written when there is nothing.
    pub fill: Option<Fill>,
    /// The side that is filled.
    pub into: Way,
    /// Whether the value also stays at its old place.
    pub copy: bool,
    /// Why the value is left out.
    pub drop: Option<String>,
    /// Where the original of a value is parked that would not come back.
    pub parking: Option<Box<[Box<str>]>>,
}

/// What is done to a value, read from left to right.
#[derive(Clone, Debug)]
pub enum Conversion {
    /// A table of values.
    Values {
        /// Pairs for both ways.
        both: Vec<(Literal, Literal)>,
        /// Further pairs for reading only.
        read: Vec<(Literal, Literal)>,
        /// Further pairs for writing only.
        write: Vec<(Literal, Literal)>,
        /// What every other value is read as.
        other: Option<Literal>,
        /// Whether a value that would not come back is parked.
        park: bool,
    },
    /// Inside every element.
    Each(Each),
    /// Inside the object.
    In(Vec<Row>),
    /// One of the named shapes.
    Shape(String),
    /// By name.
    As(As),
}

/// What is done inside every element of an array.
#[derive(Clone, Debug)]
pub enum Each {
    /// These rows.
    Rows(Vec<Row>),
    /// This shape.
    Shape(String),
}

/// What is written when there is nothing.
#[derive(Clone, Debug)]
pub enum Fill {
    /// This value, unless there is one.
    Default(Literal),
    /// Always this value.
    Const(Literal),
    /// A remembered value.
    Recall(Recall),
    /// A value made from another one of the same column.
    Derive {
        /// Where the other value is.
        from: Place,
        /// How it is made.
        by: As,
    },
}

/// A remembered value.
#[derive(Clone, Debug)]
pub struct Recall {
    /// The slot.
    pub slot: String,
    /// Where the key is, for slots with keys.
    pub by: Option<Place>,
    /// What is written when nothing is remembered.
    pub or: Option<Literal>,
}

/// What becomes of members that no row and no guard names.
#[derive(Clone, Debug, Default)]
pub enum Rest {
    /// They stay where they are.
    #[default]
    Keep,
    /// They go from the one object to the other.
    Move {
        /// The object in the dialect.
        dialect: Place,
        /// The object in canonical.
        canonical: Place,
    },
    /// They are left out, for this reason.
    Drop(String),
}

/// A further message beside the one at hand.
#[derive(Clone, Debug)]
pub struct Emit {
    /// The way it is for.
    pub way: Way,
    /// Whether it comes after the message.
    pub after: bool,
    /// Its method.
    pub method: String,
    /// The array of which every element makes one message.
    pub each: Option<Place>,
    /// From the message at hand (left) to the new one (right), read in the way of the emission.
    pub rows: Vec<Row>,
}

/// What the bridge answers.
#[derive(Clone, Debug)]
pub enum Answer {
    /// This result.
    Result(Literal),
    /// This error.
    Error(Literal),
}

/// A message in both columns.
#[derive(Clone, Debug)]
pub struct Example {
    /// The whole example as JSON, in the format of the vectors.
    pub vector: Literal,
    /// Where it stands in the file.
    pub at: String,
}

/// A named set of cases.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its name.
    pub name: String,
    /// Its cases.
    pub cases: Vec<Case>,
}

/// Something to remember.
#[derive(Clone, Debug)]
pub struct Memory {
    /// The slot's name.
    pub name: String,
    /// What is remembered.
    pub slot: Slot,
}

/// Where a remembered value passes by.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The messages, in canonical.
    pub on: On,
    /// When it counts.
    pub when: Guard,
    /// Where the value is.
    pub at: Place,
    /// Where its key is.
    pub by: Option<Place>,
    /// How long it holds.
    pub per: Per,
}

/// How long a remembered value holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// As long as the connection.
    Connection,
    /// One value per session, as long as the connection.
    Session,
    /// Until the request it came with is answered.
    Request,
}

impl Way {
    /// The word in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// The other way.
    #[must_use]
    pub const fn back(self) -> Self {
        match self {
            Self::Read => Self::Write,
            Self::Write => Self::Read,
        }
    }
}

impl Selector {
    /// The method's names.
    #[must_use]
    pub fn names(&self) -> &Names {
        match self {
            Self::Method(names) | Self::Answers(names) | Self::ErrorsOf(names) => names,
        }
    }
}
