//! The types of a table and its rules. serde reads them from JSON that fits the schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use jsonptr::PointerBuf;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::case::{self, Case, Expect, Guard, GuardForm, Literal};
use super::forms::{self, Elements};
use super::way::Way;
use crate::dialect::pointer::JsonPointer;
use crate::jsonrpc::Side;

/// The slot that every table has: the session whose prompt is in flight.
pub(in crate::dialect) const PROMPTING: &str = "prompting_session";

/// One file.
#[derive(Clone, Debug, Deserialize)]
pub struct Table {
    /// The dialect's name.
    #[serde(rename = "dialect")]
    pub name: String,
    /// Other names that mean the same table.
    #[serde(default, deserialize_with = "forms::list")]
    pub aliases: Vec<String>,
    /// One line of description.
    pub title: String,
    /// When and where the dialect was used.
    pub dates: Option<String>,
    /// The side that uses it, if only one does.
    #[serde(default, deserialize_with = "forms::speaker")]
    pub speaker: Option<Side>,
    /// Tables this one builds on, nearest first.
    #[serde(default, deserialize_with = "forms::list")]
    pub extends: Vec<String>,
    /// Tables with which messages of its peers are also read; messages are not written with them.
    #[serde(default, deserialize_with = "forms::list")]
    pub reads: Vec<String>,
    /// The clues by which a peer with this dialect is detected.
    #[serde(default, deserialize_with = "forms::list")]
    pub detect: Vec<Clue>,
    /// The framing its peers use.
    pub framing: Option<String>,
    /// Which messages of its peers carry the member `jsonrpc`.
    #[serde(default)]
    pub jsonrpc: Jsonrpc,
    /// Whether its peers accept only ids that are 32-bit integers.
    #[serde(default, rename = "ids", deserialize_with = "forms::not_any")]
    pub int_ids: bool,
    /// Whether its peers require `params` in every request.
    #[serde(default, deserialize_with = "forms::not_any")]
    pub params: bool,
    /// What is remembered.
    #[serde(default)]
    pub memory: BTreeMap<String, Slot>,
    /// Named sets of cases.
    #[serde(default)]
    pub shapes: BTreeMap<String, Shape>,
    /// The rules.
    #[serde(default, deserialize_with = "rules")]
    pub rules: Vec<Rule>,
}

/// Which messages of a dialect carry `jsonrpc`; it is never required in reading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Jsonrpc {
    /// On every message.
    #[default]
    Always,
    /// Only on requests of these methods and their answers.
    Only(#[serde(deserialize_with = "forms::list")] Vec<String>),
}

/// One clue to the dialect; all its parts must hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "ClueForm")]
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
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selector {
    /// Requests and notifications.
    Method(MethodPair),
    /// Results of a method.
    Answers(MethodPair),
    /// Errors of a method, `*` for all.
    ErrorsOf(MethodPair),
}

/// A method's name in the two columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "NamesForm")]
pub struct MethodPair {
    /// In the dialect; `None` when the dialect has no such message.
    pub dialect: Option<String>,
    /// In canonical; `None` when canonical has no such message.
    pub canonical: Option<String>,
}

/// The messages that a rule applies to.
#[derive(Clone, Debug, Deserialize)]
pub struct MessageFilter {
    /// The side that sends.
    pub from: Side,
    /// Which of its messages.
    #[serde(flatten)]
    pub what: Selector,
    /// How the kind of the message differs in the two columns, if it does.
    #[serde(rename = "kind")]
    pub kinds: Option<KindChange>,
}

/// A request in one column that is a notification in the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KindChange {
    /// A request in the dialect is a notification in canonical.
    DialectAsks,
}

/// One rule.
#[derive(Clone, Debug, Deserialize)]
pub struct Rule {
    /// Its name, unique in the table.
    #[serde(deserialize_with = "forms::rule_id")]
    pub id: Arc<str>,
    /// The place of the rule in the file.
    #[serde(skip)]
    pub at: String,
    /// The reason for the rule, with its source.
    pub why: String,
    /// The messages that it applies to.
    pub on: MessageFilter,
    /// What canonical messages lose on their way to the dialect and back, as data.
    #[serde(default, deserialize_with = "forms::list")]
    pub loses: Vec<Loss>,
    /// The part that all cases share.
    #[serde(flatten)]
    pub base: Case,
    /// The cases, tried in order; empty when the base is everything.
    #[serde(default, deserialize_with = "forms::list")]
    pub cases: Vec<Case>,
    /// The array whose elements become one message each.
    #[serde(default, deserialize_with = "split")]
    pub split: Option<(Way, JsonPointer)>,
    /// How a message is handled that cannot be translated.
    pub failure: Option<OnFailure>,
    /// Messages in both columns.
    #[serde(default, deserialize_with = "forms::list")]
    pub examples: Vec<Example>,
}

/// What a canonical message loses on its way to a dialect and back, as data: places that do not come
/// back, or come back with another value.
///
/// `lossy` describes it in words; this data lets a test verify the table. It has no effect on the
/// translation.
#[derive(Clone, Debug, Deserialize)]
pub struct Loss {
    /// Which canonical messages lose it; empty for all of the rule's.
    #[serde(default, deserialize_with = "case::guard")]
    pub when: Guard,
    /// The places, relative to params, result or error; a name `*` matches any name or index. The
    /// empty pointer is the whole message.
    #[serde(default, deserialize_with = "forms::list")]
    pub at: Vec<JsonPointer>,
}

/// How a message is handled that a rule cannot translate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// It is forwarded unchanged, with a note.
    Pass,
    /// It is answered with an error.
    Refuse,
}

/// A message in both columns.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Literal")]
pub struct Example {
    /// The whole example as JSON, in the format of the vectors.
    pub vector: Literal,
    /// Its place in the file.
    pub at: String,
}

/// A set of cases for one kind of value.
#[derive(Clone, Debug, Deserialize)]
pub struct Shape(#[serde(deserialize_with = "forms::list")] pub Vec<Case>);

/// A value that is remembered.
#[derive(Clone, Debug, Deserialize)]
pub struct Slot {
    /// The messages, in canonical.
    #[serde(flatten)]
    pub on: MessageFilter,
    /// The guard of these messages.
    #[serde(default, deserialize_with = "case::guard")]
    pub when: Guard,
    /// The place of the value.
    pub at: JsonPointer,
    /// The place of its key.
    pub by: Option<JsonPointer>,
    /// How long it is valid.
    pub per: SlotScope,
}

/// How long a remembered value is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
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

/// The rules, with their places in the file.
pub(super) fn rules<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Rule>, D::Error> {
    let all = Elements::deserialize(from)?.indexed();
    let placed = |(index, mut rule): (usize, Rule)| {
        rule.at = format!("/rules/{index}");
        for (index, example) in rule.examples.iter_mut().enumerate() {
            example.at = format!("{}/examples/{index}", rule.at);
        }
        rule
    };
    Ok(all.map(placed).collect())
}

/// The array that is split, in one of the columns.
pub(super) fn split<'de, D>(from: D) -> Result<Option<(Way, JsonPointer)>, D::Error>
where
    D: Deserializer<'de>,
{
    let Columns { dialect, canonical } = Columns::deserialize(from)?;
    let read = dialect.map(|place| (Way::Read, place));
    Ok(read.or_else(|| Some((Way::Write, canonical?))))
}

impl From<Literal> for Example {
    fn from(vector: Literal) -> Self {
        let at = String::new();
        Self { vector, at }
    }
}

/// A place in each column.
#[derive(Deserialize)]
struct Columns {
    dialect: Option<JsonPointer>,
    canonical: Option<JsonPointer>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NamesForm {
    Same(String),
    Pair {
        dialect: Option<String>,
        canonical: Option<String>,
    },
}

impl From<NamesForm> for MethodPair {
    fn from(form: NamesForm) -> Self {
        match form {
            NamesForm::Same(name) => Self::same(&name),
            NamesForm::Pair { dialect, canonical } => Self { dialect, canonical },
        }
    }
}

#[derive(Deserialize)]
struct ClueForm {
    #[serde(rename = "agentInfo")]
    agent: Option<Map<String, Value>>,
    #[serde(rename = "clientInfo")]
    client: Option<Map<String, Value>>,
    initialize: Option<GuardForm>,
    update: Option<GuardForm>,
    initialize_result: Option<GuardForm>,
    version: Option<String>,
}

impl From<ClueForm> for Clue {
    fn from(form: ClueForm) -> Self {
        let info = |name: &str, all: Map<String, Value>| {
            let place = |member| JsonPointer::from(PointerBuf::from_tokens([name, member]));
            let expect = |value| Expect::Const(Literal::from(value));
            let all = all.iter().map(|(name, value)| (place(name), expect(value)));
            GuardForm(all.collect())
        };
        let agent = form.agent.map(|all| info("agentInfo", all));
        let client = form.client.map(|all| info("clientInfo", all));
        let called = MethodPair::same;
        let result = form.initialize_result;
        let (on, when, stated) = match (agent, client.or(form.initialize), form.update) {
            (Some(when), ..) => (Selector::Answers(called("initialize")), Some(when), None),
            (_, Some(when), _) => (Selector::Method(called("initialize")), Some(when), None),
            (.., Some(when)) => (
                Selector::Method(called("session/update")),
                Some(when),
                result,
            ),
            _ => (Selector::Answers(called("initialize")), result, None),
        };
        let guard = |form: Option<GuardForm>| form.map_or_else(Guard::new, |form| form.0);
        Self {
            on,
            when: guard(when),
            stated: guard(stated),
            version: form.version,
        }
    }
}
