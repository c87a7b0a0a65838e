//! The basic forms of the table language: lists, literals, patterns.

use std::ops::Deref;

use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A list; one value counts as a list of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "OneOrMany<T>")]
#[schemars(inline)]
pub struct List<T>(Vec<T>);

/// A JSON value of a table, without white space.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(from = "Value")]
#[schemars(inline)]
pub struct Literal(pub Box<[u8]>);

/// Words for people; nothing reads them here.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Remark(#[schemars(with = "Value")] pub IgnoredAny);

/// A regular expression of bounded size.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(inline, with = "String", extend("format" = "regex"))]
pub struct Pattern(pub Box<regex_lite::Regex>);

/// `null` stands where a fault was removed.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum OneOrMany<T> {
    Many(#[schemars(with = "Vec<T>")] Vec<Option<T>>),
    One(T),
}

/// A member that is there, even if it is `null`.
pub(super) fn some<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Literal>, D::Error> {
    Literal::deserialize(from).map(Some)
}

/// A list without the `null`s that stand where a fault was removed.
pub(super) fn present<'de, T, D>(from: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let all = Vec::<Option<T>>::deserialize(from)?;
    Ok(all.into_iter().flatten().collect())
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'l, T> IntoIterator for &'l List<T> {
    type Item = &'l T;
    type IntoIter = std::slice::Iter<'l, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T> From<OneOrMany<T>> for List<T> {
    fn from(form: OneOrMany<T>) -> Self {
        Self(match form {
            OneOrMany::Many(all) => all.into_iter().flatten().collect(),
            OneOrMany::One(one) => vec![one],
        })
    }
}

impl From<Value> for Literal {
    fn from(value: Value) -> Self {
        Self(value.to_string().into_bytes().into())
    }
}

impl TryFrom<String> for Pattern {
    type Error = regex_lite::Error;

    fn try_from(pattern: String) -> Result<Self, Self::Error> {
        let mut builder = regex_lite::RegexBuilder::new(&pattern);
        builder
            .size_limit(1 << 16)
            .build()
            .map(|regex| Self(Box::new(regex)))
    }
}
