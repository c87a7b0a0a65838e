//! Objects by the names of their members: how they are built, read and changed.
//!
//! A list of names is written as words of one text: `"sessionId title"`.

use std::borrow::Cow;

use super::text::{self, JsonType};
use super::tree::{Member, Node, ValueRef};

/// An object with these members. One whose value is `None` or [`Node::Absent`] is left out.
macro_rules! object {
    ($($name:literal: $value:expr),* $(,)?) => {
        $crate::Node::object([$(($name, $crate::Node::from($value))),*])
    };
}
pub(super) use object;

/// A value that outlives its message.
pub(super) type Json = Node<'static>;

/// The member that every object may have.
const META: &str = "_meta";
/// What an allocation needs beside its bytes.
const ALLOCATION: usize = 16;
/// The member of it under which the bridge says what it has done.
const OWN: &str = "acp-relay";

impl<'a> Node<'a> {
    /// An object with these members; those that are absent are left out.
    pub(super) fn object(members: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        let said = members
            .into_iter()
            .filter(|(_, value)| !matches!(value, Self::Absent));
        let named = |(name, value): (&'static str, Self)| (Cow::Borrowed(name.as_bytes()), value);
        Self::Object(said.map(named).collect())
    }

    /// The member of that name; `null` is one.
    pub(super) fn member(&self, name: &str) -> Option<ValueRef<'_, 'a>> {
        match ValueRef::Node(self).child(name)? {
            ValueRef::Node(Node::Absent) => None,
            found => Some(found),
        }
    }

    /// The member of that name, unless it is `null`.
    pub(super) fn value(&self, name: &str) -> Option<Json> {
        let found = self.member(name)?;
        (found.kind() != JsonType::Null).then(|| Node::owned(found.json().into_owned()))
    }

    /// The member of that name; absent when it is not there, or `null`.
    pub(super) fn part(&self, name: &str) -> Json {
        self.value(name).unwrap_or(Node::Absent)
    }

    /// The text of a member that is a string.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        text::string(&self.member(name)?.json()).map(Cow::into_owned)
    }

    /// The text of a member; empty when it is no string.
    pub(super) fn word(&self, name: &str) -> String {
        self.text(name).unwrap_or_default()
    }

    /// The text of a member that identifies something; one that is too long to be remembered is
    /// none.
    pub(super) fn id(&self, name: &str) -> Option<String> {
        self.text(name).filter(|id| id.len() <= 4096)
    }

    /// Whether a member is that text.
    pub(super) fn says(&self, name: &str, text: &str) -> bool {
        self.text(name).as_deref() == Some(text)
    }

    /// Whether there is a member that is `null`.
    pub(super) fn is_null(&self, name: &str) -> bool {
        self.member(name)
            .is_some_and(|found| found.kind() == JsonType::Null)
    }

    /// The elements of a member that is an array.
    pub(super) fn array(&self, name: &str) -> Option<Vec<Json>> {
        let found = self.member(name)?.json();
        let items = text::items(&found).map(|item| Node::owned(item.to_vec()));
        (JsonType::of(&found) == JsonType::Array).then(|| items.collect())
    }

    /// The elements of a member; none when it is no array.
    pub(super) fn list(&self, name: &str) -> Vec<Json> {
        self.array(name).unwrap_or_default()
    }

    /// Sets a member; it is removed if the value is absent.
    pub(super) fn set(&mut self, name: &'static str, value: impl Into<Self>) {
        self.remove(name);
        let value = value.into();
        if !matches!(value, Self::Absent)
            && let Some(members) = self.members()
        {
            members.push((Cow::Borrowed(name.as_bytes()), value));
        }
    }

    /// Removes a member.
    pub(super) fn remove(&mut self, name: &str) {
        if let Some(members) = self.members() {
            members.retain(|(raw, _)| !text::same_name(raw, name));
        }
    }

    /// Changes a member that is there and not `null`.
    pub(super) fn change<T>(&mut self, name: &'static str, change: impl FnOnce(&mut Json) -> T) {
        if let Some(mut value) = self.value(name) {
            change(&mut value);
            self.set(name, value);
        }
    }

    /// Changes the elements of a member that is an array.
    pub(super) fn change_each<T>(
        &mut self,
        name: &'static str,
        mut change: impl FnMut(&mut Json) -> T,
    ) {
        if let Some(mut all) = self.array(name) {
            for one in &mut all {
                change(one);
            }
            self.set(name, all);
        }
    }

    /// Keeps the members with these names, and a `_meta` that is not `null`. Returns whether it
    /// removed others.
    pub(super) fn keep_only(&mut self, names: &str) -> bool {
        let Some(members) = self.members() else {
            return false;
        };
        let before = members.len();
        let is_named = |raw: &[u8]| names.split(' ').any(|name| text::same_name(raw, name));
        let is_meta = |(raw, value): &Member<'a>| {
            text::same_name(raw, META) && !matches!(value.kind(), None | Some(JsonType::Null))
        };
        members.retain(|member| is_named(&member.0) || is_meta(member));
        members.len() < before
    }

    /// A copy of the object with these members and its `_meta`, as [`Node::keep_only`] leaves it.
    pub(super) fn only(&self, names: &str) -> Json {
        let mut view = match self {
            Self::Raw(text) => Node::raw(text),
            other => other.clone(),
        };
        view.keep_only(names);
        match view {
            Node::Object(members) => {
                let owned = |(name, value): &Member<'_>| {
                    (Cow::Owned(name.clone().into_owned()), value.to_static())
                };
                Node::Object(members.iter().map(owned).collect())
            }
            other => other.to_static(),
        }
    }

    /// Removes the members that are `null`.
    pub(super) fn drop_nulls(&mut self) {
        if let Some(members) = self.members() {
            members.retain(|(_, value)| !matches!(value.kind(), None | Some(JsonType::Null)));
        }
    }

    /// The memory behind it, in bytes.
    pub(super) fn size(&self) -> usize {
        let text = |text: &Cow<'_, [u8]>| match text {
            Cow::Owned(text) => ALLOCATION + text.capacity(),
            Cow::Borrowed(text) => text.len(),
        };
        match self {
            Self::Object(members) => {
                let inside = members
                    .iter()
                    .map(|(name, value)| text(name) + value.size());
                members.capacity() * size_of::<Member<'_>>() + inside.sum::<usize>()
            }
            Self::Array(items) => {
                items.capacity() * size_of::<Self>() + items.iter().map(Self::size).sum::<usize>()
            }
            Self::Raw(json) => text(json),
            Self::Indexed(object) => object.text().len(),
            Self::Absent => 0,
        }
    }
}

impl Node<'static> {
    /// Reports something about the object under its `_meta`.
    pub(super) fn report(&mut self, name: &'static str, what: impl Into<Self>) {
        let mut meta = self.value(META).unwrap_or_else(|| object! {});
        let mut own = meta.value(OWN).unwrap_or_else(|| object! {});
        own.set(name, what);
        meta.set(OWN, own);
        self.set(META, meta);
    }

    /// Puts the members of a `_meta`, if there is one, beside those that the bridge has put into the
    /// object's.
    pub(super) fn add_meta(&mut self, meta: Option<Self>) {
        let mut own = self.value(META).unwrap_or(Self::Absent);
        let Some(mut meta) = meta else { return };
        if let Some(members) = meta.members() {
            let own = own.members().map(std::mem::take).unwrap_or_default();
            members.retain(|(name, _)| own.iter().all(|(known, _)| known != name));
            members.extend(own);
            self.set(META, meta);
        }
    }
}

impl From<&str> for Node<'_> {
    fn from(text: &str) -> Self {
        Self::string(text)
    }
}

impl From<String> for Node<'_> {
    fn from(text: String) -> Self {
        Self::string(&text)
    }
}

impl<'a> From<Vec<Self>> for Node<'a> {
    fn from(items: Vec<Self>) -> Self {
        Self::Array(items)
    }
}

impl<T: AsRef<str>> From<&[T]> for Node<'_> {
    fn from(texts: &[T]) -> Self {
        let texts = texts.iter().map(|text| Self::string(text.as_ref()));
        Self::Array(texts.collect())
    }
}

impl<'a, T: Into<Self>> From<Option<T>> for Node<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Into::into)
    }
}

/// Values that JSON spells as Rust does.
macro_rules! from_plain {
    ($($plain:ty),*) => {
        $(impl From<$plain> for Node<'_> {
            fn from(value: $plain) -> Self {
                Self::owned(value.to_string().into_bytes())
            }
        })*
    };
}
from_plain!(bool, i32, u64);
