//! Looking into a value without opening it.
//!
//! What lies near a message's surface is found by its outline, what lies deeper by passing over the
//! text. Not here: editing (see `tree`).

use std::borrow::Cow;

use super::pointer::Place;
use super::text::{self, Type};
use super::tree::{Member, Node};
use crate::wire::{Envelope, Frame, Outline, Outlined};

/// A value that is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Look<'t, 'a> {
    Raw(&'t [u8]),
    Sketch(Sketch<'a>),
    Node(&'t Node<'a>),
}

/// An object in a message whose outline is known: its body, or a member of that.
#[derive(Clone, Copy, Debug)]
pub struct Sketch<'a> {
    frame: &'a [u8],
    /// All of it.
    text: &'a [u8],
    outline: &'a Outline,
    /// The member of the body that it is; `None` when it is the body itself.
    member: Option<Outlined>,
}

impl<'a> Sketch<'a> {
    /// The body of a message, if it is an object with an outline.
    pub(super) fn of(frame: &'a Frame, at: &'a Envelope) -> Option<Self> {
        Some(Self {
            frame: frame.as_bytes(),
            text: at.body(frame)?,
            outline: at.outline.as_ref()?,
            member: None,
        })
    }

    /// The object's text.
    pub(super) fn text(&self) -> &'a [u8] {
        self.text
    }

    /// Writes it, and takes its members down; `false` when they find no place.
    pub(super) fn write(&self, out: &mut Vec<u8>, outline: &mut Outline) -> bool {
        let to = out.len();
        out.extend_from_slice(self.text);
        self.member
            .is_some_and(|member| outline.copy(self.outline, member, to))
    }

    /// The member of that name. The last one counts, as it does for most readers.
    pub(super) fn child<'t>(self, name: &str) -> Option<Look<'t, 'a>>
    where
        'a: 't,
    {
        let called = |member: &Outlined| member.is_called(name, self.frame);
        match self.member {
            Some(own) => {
                let found = self.outline.members_of(own).rfind(called)?;
                Some(Look::Raw(found.value.of(self.frame)))
            }
            None => {
                let found = self.outline.last_member(name, self.frame)?;
                Some(match self.part(found) {
                    Ok(sketch) => Look::Sketch(sketch),
                    Err(text) => Look::Raw(text),
                })
            }
        }
    }

    /// The member of a member of the body, where most rules look. It is no element of an array.
    fn grandchild(&self, outer: &str, inner: &str) -> Option<&'a [u8]> {
        let found = self.outline.last_inner(outer, inner, self.frame)?;
        Some(found.value.of(self.frame))
    }

    /// All members, as those of an opened object.
    pub(super) fn members(self) -> Vec<Member<'a>> {
        let name = |member: &Outlined| Cow::Borrowed(member.name(self.frame));
        let raw = |member: &Outlined| Node::raw(member.value.of(self.frame));
        let mut members = Vec::with_capacity(8);
        match self.member {
            Some(own) => {
                let all = self.outline.members_of(own);
                members.extend(all.map(|member| (name(&member), raw(&member))));
            }
            None => members.extend(self.outline.members().map(|member| {
                let value = self.part(member).map_or_else(Node::raw, Node::Sketch);
                (name(&member), value)
            })),
        }
        members
    }

    /// A member of the body: a sketch when it is an object, its text when it is not.
    fn part(self, member: Outlined) -> Result<Self, &'a [u8]> {
        let text = member.value.of(self.frame);
        if Type::of(text) != Type::Object {
            return Err(text);
        }
        Ok(Self {
            text,
            member: Some(member),
            ..self
        })
    }
}

impl<'t, 'a> Look<'t, 'a> {
    /// The value of a message's body, if there is one.
    pub(super) fn body(frame: &'a Frame, at: &'a Envelope) -> Option<Self>
    where
        'a: 't,
    {
        let sketch = Sketch::of(frame, at).map(Self::Sketch);
        sketch.or_else(|| at.body(frame).map(Self::Raw))
    }

    /// What is at a place further in.
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

/// Whether a name may mean an element of an array.
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
