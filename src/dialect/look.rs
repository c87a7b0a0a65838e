//! References to values, and lookups in them without parsing containers.
//!
//! Values near the top of a message are found by its member index, deeper ones by skipping over the
//! text.

use std::borrow::Cow;

use super::habit::Seal;
use super::pointer::Place;
use super::text::{self, Type};
use super::tree::{Member, Node};
use crate::jsonrpc::{Envelope, Frame, Nth, Outline, Outlined, Span};

/// A reference to a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Look<'t, 'a> {
    Raw(&'t [u8]),
    Sketch(Sketch<'a>),
    Node(&'t Node<'a>),
}

/// An object in a message whose member index is known: its body, or a member of that.
#[derive(Clone, Copy, Debug)]
pub struct Sketch<'a> {
    frame: &'a [u8],
    /// Its position in the frame.
    span: Span,
    outline: &'a Outline,
    /// The index of the member of the body that it is; `None` when it is the body itself.
    member: Option<Nth>,
    /// A value in the message whose reading is noted.
    seal: Option<&'a Seal<'a>>,
}

impl<'a> Sketch<'a> {
    /// The body of a message, if it is an object with a member index.
    pub(super) fn of(frame: &'a Frame, at: &'a Envelope) -> Option<Self> {
        Some(Self {
            frame: frame.as_bytes(),
            span: at.body?,
            outline: at.outline.as_ref()?,
            member: None,
            seal: None,
        })
    }

    /// The same, with a lazy value.
    pub(super) fn sealed(self, seal: Option<&'a Seal<'a>>) -> Self {
        Self { seal, ..self }
    }

    /// The object's text, for reading.
    pub(super) fn text(&self) -> &'a [u8] {
        if let Some((seal, _)) = self.seal_within() {
            seal.opened();
        }
        self.span.of(self.frame)
    }

    /// Writes the object.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if let Some((seal, at)) = self.seal_within() {
            seal.is_written(out.len() + at);
        }
        out.extend_from_slice(self.span.of(self.frame));
    }

    /// Writes the object and adds its members to the index; `false` when the index has no room.
    pub(super) fn write_member(&self, out: &mut Vec<u8>, outline: &mut Outline) -> bool {
        let (from, to) = (self.span.start as usize, out.len());
        self.write(out);
        self.member
            .is_some_and(|member| outline.copy(self.outline, member, from, to))
    }

    /// The lazy value, if it is inside the object, and its offset.
    fn seal_within(&self) -> Option<(&'a Seal<'a>, usize)> {
        let seal = self.seal?;
        let at = seal.span.start.checked_sub(self.span.start)?;
        (seal.span.end <= self.span.end).then_some((seal, at as usize))
    }

    /// The member with that name. The last one counts, as it does for most readers.
    pub(super) fn child<'t>(self, name: &str) -> Option<Look<'t, 'a>>
    where
        'a: 't,
    {
        let called = |member: &Outlined| member.is_called(name, self.frame);
        match self.member {
            Some(own) => {
                let found = self.outline.members_of(own).rfind(called)?;
                Some(Look::Raw(self.value(found)))
            }
            None => {
                let found = self.outline.last_member(name, self.frame)?;
                Some(match self.part(found) {
                    Node::Sketch(sketch) => Look::Sketch(sketch),
                    _ => Look::Raw(self.value(found)),
                })
            }
        }
    }

    /// The member of a member of the body, where most rules look. It is not an element of an array.
    fn grandchild(&self, outer: &str, inner: &str) -> Option<&'a [u8]> {
        let found = self.outline.last_inner(outer, inner, self.frame)?;
        Some(self.value(found))
    }

    /// The value of a member, for reading.
    fn value(&self, member: Outlined) -> &'a [u8] {
        match self.seal.filter(|seal| seal.span == member.value) {
            Some(seal) => seal.opened(),
            None => member.value.of(self.frame),
        }
    }

    /// All members, as those of an opened object.
    pub(super) fn members(self) -> Vec<Member<'a>> {
        let name = |member: &Outlined| Cow::Borrowed(member.name(self.frame));
        let mut members = Vec::with_capacity(8);
        match self.member {
            Some(own) => {
                let all = self.outline.members_of(own);
                members.extend(all.map(|member| (name(&member), self.leaf(member))));
            }
            None => {
                let all = self.outline.members();
                members.extend(all.map(|member| (name(&member), self.part(member))));
            }
        }
        members
    }

    /// A member of the body: an indexed object when it is an object.
    fn part(self, member: Outlined) -> Node<'a> {
        match self.leaf(member) {
            Node::Raw(text) if Type::of(&text) == Type::Object => Node::Sketch(Self {
                span: member.value,
                member: Some(member.nth),
                ..self
            }),
            leaf => leaf,
        }
    }

    /// A member without a further index.
    fn leaf(&self, member: Outlined) -> Node<'a> {
        match self.seal.filter(|seal| seal.span == member.value) {
            Some(seal) => Node::Sealed(seal),
            None => Node::raw(member.value.of(self.frame)),
        }
    }
}

impl<'t, 'a> Look<'t, 'a> {
    /// The body of a message, if there is one.
    pub(super) fn body(frame: &'a Frame, at: &'a Envelope) -> Option<Self>
    where
        'a: 't,
    {
        let sketch = Sketch::of(frame, at).map(Self::Sketch);
        sketch.or_else(|| at.body(frame).map(Self::Raw))
    }

    /// The value at a place relative to this one.
    pub(super) fn at(self, place: &Place) -> Option<Self> {
        let names = place.names();
        if let ([outer, inner], Self::Sketch(sketch) | Self::Node(&Node::Sketch(sketch))) =
            (names, self)
            && sketch.member.is_none()
            && !may_be_index(inner)
        {
            return sketch.grandchild(outer, inner).map(Self::Raw);
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
            Self::Node(Node::Sealed(seal)) => child(seal.opened(), name).map(Self::Raw),
            Self::Sketch(sketch) => sketch.child(name),
            Self::Node(Node::Sketch(sketch)) => sketch.child(name),
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
            Self::Sketch(_) => Type::Object,
            Self::Node(node) => node.kind().unwrap_or(Type::Null),
        }
    }

    pub(super) fn json(self) -> Cow<'t, [u8]> {
        match self {
            Self::Raw(text) => Cow::Borrowed(text),
            Self::Sketch(sketch) => Cow::Borrowed(sketch.text()),
            Self::Node(node) => node.json(),
        }
    }

    pub(super) fn keep(self) -> Node<'a> {
        match self {
            Self::Raw(text) => Node::made(text.to_vec()),
            Self::Sketch(sketch) => Node::Sketch(sketch),
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

/// Whether a name may be an index of an array.
pub(super) fn may_be_index(name: &str) -> bool {
    name.as_bytes().first().is_some_and(u8::is_ascii_digit)
}

/// An array index (RFC 6901, section 4: no leading zeros).
pub(super) fn index(name: &str) -> Option<usize> {
    let plain = name == "0" || !name.starts_with('0');
    name.parse()
        .ok()
        .filter(|_| plain && !name.starts_with('+'))
}
