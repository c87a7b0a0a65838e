//! A lazy tree over one message: a value stays the bytes it came as until a pointer walks into it.
//!
//! What no rule touches therefore keeps its number spelling, its order of members, its escapes
//! and its lone surrogates. Not here: which edits are made (see `rewrite`).

use std::borrow::Cow;

use jsonptr::{Pointer, PointerBuf};

use super::pointer::Place;
use super::text::{self, Type};

/// A value of the tree.
#[derive(Clone, Debug)]
pub enum Node<'a> {
    /// Nothing is here; it is written as `null`.
    Absent,
    /// JSON text that nobody has walked into.
    Raw(Cow<'a, [u8]>),
    /// An opened object: raw names without quotes, and values, in their order.
    Object(Vec<Member<'a>>),
    /// An opened array.
    Array(Vec<Self>),
}

/// A member of an opened object: its raw name without quotes, and its value.
pub(super) type Member<'a> = (Cow<'a, [u8]>, Node<'a>);

/// A value that is looked at without opening anything.
#[derive(Clone, Copy, Debug)]
pub(super) enum Look<'t, 'a> {
    Raw(&'t [u8]),
    Node(&'t Node<'a>),
}

/// An assignment met a scalar on its way; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` leads through a value that is neither an object nor an array")]
pub struct Blocked(pub PointerBuf);

impl<'a> Node<'a> {
    /// A value from JSON text.
    pub(super) fn raw(text: &'a [u8]) -> Self {
        Self::Raw(Cow::Borrowed(text))
    }

    /// A value from JSON text of our own.
    pub(super) fn made(text: Vec<u8>) -> Self {
        Self::Raw(Cow::Owned(text))
    }

    /// A string.
    pub(super) fn string(text: &str) -> Self {
        Self::made(text::quote(text))
    }

    /// An object with one member.
    pub(super) fn object(members: Vec<(&'static str, Self)>) -> Self {
        let named = |(name, value): (&'static str, Self)| (Cow::Borrowed(name.as_bytes()), value);
        Self::Object(members.into_iter().map(named).collect())
    }

    /// What the value is; `None` when it is absent.
    pub(super) fn kind(&self) -> Option<Type> {
        match self {
            Self::Absent => None,
            Self::Raw(text) => Some(Type::of(text)),
            Self::Object(_) => Some(Type::Object),
            Self::Array(_) => Some(Type::Array),
        }
    }

    /// Turns raw text into an opened container, one level deep.
    pub(super) fn open(&mut self) {
        let Self::Raw(raw) = self else { return };
        let opened = match raw {
            Cow::Borrowed(text) => open(text, Cow::Borrowed),
            Cow::Owned(text) => open(text, |part| Cow::Owned(part.to_vec())),
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

    /// Looks at a place without opening anything.
    pub(super) fn look(&self, place: &Place) -> Option<Look<'_, 'a>> {
        let mut here = Look::Node(self);
        for name in place.names() {
            here = here.child(name)?;
        }
        match here {
            Look::Node(Self::Absent) => None,
            found => Some(found),
        }
    }

    /// The text of the string at a place.
    pub(super) fn text_at(&self, place: &Place) -> Option<String> {
        let raw = self.look(place)?.json();
        text::string(&raw).map(Cow::into_owned)
    }

    /// The value at a place, opened as far as there.
    pub(super) fn at(&mut self, names: &[Box<str>]) -> Option<&mut Self> {
        let Some((name, rest)) = names.split_first() else {
            return (!matches!(self, Self::Absent)).then_some(self);
        };
        self.open();
        match self {
            Self::Object(members) => {
                let found = members
                    .iter()
                    .rposition(|(raw, _)| text::same_name(raw, name))?;
                members[found].1.at(rest)
            }
            Self::Array(items) => items.get_mut(index(name)?)?.at(rest),
            Self::Absent | Self::Raw(_) => None,
        }
    }

    /// Takes the value at a place out; containers that this empties go with it.
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
                if members[found].1.is_spent() {
                    // Hidden twins of the name would come to light again.
                    members.retain(|(raw, _)| !text::same_name(raw, name));
                }
                Some(taken)
            }
            Self::Array(items) => {
                let found = index(name)?;
                let taken = items.get_mut(found)?.take(rest)?;
                if items[found].is_spent() {
                    items.remove(found);
                }
                Some(taken)
            }
            Self::Absent | Self::Raw(_) => None,
        }
    }

    /// Whether a take has left nothing here. A container that came empty is raw and stays.
    fn is_spent(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Object(members) => members.is_empty(),
            Self::Array(items) => items.is_empty(),
            Self::Raw(_) => false,
        }
    }

    /// Puts a value at a place. Objects on the way are made where nothing, or `null`, is; a name
    /// `0` or `-` makes an array. A scalar on the way is not overwritten.
    pub(super) fn put(&mut self, names: &[Box<str>], value: Self) -> Result<(), usize> {
        let Some((name, rest)) = names.split_first() else {
            *self = value;
            return Ok(());
        };
        self.open();
        if matches!(self.kind(), None | Some(Type::Null)) {
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
                    return members[found].1.put(rest, value).map_err(deeper);
                }
                let mut fresh = Self::Absent;
                fresh.put(rest, value).map_err(deeper)?;
                let quoted = text::quote(name);
                let raw = quoted[1..quoted.len() - 1].to_vec();
                members.push((Cow::Owned(raw), fresh));
                Ok(())
            }
            Self::Array(items) => {
                let at = if &**name == "-" {
                    items.len()
                } else {
                    index(name).ok_or(0_usize)?
                };
                let length = items.len();
                match items.get_mut(at) {
                    Some(item) => item.put(rest, value).map_err(deeper),
                    None if at == length => {
                        let mut fresh = Self::Absent;
                        fresh.put(rest, value).map_err(deeper)?;
                        items.push(fresh);
                        Ok(())
                    }
                    None => Err(0),
                }
            }
            Self::Absent | Self::Raw(_) => Err(0),
        }
    }

    /// Writes the value as JSON.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Absent => out.extend_from_slice(b"null"),
            Self::Raw(text) => out.extend_from_slice(text),
            Self::Object(members) => {
                out.push(b'{');
                let mut first = true;
                for (name, value) in members {
                    if matches!(value, Self::Absent) {
                        continue;
                    }
                    if !std::mem::take(&mut first) {
                        out.push(b',');
                    }
                    out.push(b'"');
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
        if let Self::Raw(text) = self {
            return Cow::Borrowed(text);
        }
        let mut out = Vec::new();
        self.write(&mut out);
        Cow::Owned(out)
    }

    /// The same value, kept beyond its frame.
    pub(super) fn keep(&self) -> Node<'static> {
        Node::made(self.json().into_owned())
    }
}

impl<'t, 'a> Look<'t, 'a> {
    fn child(self, name: &str) -> Option<Self> {
        match self {
            Self::Raw(text) => child(text, name).map(Self::Raw),
            Self::Node(Node::Raw(text)) => child(text, name).map(Self::Raw),
            Self::Node(Node::Object(members)) => members
                .iter()
                .rev()
                .find(|(raw, _)| text::same_name(raw, name))
                .map(|(_, value)| Self::Node(value)),
            Self::Node(Node::Array(items)) => items.get(index(name)?).map(Self::Node),
            Self::Node(Node::Absent) => None,
        }
    }

    pub(super) fn kind(self) -> Type {
        match self {
            Self::Raw(text) => Type::of(text),
            Self::Node(node) => node.kind().unwrap_or(Type::Null),
        }
    }

    pub(super) fn json(self) -> Cow<'t, [u8]> {
        match self {
            Self::Raw(text) => Cow::Borrowed(text),
            Self::Node(node) => node.json(),
        }
    }

    pub(super) fn keep(self) -> Node<'a> {
        match self {
            Self::Raw(text) => Node::made(text.to_vec()),
            Self::Node(node) => node.clone(),
        }
    }
}

fn child<'t>(text: &'t [u8], name: &str) -> Option<&'t [u8]> {
    match Type::of(text) {
        Type::Object => text::member(text, name),
        Type::Array => text::items(text).nth(index(name)?),
        _ => None,
    }
}

/// An array index (RFC 6901, section 4: no leading zeros).
fn index(name: &str) -> Option<usize> {
    let plain = name == "0" || !name.starts_with('0');
    name.parse()
        .ok()
        .filter(|_| plain && !name.starts_with('+'))
}

fn open<'a, 't>(text: &'t [u8], part: impl Fn(&'t [u8]) -> Cow<'a, [u8]>) -> Option<Node<'a>> {
    match Type::of(text) {
        Type::Object => Some(Node::Object(
            text::members(text)
                .map(|(name, value)| (part(name), Node::Raw(part(value))))
                .collect(),
        )),
        Type::Array => Some(Node::Array(
            text::items(text)
                .map(|value| Node::Raw(part(value)))
                .collect(),
        )),
        _ => None,
    }
}

impl<'a> jsonptr::resolve::ResolveMut for Node<'a> {
    type Value = Self;
    type Error = Blocked;

    fn resolve_mut(&mut self, ptr: &Pointer) -> Result<&mut Self::Value, Self::Error> {
        let place = Place::from(ptr.to_buf());
        self.at(place.names()).ok_or_else(|| Blocked(ptr.to_buf()))
    }
}

impl<'a> jsonptr::delete::Delete for Node<'a> {
    type Value = Self;

    fn delete(&mut self, ptr: &Pointer) -> Option<Self::Value> {
        self.take(Place::from(ptr.to_buf()).names())
    }
}

impl<'a> jsonptr::assign::Assign for Node<'a> {
    type Value = Self;
    type Error = Blocked;

    fn assign<V>(&mut self, ptr: &Pointer, value: V) -> Result<Option<Self::Value>, Self::Error>
    where
        V: Into<Self::Value>,
    {
        let place = Place::from(ptr.to_buf());
        let old = self.look(&place).map(Look::keep);
        match self.put(place.names(), value.into()) {
            Ok(()) => Ok(old),
            Err(_) => Err(Blocked(ptr.to_buf())),
        }
    }
}
