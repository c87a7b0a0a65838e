//! A lazy tree over one message: a value remains text until a pointer leads into it.
//!
//! Values that no rule changes therefore keep the spelling of numbers, the order of members,
//! escapes and lone surrogates.

use std::borrow::Cow;

use super::pointer::JsonPointer;
use super::rewrite_cache::LazyValue;
use super::text::{self, JsonType};
use super::value_ref::{IndexedObject, ValueRef, array_index};
use crate::jsonrpc::MemberIndex;

/// A value of the tree.
#[derive(Clone, Debug)]
pub enum Node<'a> {
    /// No value; it is written as `null`.
    Absent,
    /// JSON text that is not parsed.
    Raw(Cow<'a, [u8]>),
    /// The same, of an object whose members are known from the scan.
    Indexed(IndexedObject<'a>),
    /// A value whose reading is noted.
    Lazy(&'a LazyValue<'a>),
    /// An opened object: raw names without quotes, and values, in their order.
    Object(Vec<Member<'a>>),
    /// An opened array.
    Array(Vec<Self>),
}

/// A member of an opened object: its raw name without quotes, and its value.
pub(super) type Member<'a> = (Cow<'a, [u8]>, Node<'a>);

impl<'a> Node<'a> {
    /// A value from JSON text.
    pub(super) fn raw(text: &'a [u8]) -> Self {
        Self::Raw(Cow::Borrowed(text))
    }

    /// A value from JSON text that is owned.
    pub(super) fn owned(text: Vec<u8>) -> Self {
        Self::Raw(Cow::Owned(text))
    }

    /// A string.
    pub(super) fn string(text: &str) -> Self {
        Self::owned(text::quote(text))
    }

    /// An object with these members.
    pub(super) fn object(members: Vec<(&'static str, Self)>) -> Self {
        let named = |(name, value): (&'static str, Self)| (Cow::Borrowed(name.as_bytes()), value);
        Self::Object(members.into_iter().map(named).collect())
    }

    /// The type of the value; `None` when it is absent.
    pub(super) fn kind(&self) -> Option<JsonType> {
        match self {
            Self::Absent => None,
            Self::Raw(text) => Some(JsonType::of(text)),
            Self::Indexed(_) | Self::Object(_) => Some(JsonType::Object),
            Self::Lazy(lazy) => Some(lazy.kind()),
            Self::Array(_) => Some(JsonType::Array),
        }
    }

    /// Parses raw text into a container, one level deep.
    pub(super) fn open(&mut self) {
        let opened = match self {
            Self::Raw(Cow::Borrowed(text)) => open(text, Cow::Borrowed),
            Self::Raw(Cow::Owned(text)) => open(text, |part| Cow::Owned(part.to_vec())),
            Self::Indexed(object) => Some(Self::Object(object.members())),
            Self::Lazy(lazy) => open(lazy.read(), Cow::Borrowed),
            _ => return,
        };
        if let Some(opened) = opened {
            *self = opened;
        }
    }

    /// The members, when it is an object.
    pub(super) fn members(&mut self) -> Option<&mut Vec<Member<'a>>> {
        self.open();
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The elements, when it is an array.
    pub(super) fn items(&mut self) -> Option<&mut Vec<Self>> {
        self.open();
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The value at a place, without parsing containers.
    pub(super) fn get(&self, place: &JsonPointer) -> Option<ValueRef<'_, 'a>> {
        ValueRef::Node(self).at(place)
    }

    /// The member of an object, without parsing it.
    pub(super) fn get_member(&self, name: &str) -> Option<ValueRef<'_, 'a>> {
        match ValueRef::Node(self).child(name)? {
            ValueRef::Node(Self::Absent) => None,
            found => Some(found),
        }
    }

    /// The text of the string at a place.
    pub(super) fn text_at(&self, place: &JsonPointer) -> Option<String> {
        let raw = self.get(place)?.json();
        text::string(&raw).map(Cow::into_owned)
    }

    /// The value at a place; containers on the path are parsed.
    pub(super) fn get_mut(&mut self, names: &[Box<str>]) -> Option<&mut Self> {
        let Some((name, rest)) = names.split_first() else {
            return (!matches!(self, Self::Absent)).then_some(self);
        };
        self.open();
        match self {
            Self::Object(members) => {
                let found = members
                    .iter()
                    .rposition(|(raw, _)| text::same_name(raw, name))?;
                members[found].1.get_mut(rest)
            }
            Self::Array(items) => items.get_mut(array_index(name)?)?.get_mut(rest),
            Self::Absent | Self::Raw(_) | Self::Indexed(_) | Self::Lazy(_) => None,
        }
    }

    /// Removes the value at a place; containers that become empty are removed, too.
    pub(super) fn take(&mut self, names: &[Box<str>]) -> Option<Self> {
        let Some((name, rest)) = names.split_first() else {
            return match std::mem::replace(self, Self::Absent) {
                Self::Absent => None,
                taken => Some(taken),
            };
        };
        self.open();
        match self {
            Self::Object(members) => {
                let found = members
                    .iter()
                    .rposition(|(raw, _)| text::same_name(raw, name))?;
                let taken = members[found].1.take(rest)?;
                if members[found].1.is_empty() {
                    members.remove(found);
                    let is_twin = |(raw, _): &Member<'_>| text::same_name(raw, name);
                    if members[..found].iter().any(is_twin) {
                        // Earlier members of the same name would become visible.
                        members.retain(|member| !is_twin(member));
                    }
                }
                Some(taken)
            }
            Self::Array(items) => {
                let found = array_index(name)?;
                let taken = items.get_mut(found)?.take(rest)?;
                if items[found].is_empty() {
                    items.remove(found);
                }
                Some(taken)
            }
            Self::Absent | Self::Raw(_) | Self::Indexed(_) | Self::Lazy(_) => None,
        }
    }

    /// Whether a take has left nothing here. A container that was empty before is raw and stays.
    fn is_empty(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Object(members) => members.is_empty(),
            Self::Array(items) => items.is_empty(),
            Self::Raw(_) | Self::Indexed(_) | Self::Lazy(_) => false,
        }
    }

    /// Puts a value at a place. Containers on the path are created where there is nothing or
    /// `null`; a name `0` or `-` makes an array. A scalar on the path is not overwritten.
    pub(super) fn put(&mut self, names: &[Box<str>], value: Self) -> Result<(), usize> {
        self.put_escaped(names, value, |name| {
            Cow::Owned(text::escaped(name).into_owned())
        })
    }

    /// The same for the names of a table, which need not be copied.
    pub(super) fn put_borrowed(&mut self, names: &'a [Box<str>], value: Self) -> Result<(), usize> {
        self.put_escaped(names, value, text::escaped)
    }

    fn put_escaped<'n>(
        &mut self,
        names: &'n [Box<str>],
        value: Self,
        escaped: fn(&'n str) -> Cow<'a, [u8]>,
    ) -> Result<(), usize> {
        let Some((name, rest)) = names.split_first() else {
            *self = value;
            return Ok(());
        };
        self.open();
        if matches!(self.kind(), None | Some(JsonType::Null)) {
            *self = match &**name {
                "0" | "-" => Self::Array(Vec::new()),
                _ => Self::Object(Vec::new()),
            };
        }
        let deeper = |depth: usize| depth + 1;
        match self {
            Self::Object(members) => {
                let found = members
                    .iter()
                    .rposition(|(raw, _)| text::same_name(raw, name));
                if let Some(found) = found {
                    return members[found]
                        .1
                        .put_escaped(rest, value, escaped)
                        .map_err(deeper);
                }
                let mut fresh = Self::Absent;
                fresh.put_escaped(rest, value, escaped).map_err(deeper)?;
                members.push((escaped(name), fresh));
                Ok(())
            }
            Self::Array(items) => {
                let at = if &**name == "-" {
                    items.len()
                } else {
                    array_index(name).ok_or(0_usize)?
                };
                let length = items.len();
                match items.get_mut(at) {
                    Some(item) => item.put_escaped(rest, value, escaped).map_err(deeper),
                    None if at == length => {
                        let mut fresh = Self::Absent;
                        fresh.put_escaped(rest, value, escaped).map_err(deeper)?;
                        items.push(fresh);
                        Ok(())
                    }
                    None => Err(0),
                }
            }
            Self::Absent | Self::Raw(_) | Self::Indexed(_) | Self::Lazy(_) => Err(0),
        }
    }

    /// Writes the value as JSON.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Absent => out.extend_from_slice(b"null"),
            Self::Raw(text) => out.extend_from_slice(text),
            Self::Indexed(object) => object.write(out),
            Self::Lazy(lazy) => lazy.write(out),
            Self::Object(members) => {
                out.push(b'{');
                let mut first = true;
                for (name, value) in members {
                    if matches!(value, Self::Absent) {
                        continue;
                    }
                    if std::mem::take(&mut first) {
                        out.push(b'"');
                    } else {
                        out.extend_from_slice(b",\"");
                    }
                    out.extend_from_slice(name);
                    out.extend_from_slice(b"\":");
                    value.write(out);
                }
                out.push(b'}');
            }
            Self::Array(items) => {
                out.push(b'[');
                for (at, value) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    value.write(out);
                }
                out.push(b']');
            }
        }
    }

    /// Writes an opened body, and its member index; `false` when the index is not complete.
    pub(super) fn write_body(&self, out: &mut Vec<u8>, index: &mut MemberIndex) -> bool {
        match self {
            Self::Object(members) => write_members(members, out, index, false),
            _ => {
                self.write(out);
                false
            }
        }
    }

    /// The value as JSON text.
    pub(super) fn json(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Raw(text) => return Cow::Borrowed(text),
            Self::Indexed(object) => return Cow::Borrowed(object.text()),
            Self::Lazy(lazy) => return Cow::Borrowed(lazy.read()),
            _ => {}
        }
        let mut out = Vec::new();
        self.write(&mut out);
        Cow::Owned(out)
    }

    /// A copy that outlives the frame.
    pub(super) fn to_static(&self) -> Node<'static> {
        Node::owned(self.json().into_owned())
    }
}

/// Writes the members of a body, or of one of its members if `inner`.
fn write_members(
    members: &[Member<'_>],
    out: &mut Vec<u8>,
    index: &mut MemberIndex,
    inner: bool,
) -> bool {
    let mut whole = true;
    out.push(b'{');
    let mut first = true;
    for (name, value) in members {
        if matches!(value, Node::Absent) {
            continue;
        }
        if std::mem::take(&mut first) {
            out.push(b'"');
        } else {
            out.extend_from_slice(b",\"");
        }
        let at = out.len();
        out.extend_from_slice(name);
        out.extend_from_slice(b"\":");
        let mark = index.push(at, out.len(), inner);
        whole &= !name.contains(&b'\\');
        whole &= match value {
            Node::Object(members) if !inner => write_members(members, out, index, true),
            Node::Indexed(object) if !inner => object.write_member(out, index),
            value => {
                value.write(out);
                inner || value.kind() != Some(JsonType::Object)
            }
        };
        match mark {
            Some(mark) => index.set_end(mark, out.len()),
            None => whole = false,
        }
    }
    out.push(b'}');
    whole
}

fn open<'a, 't>(text: &'t [u8], part: impl Fn(&'t [u8]) -> Cow<'a, [u8]>) -> Option<Node<'a>> {
    match JsonType::of(text) {
        JsonType::Object => Some(Node::Object(
            text::members(text)
                .map(|(name, value)| (part(name), Node::Raw(part(value))))
                .collect(),
        )),
        JsonType::Array => Some(Node::Array(
            text::items(text)
                .map(|value| Node::Raw(part(value)))
                .collect(),
        )),
        _ => None,
    }
}
