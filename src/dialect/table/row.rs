//! The types of a row: one value in two columns, and what is done to it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::forms::{List, Literal, Remark, some};
use super::operations::Converter;
use super::way::Way;
use crate::pointer::JsonPointer;

/// One value in two columns.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Row {
    /// Its place in the dialect.
    pub dialect: Option<JsonPointer>,
    /// Its place in canonical.
    pub canonical: Option<JsonPointer>,
    /// For people.
    pub why: Option<Remark>,
    /// For people.
    pub note: Option<Remark>,
    /// What is lost.
    pub lossy: Option<String>,
    /// The only way in which the row applies, if not both.
    pub only: Option<Way>,
    /// Whether the value also stays at its source.
    pub copy: bool,
    /// Pairs of values for both ways.
    pub values: Pairs,
    /// Further pairs for reading only.
    pub read_values: Pairs,
    /// Further pairs for writing only; they also have the dialect's value first.
    pub write_values: Pairs,
    /// The value for every other one, in reading.
    #[serde(deserialize_with = "some")]
    pub other: Option<Literal>,
    /// Whether a value is parked that would not come back.
    pub park: bool,
    /// The conversion of every element of an array, or of every member of an object.
    pub each: Option<Each>,
    /// Rows in the object.
    #[serde(rename = "in")]
    pub inside: List<Self>,
    /// The named shape of the value.
    pub shape: Option<String>,
    /// A named conversion; it comes before the others in reading.
    #[serde(rename = "as")]
    pub convert: Option<Converter>,
    /// The value, unless there is one.
    #[serde(deserialize_with = "some")]
    pub default: Option<Literal>,
    /// Always this value.
    #[serde(rename = "const", deserialize_with = "some")]
    pub constant: Option<Literal>,
    /// A remembered value, unless there is one.
    pub recall: Option<Recall>,
    /// A value made from another one of the same column, unless there is one.
    pub derive: Option<Derive>,
    /// The column that is filled.
    pub into: Option<Column>,
    /// The reason for which the value is dropped.
    pub drop: Option<String>,
}

/// Dialect values and their canonical values: `{"done": "end_turn"}`, or `[[1, "one"], …]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(from = "PairsForm")]
pub struct Pairs(pub Vec<(Literal, Literal)>);

/// The conversion of every element of an array, or of every member of an object.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Each {
    /// One of the named shapes.
    Shape {
        /// The shape's name.
        shape: String,
    },
    /// One of the named shapes, for the value of every member of an object instead.
    Members {
        /// The shape's name.
        members: String,
    },
    /// These rows.
    Rows(List<Row>),
}

/// A value made from another one of the same column.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Derive {
    /// Where the other value is.
    pub from: JsonPointer,
    /// How it is made.
    #[serde(rename = "as")]
    pub by: Converter,
}

/// A remembered value: a slot, or a slot with its key.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(from = "RecallForm")]
pub struct Recall {
    /// The slot.
    pub slot: String,
    /// The place of the key, for slots with keys.
    pub by: Option<JsonPointer>,
    /// The value when nothing is remembered.
    pub or: Option<Literal>,
}

/// A column by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Column {
    /// The dialect.
    Dialect,
    /// Canonical.
    Canonical,
}

impl Row {
    /// The place on the source side.
    #[must_use]
    pub fn before(&self, way: Way) -> Option<&JsonPointer> {
        way.pick(self.dialect.as_ref(), self.canonical.as_ref())
    }

    /// The place on the target side.
    #[must_use]
    pub fn after(&self, way: Way) -> Option<&JsonPointer> {
        self.before(way.reverse())
    }

    /// Whether the row applies in that way.
    #[must_use]
    pub fn applies(&self, way: Way) -> bool {
        self.only.is_none_or(|only| only == way)
    }

    /// Whether a missing value is filled in that way.
    #[must_use]
    pub fn fills(&self, way: Way) -> bool {
        let column = match (self.into, &self.canonical) {
            (Some(column), _) => column,
            (None, Some(_)) => Column::Canonical,
            (None, None) => Column::Dialect,
        };
        column == way.pick(Column::Canonical, Column::Dialect)
    }

    /// How many keys of the row fill a missing value.
    #[must_use]
    pub fn fill_count(&self) -> usize {
        let values = [&self.default, &self.constant]
            .into_iter()
            .flatten()
            .count();
        values + usize::from(self.recall.is_some()) + usize::from(self.derive.is_some())
    }

    /// Whether the row converts the value that it carries.
    #[must_use]
    pub fn converts(&self) -> bool {
        let containers = self.each.is_some() || !self.inside.is_empty() || self.shape.is_some();
        containers || self.convert.is_some() || self.maps_values()
    }

    /// Whether the row has a table of values.
    #[must_use]
    pub fn maps_values(&self) -> bool {
        let pairs = [&self.values, &self.read_values, &self.write_values];
        pairs.iter().any(|pairs| !pairs.0.is_empty()) || self.other.is_some()
    }

    /// The rows in the value, or in its elements.
    #[must_use]
    pub fn inner_rows(&self) -> [&[Self]; 2] {
        match &self.each {
            Some(Each::Rows(rows)) => [&self.inside, rows],
            _ => [&self.inside, &[]],
        }
    }

    /// The shapes that the row names.
    pub fn shapes(&self) -> impl Iterator<Item = &str> {
        let each = match &self.each {
            Some(Each::Shape { shape } | Each::Members { members: shape }) => Some(shape),
            _ => None,
        };
        self.shape.iter().chain(each).map(String::as_str)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum PairsForm {
    Named(Map<String, Value>),
    Pairs(#[schemars(with = "Vec<(Literal, Literal)>")] Vec<Option<(Literal, Literal)>>),
}

impl From<PairsForm> for Pairs {
    fn from(form: PairsForm) -> Self {
        let pair = |(name, value)| (Value::String(name).into(), Literal::from(value));
        Self(match form {
            PairsForm::Named(all) => all.into_iter().map(pair).collect(),
            PairsForm::Pairs(all) => all.into_iter().flatten().collect(),
        })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum RecallForm {
    Slot(String),
    Keyed {
        /// The slot.
        slot: String,
        /// The place of the key, for slots with keys.
        by: Option<JsonPointer>,
        /// The value when nothing is remembered.
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
