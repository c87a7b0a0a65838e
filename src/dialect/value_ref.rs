//! References to values, and lookups in them without parsing containers.
//!
//! Values near the top of a message are found by its member index, deeper ones by skipping over the
//! text.

use std::borrow::Cow;

use super::pointer::JsonPointer;
use super::rewrite_cache::LazyValue;
use super::text::{self, JsonType};
use super::tree::{Member, Node};
use crate::jsonrpc::{Envelope, Frame, IndexedMember, MemberIndex, SlotId, Span};

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
    /// A value in the message whose reading is noted.
    lazy: Option<&'a LazyValue<'a>>,
}

impl<'a> IndexedObject<'a> {
    /// The body of a message, if it is an object with a member index.
    pub(super) fn new(frame: &'a Frame, at: &'a Envelope) -> Option<Self> {
        Some(Self {
            frame: frame.as_bytes(),
            span: at.body?,
            index: at.index.as_ref()?,
            member: None,
            lazy: None,
        })
    }

    /// The same, with a lazy value.
    pub(super) fn with_lazy(self, lazy: Option<&'a LazyValue<'a>>) -> Self {
        Self { lazy, ..self }
    }

    /// The object's text, for reading.
    pub(super) fn text(&self) -> &'a [u8] {
        if let Some((lazy, _)) = self.lazy_within() {
            lazy.read();
        }
        self.span.of(self.frame)
    }

    /// Writes the object.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if let Some((lazy, at)) = self.lazy_within() {
            lazy.mark_written(out.len() + at);
        }
        out.extend_from_slice(self.span.of(self.frame));
    }

    /// Writes the object and adds its members to the index; `false` when the index has no room.
    pub(super) fn write_member(&self, out: &mut Vec<u8>, index: &mut MemberIndex) -> bool {
        let (from, to) = (self.span.start as usize, out.len());
        self.write(out);
        self.member
            .is_some_and(|member| index.copy_members(self.index, member, from, to))
    }

    /// The lazy value, if it is inside the object, and its offset.
    fn lazy_within(&self) -> Option<(&'a LazyValue<'a>, usize)> {
        let lazy = self.lazy?;
        let at = lazy.span.start.checked_sub(self.span.start)?;
        (lazy.span.end <= self.span.end).then_some((lazy, at as usize))
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

    /// The member of a member of the body, where most rules look. It is not an element of an array.
    fn grandchild(&self, outer: &str, inner: &str) -> Option<&'a [u8]> {
        let found = self.index.last_inner(outer, inner, self.frame)?;
        Some(self.value(found))
    }

    /// The value of a member, for reading.
    fn value(&self, member: IndexedMember) -> &'a [u8] {
        match self.lazy.filter(|lazy| lazy.span == member.value) {
            Some(lazy) => lazy.read(),
            None => member.value.of(self.frame),
        }
    }

    /// All members, as those of an opened object.
    pub(super) fn members(self) -> Vec<Member<'a>> {
        let name = |member: &IndexedMember| Cow::Borrowed(member.name(self.frame));
        let mut members = Vec::with_capacity(8);
        match self.member {
            Some(own) => {
                let all = self.index.members_of(own);
                members.extend(all.map(|member| (name(&member), self.leaf(member))));
            }
            None => {
                let all = self.index.members();
                members.extend(all.map(|member| (name(&member), self.part(member))));
            }
        }
        members
    }

    /// A member of the body: an indexed object when it is an object.
    fn part(self, member: IndexedMember) -> Node<'a> {
        match self.leaf(member) {
            Node::Raw(text) if JsonType::of(&text) == JsonType::Object => Node::Indexed(Self {
                span: member.value,
                member: Some(member.slot),
                ..self
            }),
            leaf => leaf,
        }
    }

    /// A member without a further index.
    fn leaf(&self, member: IndexedMember) -> Node<'a> {
        match self.lazy.filter(|lazy| lazy.span == member.value) {
            Some(lazy) => Node::Lazy(lazy),
            None => Node::raw(member.value.of(self.frame)),
        }
    }
}

impl<'t, 'a> ValueRef<'t, 'a> {
    /// The body of a message, if there is one.
    pub(super) fn body(frame: &'a Frame, at: &'a Envelope) -> Option<Self>
    where
        'a: 't,
    {
        let object = IndexedObject::new(frame, at).map(Self::Indexed);
        object.or_else(|| at.body(frame).map(Self::Raw))
    }

    /// The value at a place relative to this one.
    pub(super) fn at(self, place: &JsonPointer) -> Option<Self> {
        let names = place.names();
        if let ([outer, inner], Self::Indexed(object) | Self::Node(&Node::Indexed(object))) =
            (names, self)
            && object.member.is_none()
            && !may_be_index(inner)
        {
            return object.grandchild(outer, inner).map(Self::Raw);
        }
        let mut here = self;
        for name in names {
            here = here.child(name)?;
        }
        match here {
            Self::Node(Node::Absent) => None,
            found => Some(found),
        }
    }

    pub(super) fn child(self, name: &str) -> Option<Self> {
        match self {
            Self::Raw(text) => child(text, name).map(Self::Raw),
            Self::Node(Node::Raw(text)) => child(text, name).map(Self::Raw),
            Self::Node(Node::Lazy(lazy)) => child(lazy.read(), name).map(Self::Raw),
            Self::Indexed(object) => object.child(name),
            Self::Node(Node::Indexed(object)) => object.child(name),
            Self::Node(Node::Object(members)) => members
                .iter()
                .rev()
                .find(|(raw, _)| text::same_name(raw, name))
                .map(|(_, value)| Self::Node(value)),
            Self::Node(Node::Array(items)) => items.get(array_index(name)?).map(Self::Node),
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

fn child<'t>(text: &'t [u8], name: &str) -> Option<&'t [u8]> {
    match JsonType::of(text) {
        JsonType::Object => text::member(text, name),
        JsonType::Array => text::items(text).nth(array_index(name)?),
        _ => None,
    }
}

/// Whether a name may be an index of an array.
pub(super) fn may_be_index(name: &str) -> bool {
    name.as_bytes().first().is_some_and(u8::is_ascii_digit)
}

/// An array index (RFC 6901, section 4: no leading zeros).
pub(super) fn array_index(name: &str) -> Option<usize> {
    let plain = name == "0" || !name.starts_with('0');
    name.parse()
        .ok()
        .filter(|_| plain && !name.starts_with('+'))
}
