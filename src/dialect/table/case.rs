//! The types of a rule's cases: guards, rows and what else is done.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::forms::{List, Literal, Pattern, Remark};
use super::operations::Action;
use super::row::Row;
use super::way::Way;
use crate::pointer::{JsonPointer, own_pointer};
use crate::text::JsonType;

/// Guards, and what is done when they hold.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Case {
    /// The case's name.
    pub name: Option<String>,
    /// Why it is there.
    pub why: Option<String>,
    /// The guards.
    pub when: When,
    /// The only way in which it applies, if not both.
    pub only: Option<Way>,
    /// What is lost.
    pub lossy: Option<String>,
    /// Its rows.
    pub rows: List<Row>,
    /// How members are handled that no row and no guard names.
    pub rest: Rest,
    /// Further messages to make.
    pub emit: List<Emit>,
    /// The answer of the bridge.
    pub answer: Option<FixedAnswer>,
    /// The error that a result becomes.
    pub fail: Option<ErrorObject>,
    /// The error that the sender is answered with; nothing is forwarded.
    pub refuse: Option<ErrorObject>,
    /// The reason for which the message, or the element, is dropped.
    pub drop: Option<String>,
    /// Named actions.
    #[serde(rename = "do")]
    pub actions: List<Action>,
}

/// The guards of the two sides.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct When {
    /// The guard on the dialect side.
    pub dialect: Guard,
    /// The guard on the canonical side.
    pub canonical: Guard,
}

/// Pointers and what is expected there; all expectations must hold.
#[derive(Clone, Debug, Default)]
pub struct Guard(pub Vec<(JsonPointer, Expect)>);

/// What is expected at a place.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Expect {
    /// This value; it is written when the guard is on the target side.
    Const(Literal),
    /// A value of one of these types.
    Is(List<JsonType>),
    /// One of these values.
    In(Vec<Literal>),
    /// None of these values, or no value.
    NotIn(Vec<Literal>),
    /// No value (`true`), or any value (`false`).
    Absent(bool),
    /// A string that matches.
    Matches(Pattern),
}

/// How members are handled that no row and no guard names.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(from = "RestForm")]
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
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Emit {
    /// The way in which it is made.
    #[serde(default)]
    pub way: Way,
    /// Whether it is sent before or after the message.
    #[serde(default)]
    pub place: Order,
    /// Its method.
    pub method: String,
    /// The array whose elements make one message each.
    pub each: Option<JsonPointer>,
    /// Rows from the current message (left) to the new one (right), read in the way of the
    /// emission.
    #[serde(default)]
    pub rows: List<Row>,
    /// For people.
    pub why: Option<Remark>,
}

/// Before or after the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Before it.
    #[default]
    Before,
    /// After it.
    After,
}

/// The answer of the bridge.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FixedAnswer {
    /// This result.
    Result(Literal),
    /// This error.
    Error(ErrorObject),
}

/// An error of JSON-RPC.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ErrorObject {
    code: i64,
    /// What went wrong.
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

impl Case {
    /// The guard on the source side.
    #[must_use]
    pub fn before(&self, way: Way) -> &[(JsonPointer, Expect)] {
        &way.pick(&self.when.dialect, &self.when.canonical).0
    }

    /// The guard on the target side.
    #[must_use]
    pub fn after(&self, way: Way) -> &[(JsonPointer, Expect)] {
        self.before(way.reverse())
    }

    /// Whether the case applies in that way.
    #[must_use]
    pub fn applies(&self, way: Way) -> bool {
        self.only.is_none_or(|only| only == way)
    }
}

impl Emit {
    /// Whether it is sent after the message.
    #[must_use]
    pub fn is_after(&self) -> bool {
        self.place == Order::After
    }
}

impl ErrorObject {
    /// The error as JSON.
    #[must_use]
    pub fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("its members have a spelling in JSON")
    }
}

/// An object with a known keyword is a test, every other value a constant.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum ExpectForm {
    Test(Expect),
    Constant(#[schemars(schema_with = "constant")] Literal),
}

fn constant(_: &mut SchemaGenerator) -> Schema {
    let types = ["null", "boolean", "number", "string", "array"];
    json_schema!({"anyOf": [{"type": types}, {"const": {}}]})
}

impl<'de> Deserialize<'de> for Guard {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let all = Map::<String, Value>::deserialize(from)?.into_iter();
        let entry = |(place, form): (String, Value)| {
            let expect = match serde_json::from_value(form).map_err(D::Error::custom)? {
                ExpectForm::Test(expect) => expect,
                ExpectForm::Constant(literal) => Expect::Const(literal),
            };
            let place = JsonPointer::parse(&place).map_err(D::Error::custom)?;
            Ok((place, expect))
        };
        all.map(entry).collect::<Result<_, _>>().map(Self)
    }
}

impl JsonSchema for Guard {
    fn schema_name() -> Cow<'static, str> {
        "Guard".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<JsonPointer, ExpectForm>::json_schema(generator)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum RestForm {
    Word(RestWord),
    Drop {
        /// Why they are dropped.
        drop: String,
    },
    Move {
        /// The object in the dialect.
        dialect: JsonPointer,
        /// The object in canonical.
        canonical: JsonPointer,
    },
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum RestWord {
    /// They stay where they are.
    Keep,
    /// They move under `_meta["acp-relay"]` and back.
    Meta,
}

impl From<RestForm> for Rest {
    fn from(form: RestForm) -> Self {
        match form {
            RestForm::Word(RestWord::Keep) => Self::Keep,
            RestForm::Word(RestWord::Meta) => Self::Move {
                dialect: own_pointer(""),
                canonical: own_pointer("/_meta/acp-relay"),
            },
            RestForm::Drop { drop } => Self::Drop(drop),
            RestForm::Move { dialect, canonical } => Self::Move { dialect, canonical },
        }
    }
}
