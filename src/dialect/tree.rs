//! A lazy tree over one message: a value remains text until a pointer leads into it.
//!
//! Values that no rule changes therefore keep the spelling of numbers, the order of members,
//! escapes and lone surrogates. Values near the top of a message are found by its member index, deeper
//! ones by skipping over the text.

use std::borrow::Cow;

use super::pointer::{JsonPointer, own_names};
use super::text::{self, JsonType};
use jsonrpc::{Envelope, Frame, IndexedMember, MemberIndex, SlotId, Span};

/// A value of the tree.
#[derive(Clone, Debug)]
pub enum Node<'a> {
    /// No value; it is written as `null`.
    Absent,
    /// JSON text that is not parsed.
    Raw(Cow<'a, [u8]>),
    /// The same, of an object whose members are known from the scan.
    Indexed(IndexedObject<'a>),
    /// An opened object: raw names without quotes, and values, in their order.
    Object(Vec<Member<'a>>),
    /// An opened array.
    Array(Vec<Self>),
}

/// A value on the path is neither an object nor an array; nothing was changed.
#[derive(Clone, Copy, Debug)]
pub struct Blocked;

/// A member of an opened object: its raw name without quotes, and its value.
pub(super) type Member<'a> = (Cow<'a, [u8]>, Node<'a>);

/// A reference to a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum ValueRef<'t, 'a> {
    Raw(&'t [u8]),
    Indexed(IndexedObject<'a>),
    Node(&'t Node<'a>),
}

/// An object in a message whose member index is known: its body, or a member of that.
#[derive(Clone, Copy, Debug)]
pub struct IndexedObject<'a> {
    frame: &'a [u8],
    /// Its position in the frame.
    span: Span,
    index: &'a MemberIndex,
    /// The index of the member of the body that it is; `None` when it is the body itself.
    member: Option<SlotId>,
}

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

    /// The type of the value; `None` when it is absent.
    pub(super) fn kind(&self) -> Option<JsonType> {
        match self {
            Self::Absent => None,
            Self::Raw(text) => Some(JsonType::of(text)),
            Self::Indexed(_) | Self::Object(_) => Some(JsonType::Object),
            Self::Array(_) => Some(JsonType::Array),
        }
    }

    /// Parses raw text into a container, one level deep.
    pub(super) fn open(&mut self) {
        let opened = match self {
            Self::Raw(Cow::Borrowed(text)) => open(text, Cow::Borrowed),
            Self::Raw(Cow::Owned(text)) => open(text, |part| Cow::Owned(part.to_vec())),
            Self::Indexed(object) => Some(Self::Object(object.members())),
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
        ValueRef::Node(self).at(place.names().iter().map(|name| &**name))
    }

    /// The value at a place that is written in this source.
    pub(super) fn find(&self, at: &str) -> Option<ValueRef<'_, 'a>> {
        ValueRef::Node(self).at(own_names(at))
    }

    /// The text of the string at a place.
    pub(super) fn text_at(&self, place: &JsonPointer) -> Option<String> {
        let raw = self.get(place)?.json();
        text::string(&raw).map(Cow::into_owned)
    }

    /// The value of a member or an element; the container is parsed.
    fn child_mut(&mut self, name: &str) -> Option<&mut Self> {
        self.open();
        match self {
            Self::Object(members) => {
                let found = position(members, name)?;
                Some(&mut members[found].1)
            }
            Self::Array(items) => items.get_mut(text::array_index(name)?),
            Self::Absent | Self::Raw(_) | Self::Indexed(_) => None,
        }
    }

    /// The value at a place; containers on the path are parsed.
    pub fn get_mut(&mut self, names: &[Box<str>]) -> Option<&mut Self> {
        let mut names = names.iter();
        let found = names.try_fold(self, |node, name| node.child_mut(name))?;
        (!matches!(found, Self::Absent)).then_some(found)
    }

    /// Removes the value at a place; containers that become empty are removed, too.
    pub fn take(&mut self, names: &[Box<str>]) -> Option<Self> {
        let Some((name, rest)) = names.split_first() else {
            let taken = std::mem::replace(self, Self::Absent);
            return (!matches!(taken, Self::Absent)).then_some(taken);
        };
        let inner = self.child_mut(name)?;
        let taken = inner.take(rest)?;
        if inner.is_empty() {
            match self {
                // Earlier members of the same name would become visible.
                Self::Object(members) => members.retain(|(raw, _)| !text::same_name(raw, name)),
                Self::Array(items) => drop(items.remove(text::array_index(name)?)),
                Self::Absent | Self::Raw(_) | Self::Indexed(_) => {}
            }
        }
        Some(taken)
    }

    /// Whether a take has left nothing here. A container that was empty before is raw and stays.
    fn is_empty(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Object(members) => members.is_empty(),
            Self::Array(items) => items.is_empty(),
            Self::Raw(_) | Self::Indexed(_) => false,
        }
    }

    /// Puts a value at a place. Containers on the path are created where there is nothing or
    /// `null`; a name `0` or `-` makes an array.
    ///
    /// # Errors
    /// When a scalar is on the path; it is not overwritten.
    pub fn put(&mut self, names: &[Box<str>], value: Self) -> Result<(), Blocked> {
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
        if let Some(there) = self.child_mut(name) {
            return there.put(rest, value);
        }
        let mut fresh = Self::Absent;
        match self {
            Self::Object(members) => {
                fresh.put(rest, value)?;
                members.push((Cow::Owned(text::escaped(name)), fresh));
            }
            Self::Array(items)
                if &**name == "-" || text::array_index(name) == Some(items.len()) =>
            {
                fresh.put(rest, value)?;
                items.push(fresh);
            }
            _ => return Err(Blocked),
        }
        Ok(())
    }

    /// Writes the value as JSON.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Absent => out.extend_from_slice(b"null"),
            Self::Raw(text) => out.extend_from_slice(text),
            Self::Indexed(object) => out.extend_from_slice(object.text()),
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

    /// The value as JSON text.
    pub(super) fn json(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Raw(text) => return Cow::Borrowed(text),
            Self::Indexed(object) => return Cow::Borrowed(object.text()),
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

impl<'a> IndexedObject<'a> {
    /// The body of a message, if it is an object with a member index.
    pub(super) fn new(frame: &'a Frame, at: &'a Envelope) -> Option<Self> {
        Some(Self {
            frame: frame.as_bytes(),
            span: at.body?,
            index: at.index.as_ref()?,
            member: None,
        })
    }

    /// The object's text.
    pub(super) fn text(&self) -> &'a [u8] {
        self.span.of(self.frame)
    }

    /// The member with that name. The last one counts, as it does for most readers.
    pub(super) fn child<'t>(self, name: &str) -> Option<ValueRef<'t, 'a>>
    where
        'a: 't,
    {
        let called = |member: &IndexedMember| member.has_name(name, self.frame);
        match self.member {
            Some(own) => {
                let found = self.index.members_of(own).rfind(called)?;
                Some(ValueRef::Raw(self.value(found)))
            }
            None => {
                let found = self.index.last_member(name, self.frame)?;
                Some(match self.part(found) {
                    Node::Indexed(object) => ValueRef::Indexed(object),
                    _ => ValueRef::Raw(self.value(found)),
                })
            }
        }
    }

    /// The value of a member.
    fn value(&self, member: IndexedMember) -> &'a [u8] {
        member.value.of(self.frame)
    }

    /// All members, as those of an opened object.
    pub(super) fn members(self) -> Vec<Member<'a>> {
        let name = |member: &IndexedMember| Cow::Borrowed(member.name(self.frame));
        match self.member {
            Some(own) => {
                let all = self.index.members_of(own);
                let raw = |member| (name(&member), Node::raw(self.value(member)));
                all.map(raw).collect()
            }
            None => {
                let all = self.index.members();
                all.map(|member| (name(&member), self.part(member)))
                    .collect()
            }
        }
    }

    /// A member of the body: an indexed object when it is an object.
    fn part(self, member: IndexedMember) -> Node<'a> {
        match JsonType::of(self.value(member)) {
            JsonType::Object => Node::Indexed(Self {
                span: member.value,
                member: Some(member.slot),
                ..self
            }),
            _ => Node::raw(self.value(member)),
        }
    }
}

impl<'t, 'a> ValueRef<'t, 'a> {
    /// The value at a place relative to this one.
    pub(super) fn at<'n>(self, mut names: impl Iterator<Item = &'n str>) -> Option<Self> {
        match names.try_fold(self, |here, name| here.child(name))? {
            Self::Node(Node::Absent) => None,
            found => Some(found),
        }
    }

    pub(super) fn child(self, name: &str) -> Option<Self> {
        match self {
            Self::Raw(text) => text::child(text, name).map(Self::Raw),
            Self::Node(Node::Raw(text)) => text::child(text, name).map(Self::Raw),
            Self::Indexed(object) => object.child(name),
            Self::Node(Node::Indexed(object)) => object.child(name),
            Self::Node(Node::Object(members)) => members
                .iter()
                .rev()
                .find(|(raw, _)| text::same_name(raw, name))
                .map(|(_, value)| Self::Node(value)),
            Self::Node(Node::Array(items)) => items.get(text::array_index(name)?).map(Self::Node),
            Self::Node(Node::Absent) => None,
        }
    }

    pub(super) fn kind(self) -> JsonType {
        match self {
            Self::Raw(text) => JsonType::of(text),
            Self::Indexed(_) => JsonType::Object,
            Self::Node(node) => node.kind().unwrap_or(JsonType::Null),
        }
    }

    pub(super) fn json(self) -> Cow<'t, [u8]> {
        match self {
            Self::Raw(text) => Cow::Borrowed(text),
            Self::Indexed(object) => Cow::Borrowed(object.text()),
            Self::Node(node) => node.json(),
        }
    }

    pub(super) fn to_node(self) -> Node<'a> {
        match self {
            Self::Raw(text) => Node::owned(text.to_vec()),
            Self::Indexed(object) => Node::Indexed(object),
            Self::Node(node) => node.clone(),
        }
    }
}

/// The last member with that name.
fn position(members: &[Member<'_>], name: &str) -> Option<usize> {
    let mut all = members.iter();
    all.rposition(|(raw, _)| text::same_name(raw, name))
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
