//! The types of a table and its rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use jsonptr::PointerBuf;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::case::{Case, Expect, Guard};
use super::fault_list::Origins;
use super::forms::{List, Literal, Remark, present};
use super::short::Shorts;
use super::way::Way;
use crate::pointer::JsonPointer;
use jsonrpc::Side;

/// The slot that every table has: the session whose prompt is in flight.
pub(crate) const PROMPTING: &str = "prompting_session";

/// A mapping table of acp-relay.
///
/// One dialect of the Agent Client Protocol as two columns; mappings/README.md specifies the
/// language.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Table {
    /// Where this schema is, for editors.
    #[serde(rename = "$schema")]
    pub schema: Option<String>,
    /// The version of the language.
    #[schemars(extend("const" = 1))]
    pub format: u64,
    /// The dialect's name.
    #[serde(rename = "dialect")]
    pub name: String,
    /// Other names that mean the same table.
    #[serde(default)]
    pub aliases: List<String>,
    /// One line of description.
    pub title: String,
    /// Where the dialect comes from.
    pub why: Option<Remark>,
    /// For people.
    pub source: Option<Remark>,
    /// For people.
    pub notes: Option<Remark>,
    /// When and where the dialect was used.
    pub dates: Option<String>,
    /// The side that uses it, if only one does.
    pub speaker: Option<Side>,
    /// Tables this one builds on, nearest first.
    #[serde(default)]
    pub extends: List<String>,
    /// Tables with which messages of its peers are also read; messages are not written with them.
    #[serde(default)]
    pub reads: List<String>,
    /// The clues by which a peer with this dialect is detected.
    #[serde(default)]
    pub detect: List<Clue>,
    /// The framing its peers use.
    pub framing: Option<String>,
    /// Which messages of its peers carry the member `jsonrpc`.
    #[serde(default)]
    pub jsonrpc: Jsonrpc,
    /// The ids its peers accept.
    #[serde(default)]
    pub ids: IdKind,
    /// Which requests to its peers have `params`.
    #[serde(default)]
    pub params: Params,
    /// What is remembered.
    #[serde(default)]
    pub memory: BTreeMap<String, Slot>,
    /// Named sets of cases.
    #[serde(default)]
    pub shapes: BTreeMap<String, List<Case>>,
    /// Rules in short for kinds of updates, by their names in the dialect.
    #[schemars(with = "Option<Shorts>")]
    pub update: Option<Remark>,
    /// Rules in short for requests and notifications, by the method's name in the dialect.
    #[schemars(with = "Option<Shorts>")]
    pub method: Option<Remark>,
    /// Rules in short for results, by the method's name in the dialect.
    #[schemars(with = "Option<Shorts>")]
    pub answers: Option<Remark>,
    /// The rules.
    // Not a `List`, which holds all of its text before it reads it.
    #[serde(default, deserialize_with = "present")]
    pub rules: Vec<Rule>,
    /// Where the rules are written that short forms stand for.
    #[serde(skip)]
    pub(crate) origins: Origins,
}

/// Which messages of a dialect carry `jsonrpc`; it is never required in reading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Jsonrpc {
    /// On every message.
    #[default]
    Always,
    /// Only on requests of these methods and their answers.
    Only(List<String>),
}

/// The ids that a peer accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum IdKind {
    /// All.
    #[default]
    Any,
    /// Integers of 32 bits.
    Int32,
}

/// Which requests to a peer have `params`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Params {
    /// Those that have any.
    #[default]
    Any,
    /// All, if only `{}`.
    Always,
}

/// One clue to the dialect; all its parts must hold.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
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
    /// At how many messages it looks; more than one is a fault.
    pub messages: usize,
}

/// A message of one side.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(from = "NamesForm")]
pub struct MethodPair {
    /// In the dialect; `None` when the dialect has no such message.
    pub dialect: Option<String>,
    /// In canonical; `None` when canonical has no such message.
    pub canonical: Option<String>,
}

/// The messages that a rule applies to.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum KindChange {
    /// A request in the dialect is a notification in canonical.
    DialectAsks,
}

/// One rule.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Rule {
    /// Its name, unique in the table.
    pub id: Arc<str>,
    /// The reason for the rule, with its source.
    #[serde(default)]
    pub why: String,
    /// For people.
    pub source: Option<Remark>,
    /// For people.
    pub seen: Option<Remark>,
    /// For people.
    pub until: Option<Remark>,
    /// For people.
    pub notes: Option<Remark>,
    /// The messages that it applies to.
    pub on: MessageFilter,
    /// What canonical messages lose on their way to the dialect and back, as data.
    #[serde(default)]
    pub loses: List<Loss>,
    /// The part that all cases share.
    #[serde(flatten)]
    pub base: Case,
    /// The cases, tried in order; empty when the base is everything.
    #[serde(default)]
    pub cases: List<Case>,
    /// The array whose elements become one message each, in one of the columns.
    #[serde(default)]
    pub split: Split,
    /// How a message is handled that cannot be translated.
    pub failure: Option<OnFailure>,
    /// Messages in both columns, in the format of the vectors.
    // Read on request: they are a quarter of a table.
    #[serde(default)]
    #[schemars(with = "List<Map<String, Value>>")]
    examples: Option<Box<RawValue>>,
}

/// What a canonical message loses on its way to a dialect and back, as data: places that do not come
/// back, or come back with another value.
///
/// `lossy` describes it in words; this data lets a test verify the table. It has no effect on the
/// translation.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Loss {
    /// Which canonical messages lose it; empty for all of the rule's.
    #[serde(default)]
    pub when: Guard,
    /// The places, relative to params, result or error; a name `*` matches any name or index. The
    /// empty pointer is the whole message.
    pub at: List<JsonPointer>,
    /// For people.
    pub why: Option<Remark>,
}

/// The array that is split, in one of the columns.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Split {
    /// In the dialect: when reading.
    pub dialect: Option<JsonPointer>,
    /// In canonical: when writing.
    pub canonical: Option<JsonPointer>,
}

/// How a message is handled that a rule cannot translate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum OnFailure {
    /// It is forwarded unchanged, with a note.
    Pass,
    /// It is answered with an error.
    Refuse,
}

/// A value that is remembered.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Slot {
    /// The messages, in canonical.
    #[serde(flatten)]
    pub on: MessageFilter,
    /// The guard of these messages.
    #[serde(default)]
    pub when: Guard,
    /// The place of the value.
    pub at: JsonPointer,
    /// The place of its key.
    pub by: Option<JsonPointer>,
    /// How long it is valid.
    pub per: SlotScope,
    /// For people.
    pub why: Option<Remark>,
}

/// How long a remembered value is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
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

impl MethodPair {
    /// The same name in both columns.
    #[must_use]
    pub fn same(name: &str) -> Self {
        Self {
            dialect: Some(name.to_owned()),
            canonical: Some(name.to_owned()),
        }
    }

    /// The name a message has before it is translated.
    #[must_use]
    pub fn before(&self, way: Way) -> Option<&str> {
        way.pick(self.dialect.as_deref(), self.canonical.as_deref())
    }

    /// The name it has afterwards.
    #[must_use]
    pub fn after(&self, way: Way) -> Option<&str> {
        self.before(way.reverse())
    }
}

impl Rule {
    /// Its examples.
    #[must_use]
    pub fn examples(&self) -> List<Map<String, Value>> {
        let text = self.examples.as_ref().map(|text| text.get());
        text.and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default()
    }

    /// The base and all cases.
    pub fn all_cases(&self) -> impl Iterator<Item = &Case> {
        std::iter::once(&self.base).chain(&self.cases)
    }

    /// The array whose elements become one message each, in that way.
    #[must_use]
    pub fn split(&self, way: Way) -> Option<&JsonPointer> {
        way.pick(self.split.dialect.as_ref(), self.split.canonical.as_ref())
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum NamesForm {
    Same(String),
    Pair {
        /// In the dialect.
        dialect: Option<String>,
        /// In canonical.
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

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct ClueForm {
    /// Members of `agentInfo` and their values.
    #[serde(rename = "agentInfo")]
    agent: Option<Map<String, Value>>,
    /// Members of `clientInfo` and their values.
    #[serde(rename = "clientInfo")]
    client: Option<Map<String, Value>>,
    initialize: Option<Guard>,
    initialize_result: Option<Guard>,
    update: Option<Guard>,
    /// A bound such as `<1.0` on the version in `agentInfo` or `clientInfo`.
    version: Option<String>,
    /// For people.
    #[serde(rename = "why")]
    _why: Option<Remark>,
}

impl From<ClueForm> for Clue {
    fn from(form: ClueForm) -> Self {
        let info = |name: &str, all: Map<String, Value>| {
            let expect = |(member, value): (String, Value)| {
                let place = PointerBuf::from_tokens([name, &member]);
                (place.into(), Expect::Const(Literal::from(value)))
            };
            Guard(all.into_iter().map(expect).collect())
        };
        let agent = form.agent.map(|all| info("agentInfo", all));
        let client = form.client.map(|all| info("clientInfo", all));
        let [method, result] = [Selector::Method, Selector::Answers];
        let initialize = || MethodPair::same("initialize");
        let stated = form.initialize_result;
        // What an update means may depend on the result of `initialize`.
        let (stated, result_guard) = match form.update {
            Some(_) => (stated, None),
            None => (None, stated),
        };
        let all = [
            agent.map(|when| (result(initialize()), when)),
            client.map(|when| (method(initialize()), when)),
            form.initialize.map(|when| (method(initialize()), when)),
            (form.update).map(|when| (method(MethodPair::same("session/update")), when)),
            result_guard.map(|when| (result(initialize()), when)),
        ];
        let mut all: Vec<_> = all.into_iter().flatten().collect();
        let messages = all.len();
        let none = || (result(initialize()), Guard::default());
        let (on, when) = all.drain(..).next().unwrap_or_else(none);
        Self {
            on,
            when,
            stated: stated.unwrap_or_default(),
            version: form.version,
            messages,
        }
    }
}
