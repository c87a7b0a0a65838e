//! The types of the table language. `read` parses them from JSON.

use std::sync::Arc;

use super::operations::{Action, Converter};
use super::way::Way;
use crate::dialect::pointer::JsonPointer;
use crate::dialect::text::JsonType;
use crate::jsonrpc::Side;

/// The slot that every table has: the session whose prompt is in flight.
pub(in crate::dialect) const PROMPTING: &str = "prompting_session";

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
    /// One line of description.
    pub title: String,
    /// When and where the dialect was used.
    pub dates: Option<String>,
    /// The side that uses it, if only one does.
    pub speaker: Option<Side>,
    /// Tables this one builds on, nearest first.
    pub extends: Vec<String>,
    /// Tables with which messages of its peers are also read; messages are not written with them.
    pub reads: Vec<String>,
    /// The clues by which a peer with this dialect is detected.
    pub detect: Vec<Clue>,
    /// The framing its peers use.
    pub framing: Option<String>,
    /// Which messages of its peers carry the member `jsonrpc`.
    pub jsonrpc: Jsonrpc,
    /// Whether its peers accept only ids that are 32-bit integers.
    pub int_ids: bool,
    /// Whether its peers require `params` in every request.
    pub params: bool,
    /// What is remembered.
    pub memory: Vec<NamedSlot>,
    /// Named sets of cases.
    pub shapes: Vec<NamedShape>,
    /// The rules.
    pub rules: Vec<Rule>,
}

/// Which messages of a dialect carry `jsonrpc`; it is never required in reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Jsonrpc {
    /// On every message.
    Always,
    /// Only on requests of these methods and their answers.
    Only(Vec<String>),
}

/// One clue to the dialect; all its parts must hold.
#[derive(Clone, Debug)]
pub struct Clue {
    /// The message it looks at.
    pub on: Selector,
    /// What the message must contain, relative to its params or result.
    pub when: Guard,
    /// What the sender's result of `initialize` must have contained, if that is another message.
    pub stated: Guard,
    /// A bound on the version in `agentInfo` or `clientInfo`, as `<1.0` or `>=0.4`.
    pub version: Option<String>,
}

/// A message of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Requests and notifications.
    Method(MethodPair),
    /// Results of a method.
    Answers(MethodPair),
    /// Errors of a method, `*` for all.
    ErrorsOf(MethodPair),
}

/// A method's name in the two columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MethodPair {
    /// In the dialect; `None` when the dialect has no such message.
    pub dialect: Option<String>,
    /// In canonical; `None` when canonical has no such message.
    pub canonical: Option<String>,
}

/// The messages that a rule applies to.
#[derive(Clone, Debug)]
pub struct MessageFilter {
    /// The side that sends.
    pub from: Side,
    /// Which of its messages.
    pub what: Selector,
    /// How the kind of the message differs in the two columns, if it does.
    pub kinds: Option<KindChange>,
}

/// A request in one column that is a notification in the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindChange {
    /// A request in the dialect is a notification in canonical.
    DialectAsks,
}

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name, unique in the table.
    pub id: Arc<str>,
    /// The place of the rule in the file.
    pub at: String,
    /// The reason for the rule, with its source.
    pub why: String,
    /// The messages that it applies to.
    pub on: MessageFilter,
    /// What is lost, in words.
    pub lossy: Option<String>,
    /// What canonical messages lose on their way to the dialect and back, as data.
    pub loses: Vec<Loss>,
    /// The part that all cases share.
    pub base: Case,
    /// The cases, tried in order; empty when the base is everything.
    pub cases: Vec<Case>,
    /// The array whose elements become one message each.
    pub split: Option<(Way, JsonPointer)>,
    /// How a message is handled that cannot be translated.
    pub failure: Option<OnFailure>,
    /// Messages in both columns.
    pub examples: Vec<Example>,
}

/// What a canonical message loses on its way to a dialect and back, as data: places that do not come
/// back, or come back with another value.
///
/// `lossy` describes it in words; this data lets a test verify the table. It has no effect on the
/// translation.
#[derive(Clone, Debug)]
pub struct Loss {
    /// Which canonical messages lose it; empty for all of the rule's.
    pub when: Guard,
    /// The places, relative to params, result or error; a name `*` matches any name or index. The
    /// empty pointer is the whole message.
    pub at: Vec<JsonPointer>,
}

/// How a message is handled that a rule cannot translate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// It is forwarded unchanged, with a note.
    Pass,
    /// It is answered with an error.
    Refuse,
}

/// Guards, and what is done when they hold.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// The guard on the dialect side.
    pub dialect: Guard,
    /// The guard on the canonical side.
    pub canonical: Guard,
    /// The only way in which it applies, if not both.
    pub only: Option<Way>,
    /// What it loses.
    pub lossy: Option<String>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// How members are handled that no row names.
    pub rest: Rest,
    /// Further messages to make.
    pub emit: Vec<Emit>,
    /// The answer of the bridge.
    pub answer: Option<FixedAnswer>,
    /// The error that a result becomes.
    pub fail: Option<Literal>,
    /// The error that the sender is answered with; nothing is forwarded.
    pub refuse: Option<Literal>,
    /// The reason for which the message, or the element, is dropped.
    pub drop: Option<String>,
    /// Named actions.
    pub actions: Vec<Action>,
}

/// Expectations that must all hold.
pub type Guard = Vec<(JsonPointer, Expect)>;

/// What is expected at a place.
#[derive(Clone, Debug)]
pub enum Expect {
    /// This value; it is written when the guard is on the target side.
    Const(Literal),
    /// A value of one of these types.
    Is(Vec<JsonType>),
    /// One of these values.
    In(Vec<Literal>),
    /// None of these values, or no value.
    NotIn(Vec<Literal>),
    /// No value (`true`), or any value (`false`).
    Absent(bool),
    /// A string that matches.
    Matches(Box<regex_lite::Regex>),
}

/// One value in two columns.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its place in the dialect.
    pub dialect: Option<JsonPointer>,
    /// Its place in canonical.
    pub canonical: Option<JsonPointer>,
    /// The only way in which the row applies, if not both.
    pub only: Option<Way>,
    /// What is done to the value.
    pub convert: Vec<Conversion>,
    /// The value to write when there is none.
    pub fill: Option<Fill>,
    /// The side on which it is written.
    pub into: Way,
    /// Whether the value also stays at its source.
    pub copy: bool,
    /// The reason for which the value is dropped.
    pub drop: Option<String>,
    /// Where the original is parked of a value that would not come back.
    pub parking: Option<Box<[Box<str>]>>,
}

/// A conversion of a value, as it is read.
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
        /// The value for every other one, in reading.
        other: Option<Literal>,
        /// Whether a value is parked that would not come back.
        park: bool,
    },
    /// In every element.
    Each(Each),
    /// In the object.
    In(Vec<Row>),
    /// One of the named shapes.
    Shape(String),
    /// A named conversion.
    As(Converter),
}

/// The conversion of every element of an array.
#[derive(Clone, Debug)]
pub enum Each {
    /// These rows.
    Rows(Vec<Row>),
    /// This shape.
    Shape(String),
}

/// The value to write when there is none.
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
        from: JsonPointer,
        /// How it is made.
        by: Converter,
    },
}

/// A remembered value.
#[derive(Clone, Debug)]
pub struct Recall {
    /// The slot.
    pub slot: String,
    /// The place of the key, for slots with keys.
    pub by: Option<JsonPointer>,
    /// The value when nothing is remembered.
    pub or: Option<Literal>,
}

/// How members are handled that no row and no guard names.
#[derive(Clone, Debug, Default)]
pub enum Rest {
    /// They stay where they are.
    #[default]
    Keep,
    /// They move from the one object to the other.
    Move {
        /// The object in the dialect.
        dialect: JsonPointer,
        /// The object in canonical.
        canonical: JsonPointer,
    },
    /// They are dropped, for this reason.
    Drop(String),
}

/// A further message beside the current one.
#[derive(Clone, Debug)]
pub struct Emit {
    /// The way in which it is made.
    pub way: Way,
    /// Whether it is sent after the message.
    pub after: bool,
    /// Its method.
    pub method: String,
    /// The array whose elements make one message each.
    pub each: Option<JsonPointer>,
    /// Rows from the current message (left) to the new one (right), read in the way of the
    /// emission.
    pub rows: Vec<Row>,
}

/// The answer of the bridge.
#[derive(Clone, Debug)]
pub enum FixedAnswer {
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
    /// Its place in the file.
    pub at: String,
}

/// A named set of cases.
#[derive(Clone, Debug)]
pub struct NamedShape {
    /// Its name.
    pub name: String,
    /// Its cases.
    pub cases: Vec<Case>,
}

/// A slot and its name.
#[derive(Clone, Debug)]
pub struct NamedSlot {
    /// The slot's name.
    pub name: String,
    /// What is remembered.
    pub slot: Slot,
}

/// A value that is remembered.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The messages, in canonical.
    pub on: MessageFilter,
    /// The guard of these messages.
    pub when: Guard,
    /// The place of the value.
    pub at: JsonPointer,
    /// The place of its key.
    pub by: Option<JsonPointer>,
    /// How long it is valid.
    pub per: SlotScope,
}

/// How long a remembered value is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotScope {
    /// As long as the connection.
    Connection,
    /// One value per session, as long as the connection.
    Session,
    /// Until the request it came with is answered.
    Request,
}

impl Selector {
    /// The method's names.
    #[must_use]
    pub fn names(&self) -> &MethodPair {
        match self {
            Self::Method(names) | Self::Answers(names) | Self::ErrorsOf(names) => names,
        }
    }
}
