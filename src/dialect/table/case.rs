//! The types of a rule's cases: guards, rows and what else is done. serde reads them from JSON that
//! fits the schema.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::forms::{self, list, some};
use super::operations::{Action, Converter};
use super::way::Way;
use crate::dialect::pointer::{JsonPointer, own_pointer};
use crate::dialect::text::JsonType;

/// A JSON value of a table, without white space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal(pub Box<[u8]>);

/// Guards, and what is done when they hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Case {
    /// The guards.
    pub when: When,
    /// The only way in which it applies, if not both.
    pub only: Option<Way>,
    /// What it loses.
    pub lossy: Option<String>,
    /// Its rows.
    #[serde(deserialize_with = "forms::list")]
    pub rows: Vec<Row>,
    /// How members are handled that no row names.
    pub rest: Rest,
    /// Further messages to make.
    #[serde(deserialize_with = "forms::list")]
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
    #[serde(rename = "do", deserialize_with = "forms::list")]
    pub actions: Vec<Action>,
}

/// The guards of the two sides.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct When {
    /// The guard on the dialect side.
    #[serde(deserialize_with = "guard")]
    pub dialect: Guard,
    /// The guard on the canonical side.
    #[serde(deserialize_with = "guard")]
    pub canonical: Guard,
}

/// Expectations that must all hold.
pub type Guard = Vec<(JsonPointer, Expect)>;

/// What is expected at a place.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// This value; it is written when the guard is on the target side.
    Const(Literal),
    /// A value of one of these types.
    Is(#[serde(deserialize_with = "forms::list")] Vec<JsonType>),
    /// One of these values.
    In(Vec<Literal>),
    /// None of these values, or no value.
    NotIn(Vec<Literal>),
    /// No value (`true`), or any value (`false`).
    Absent(bool),
    /// A string that matches.
    Matches(#[serde(deserialize_with = "forms::pattern")] Box<regex_lite::Regex>),
}

/// One value in two columns.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "RowForm")]
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
    Values(Values),
    /// In every element.
    Each(Each),
    /// In the object.
    In(Vec<Row>),
    /// One of the named shapes.
    Shape(String),
    /// A named conversion.
    As(Converter),
}

/// A table of values.
#[derive(Clone, Debug, Deserialize)]
pub struct Values {
    /// Pairs for both ways.
    #[serde(default, rename = "values", deserialize_with = "pairs")]
    pub both: Vec<(Literal, Literal)>,
    /// Further pairs for reading only.
    #[serde(default, rename = "read_values", deserialize_with = "pairs")]
    pub read: Vec<(Literal, Literal)>,
    /// Further pairs for writing only; they also have the dialect's value first.
    #[serde(default, rename = "write_values", deserialize_with = "pairs")]
    pub write: Vec<(Literal, Literal)>,
    /// The value for every other one, in reading.
    #[serde(default, deserialize_with = "some")]
    pub other: Option<Literal>,
    /// Whether a value is parked that would not come back.
    #[serde(default)]
    pub park: bool,
}

/// The conversion of every element of an array.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Each {
    /// One of the named shapes.
    Shape {
        /// Its name.
        shape: String,
    },
    /// These rows.
    Rows(#[serde(deserialize_with = "list")] Vec<Row>),
}

/// The value to write when there is none.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
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
        #[serde(rename = "as")]
        by: Converter,
    },
}

/// A remembered value.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "RecallForm")]
pub struct Recall {
    /// The slot.
    pub slot: String,
    /// The place of the key, for slots with keys.
    pub by: Option<JsonPointer>,
    /// The value when nothing is remembered.
    pub or: Option<Literal>,
}

/// How members are handled that no row and no guard names.
#[derive(Clone, Debug, Default, Deserialize)]
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
#[derive(Clone, Debug, Deserialize)]
pub struct Emit {
    /// The way in which it is made.
    #[serde(default)]
    pub way: Way,
    /// Whether it is sent after the message.
    #[serde(default, rename = "place", deserialize_with = "forms::is_after")]
    pub after: bool,
    /// Its method.
    pub method: String,
    /// The array whose elements make one message each.
    pub each: Option<JsonPointer>,
    /// Rows from the current message (left) to the new one (right), read in the way of the
    /// emission.
    #[serde(default, deserialize_with = "forms::list")]
    pub rows: Vec<Row>,
}

/// The answer of the bridge.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FixedAnswer {
    /// This result.
    Result(Literal),
    /// This error.
    Error(Literal),
}

/// Pointers and what is expected there. An object with a known keyword is a test, every other value
/// a constant.
pub(super) fn guard<'de, D: Deserializer<'de>>(from: D) -> Result<Guard, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        Test(Expect),
        Constant(Literal),
    }
    let all: Vec<(String, Form)> = forms::named(from)?;
    let entry = |(place, form): (String, Form)| {
        let expect = match form {
            Form::Test(expect) => expect,
            Form::Constant(literal) => Expect::Const(literal),
        };
        let place = JsonPointer::parse(&place).map_err(D::Error::custom)?;
        Ok((place, expect))
    };
    all.into_iter().map(entry).collect()
}

/// Pairs of values: `{"done": "end_turn"}`, or `[[1, "one"], …]`.
fn pairs<'de, D>(from: D) -> Result<Vec<(Literal, Literal)>, D::Error>
where
    D: Deserializer<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        Named(Map<String, Value>),
        Pairs(Vec<Option<(Literal, Literal)>>),
    }
    let pair = |(name, value)| (Literal::from(&Value::String(name)), Literal::from(&value));
    Ok(match Form::deserialize(from)? {
        Form::Named(all) => all.into_iter().map(pair).collect(),
        Form::Pairs(all) => all.into_iter().flatten().collect(),
    })
}

impl From<&Value> for Literal {
    fn from(value: &Value) -> Self {
        Self(value.to_string().into_bytes().into())
    }
}

impl<'de> Deserialize<'de> for Literal {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Value::deserialize(from).map(|value| Self::from(&value))
    }
}

#[derive(Deserialize)]
pub(super) struct GuardForm(#[serde(deserialize_with = "guard")] pub(super) Guard);

#[derive(Deserialize)]
#[serde(untagged)]
enum RestForm {
    Drop {
        drop: String,
    },
    Move {
        dialect: JsonPointer,
        canonical: JsonPointer,
    },
    Word(String),
}

impl From<RestForm> for Rest {
    fn from(form: RestForm) -> Self {
        match form {
            RestForm::Drop { drop } => Self::Drop(drop),
            RestForm::Move { dialect, canonical } => Self::Move { dialect, canonical },
            RestForm::Word(word) if word == "meta" => Self::Move {
                dialect: own_pointer(""),
                canonical: own_pointer("/_meta/acp-relay"),
            },
            RestForm::Word(_) => Self::Keep,
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RecallForm {
    Slot(String),
    Keyed {
        slot: String,
        by: Option<JsonPointer>,
        #[serde(default, deserialize_with = "some")]
        or: Option<Literal>,
    },
}

impl From<RecallForm> for Recall {
    fn from(form: RecallForm) -> Self {
        let (slot, by, or) = match form {
            RecallForm::Slot(slot) => (slot, None, None),
            RecallForm::Keyed { slot, by, or } => (slot, by, or),
        };
        Self { slot, by, or }
    }
}

/// A column by its name.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Column {
    Dialect,
    Canonical,
}

#[derive(Deserialize)]
struct RowForm {
    dialect: Option<JsonPointer>,
    canonical: Option<JsonPointer>,
    only: Option<Way>,
    into: Option<Column>,
    #[serde(default)]
    copy: bool,
    drop: Option<String>,
    #[serde(rename = "as")]
    by: Option<Converter>,
    #[serde(flatten)]
    values: Values,
    #[serde(default, rename = "in", deserialize_with = "list")]
    inside: Vec<Row>,
    shape: Option<String>,
    each: Option<Each>,
    #[serde(flatten)]
    fill: Option<Fill>,
}

impl From<RowForm> for Row {
    fn from(form: RowForm) -> Self {
        let mut convert: Vec<Conversion> = form.by.map(Conversion::As).into_iter().collect();
        let values = &form.values;
        let lists = [&values.both, &values.read, &values.write];
        if lists.iter().any(|pairs| !pairs.is_empty()) || values.other.is_some() {
            convert.push(Conversion::Values(form.values));
        }
        if !form.inside.is_empty() {
            convert.push(Conversion::In(form.inside));
        }
        convert.extend(form.shape.map(Conversion::Shape));
        convert.extend(form.each.map(Conversion::Each));
        let into = match form.into {
            Some(Column::Dialect) => Way::Write,
            Some(Column::Canonical) => Way::Read,
            None if form.canonical.is_none() => Way::Write,
            None => Way::Read,
        };
        Self {
            only: form.only,
            convert,
            fill: form.fill,
            into,
            copy: form.copy,
            drop: form.drop,
            parking: parking(form.dialect.as_ref(), form.canonical.as_ref()),
            dialect: form.dialect,
            canonical: form.canonical,
        }
    }
}

/// Where the original of a row's value is parked: in the object of the canonical value.
fn parking(
    dialect: Option<&JsonPointer>,
    canonical: Option<&JsonPointer>,
) -> Option<Box<[Box<str>]>> {
    let (_, parent) = canonical?.names().split_last()?;
    let name = dialect?.names().last()?;
    let own = ["_meta".into(), "acp-relay".into(), name.clone()];
    Some(parent.iter().cloned().chain(own).collect())
}
