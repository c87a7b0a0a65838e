//! A message in parts, for translation.

use std::borrow::Cow;

use super::methods::{MethodName, method_name};
use super::object::object;
use super::pointer::own_pointer;
use super::text;
use super::tree::{IndexedObject, Node, ValueRef};
use jsonrpc::{Envelope, Frame, IdBuf, Kind, MEMBER_NAMES};

/// A member that JSON-RPC does not define: its raw name and value.
type Extra<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// A message in parts.
#[derive(Clone, Debug)]
pub(super) struct Message<'a> {
    pub(super) kind: Kind,
    pub(super) id: IdBuf,
    pub(super) method: MethodName,
    /// `params`, `result` or `error`; absent when the member is missing.
    pub(super) body: Node<'a>,
    /// Members that JSON-RPC does not define.
    pub(super) extras: Vec<Extra<'a>>,
    /// Whether it differs from the frame it was made from.
    pub(super) changed: bool,
    /// An estimate of its size in bytes.
    pub(super) size: usize,
}

impl<'a> Message<'a> {
    /// Parses a frame. For an answer, `method` is that of its request.
    pub(super) fn parse(frame: &'a Frame, at: &'a Envelope, method: MethodName) -> Self {
        Self {
            kind: at.kind,
            id: at.id(frame).to_owned(),
            method,
            body: body(frame, at),
            extras: if at.unknown_members {
                extras(frame)
            } else {
                Vec::new()
            },
            changed: false,
            size: frame.len(),
        }
    }

    /// A message that the bridge makes.
    pub(super) fn new(kind: Kind, id: IdBuf, method: &str, body: Node<'a>) -> Self {
        Self {
            kind,
            id,
            method: method_name(method),
            body,
            extras: Vec::new(),
            changed: true,
            size: 0,
        }
    }

    /// The value at a pointer that is written in this source.
    pub(super) fn get(&self, at: &str) -> Option<ValueRef<'_, 'a>> {
        self.body.find(at)
    }

    /// The text of the string there.
    pub(super) fn text_at(&self, at: &str) -> Option<String> {
        let raw = self.get(at)?.json();
        text::string(&raw).map(Cow::into_owned)
    }

    /// The JSON of the value there.
    pub(super) fn json_at(&self, at: &str) -> Option<Vec<u8>> {
        self.get(at).map(|found| found.json().into_owned())
    }

    /// The elements of the array there, to change them.
    pub(super) fn items(&mut self, at: &str) -> Option<&mut Vec<Node<'a>>> {
        self.body.get_mut(own_pointer(at).names())?.items()
    }

    /// Puts a value there; nothing happens where a scalar blocks the pointer.
    pub(super) fn set(&mut self, at: &str, value: Node<'a>) {
        self.changed |= self.body.put(own_pointer(at).names(), value).is_ok();
    }

    /// Puts a string there.
    pub(super) fn set_text(&mut self, at: &str, text: &str) {
        self.set(at, Node::string(text));
    }

    /// Removes the value there.
    pub(super) fn take(&mut self, at: &str) -> Option<Node<'a>> {
        self.body.take(own_pointer(at).names())
    }

    /// A copy that outlives the frame, without the members that JSON-RPC does not define.
    pub(super) fn to_static(&self) -> Message<'static> {
        let body = match &self.body {
            Node::Absent => Node::Absent,
            body => body.to_static(),
        };
        Message {
            size: self.size,
            ..Message::new(self.kind, self.id.clone(), &self.method, body)
        }
    }

    /// A `session/update` that the bridge makes.
    pub(super) fn update(session: Node<'a>, update: Node<'a>) -> Self {
        let body = object! { "sessionId": session, "update": update };
        Self::new(Kind::Notification, IdBuf::default(), "session/update", body)
    }

    /// A `session/cancel` that the bridge makes.
    pub(super) fn cancel(session: &str) -> Self {
        let body = object! { "sessionId": session };
        Self::new(Kind::Notification, IdBuf::default(), "session/cancel", body)
    }

    /// The session it names.
    pub(super) fn session(&self) -> Option<String> {
        self.text_at("/sessionId")
    }

    /// Writes it as a frame.
    pub(super) fn frame(&self, jsonrpc: bool) -> Frame {
        let mut out = Vec::with_capacity(self.size + 128);
        out.push(b'{');
        if jsonrpc {
            out.extend_from_slice(b"\"jsonrpc\":\"2.0\",");
        }
        if self.kind != Kind::Notification {
            out.extend_from_slice(b"\"id\":");
            out.extend_from_slice(self.id.as_id().json());
            out.push(b',');
        }
        let name: &[u8] = match self.kind {
            Kind::Request | Kind::Notification => {
                out.extend_from_slice(b"\"method\":");
                out.extend(text::quote(&self.method));
                b",\"params\":"
            }
            Kind::Result => b"\"result\":",
            Kind::Error => b"\"error\":",
        };
        if self.kind.is_answer() || !matches!(self.body, Node::Absent) {
            out.extend_from_slice(name);
            self.body.write(&mut out);
        }
        for (name, value) in &self.extras {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name);
            out.extend_from_slice(b"\":");
            out.extend_from_slice(value);
        }
        out.push(b'}');
        Frame::from(out)
    }
}

/// The value of `params`, `result` or `error`.
pub(super) fn body<'a>(frame: &'a Frame, at: &'a Envelope) -> Node<'a> {
    match IndexedObject::new(frame, at) {
        Some(object) => Node::Indexed(object),
        None => at.body(frame).map_or(Node::Absent, Node::raw),
    }
}

fn extras(frame: &Frame) -> Vec<Extra<'_>> {
    let text = frame.as_bytes().trim_ascii_start();
    text::members(text)
        .filter(|(name, _)| {
            !MEMBER_NAMES
                .iter()
                .any(|plain| text::same_name(name, plain))
        })
        .map(|(name, value)| (Cow::Borrowed(name), Cow::Borrowed(value)))
        .collect()
}

/// The same frame with `jsonrpc` in front.
pub(super) fn with_jsonrpc(frame: &Frame) -> Frame {
    let text = frame.as_bytes().trim_ascii_start();
    Frame::from([&b"{\"jsonrpc\":\"2.0\","[..], &text[1..]].concat())
}
