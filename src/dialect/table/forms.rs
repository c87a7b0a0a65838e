//! The short forms of the table language, for serde: one value for a list of one, an object for
//! named things, a word for a flag.

use std::sync::Arc;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::jsonrpc::Side;

/// One value counts as a list of one. `null` stands where a fault was removed.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Elements<T> {
    Many(Vec<Option<T>>),
    One(T),
}

impl<T> Elements<T> {
    /// The elements with their indexes.
    pub(super) fn indexed(self) -> impl Iterator<Item = (usize, T)> {
        let all = match self {
            Self::Many(all) => all,
            Self::One(one) => vec![Some(one)],
        };
        let indexed = all.into_iter().enumerate();
        indexed.filter_map(|(index, element)| Some((index, element?)))
    }
}

/// The elements of a list.
pub(super) fn list<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let all = Elements::deserialize(from)?.indexed();
    Ok(all.map(|(_, element)| element).collect())
}

/// The members of an object, in order.
pub(super) fn named<'de, D, T>(from: D) -> Result<Vec<(String, T)>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let members = Map::<String, Value>::deserialize(from)?.into_iter();
    let member = |(name, value)| {
        let value = serde_json::from_value(value).map_err(D::Error::custom)?;
        Ok((name, value))
    };
    members.map(member).collect()
}

/// A member that is there, even if it is `null`.
pub(super) fn some<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(from).map(Some)
}

/// The id of a rule.
pub(super) fn rule_id<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
    String::deserialize(from).map(Arc::from)
}

/// Whether the word is another one than `any`.
pub(super) fn not_any<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(String::deserialize(from)? != "any")
}

/// Whether the word is `after`.
pub(super) fn is_after<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(String::deserialize(from)? == "after")
}

/// A side; `None` for both.
pub(super) fn speaker<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Side>, D::Error> {
    Ok(match String::deserialize(from)?.as_str() {
        "client" => Some(Side::Client),
        "agent" => Some(Side::Agent),
        _ => None,
    })
}

/// A regular expression of bounded size.
pub(super) fn regex(pattern: &str) -> Result<regex_lite::Regex, regex_lite::Error> {
    let mut builder = regex_lite::RegexBuilder::new(pattern);
    builder.size_limit(1 << 16).build()
}

pub(super) fn pattern<'de, D>(from: D) -> Result<Box<regex_lite::Regex>, D::Error>
where
    D: Deserializer<'de>,
{
    let pattern = String::deserialize(from)?;
    regex(&pattern).map(Box::new).map_err(D::Error::custom)
}
