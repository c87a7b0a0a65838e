//! A message in parts, for translation.

use std::borrow::Cow;

use super::method_name::MethodName;
use super::rewrite_cache::LazyValue;
use super::text;
use super::tree::Node;
use super::value_ref::{IndexedObject, ValueRef};
use crate::jsonrpc::{Envelope, Frame, Id, IdAt, IdBuf, Kind, MemberIndex, Prefix, Span};

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
    size: usize,
    /// A value in the message whose reading is noted.
    lazy: Option<&'a LazyValue<'a>>,
}

impl<'a> Message<'a> {
    /// Parses a frame. For an answer, `method` is that of its request.
    pub(super) fn parse(frame: &'a Frame, at: &'a Envelope, method: MethodName) -> Self {
        Self::with_lazy(frame, at, method, None)
    }

    /// The same, with a lazy value.
    pub(super) fn with_lazy(
        frame: &'a Frame,
        at: &'a Envelope,
        method: MethodName,
        lazy: Option<&'a LazyValue<'a>>,
    ) -> Self {
        Self {
            kind: at.kind,
            id: at.id(frame).to_owned(),
            method,
            body: match body(frame, at) {
                Node::Indexed(sketch) => Node::Indexed(sketch.with_lazy(lazy)),
                body => body,
            },
            extras: if at.unknown_members {
                extras(frame)
            } else {
                Vec::new()
            },
            changed: false,
            size: frame.len(),
            lazy,
        }
    }

    /// A message that the bridge makes.
    pub(super) fn new(kind: Kind, id: IdBuf, method: &str, body: Node<'a>) -> Self {
        Self {
            kind,
            id,
            method: method.into(),
            body,
            extras: Vec::new(),
            changed: true,
            size: 0,
            lazy: None,
        }
    }

    /// Divides the estimated size: the message is split into `count` messages.
    pub(super) fn divide_size(&mut self, count: usize) {
        self.size /= count.max(1);
    }

    /// The session it names.
    pub(super) fn session(&self) -> Option<String> {
        let json = self.body.get_member("sessionId").map(ValueRef::json);
        json.as_deref().and_then(text::string).map(Cow::into_owned)
    }

    /// Writes it as a frame.
    pub(super) fn frame(&self, jsonrpc: bool) -> Frame {
        self.frame_and_envelope(jsonrpc).0
    }

    /// Writes it, with the envelope of the frame if the body is an opened object, so that the frame
    /// need not be scanned.
    pub(super) fn frame_and_envelope(&self, jsonrpc: bool) -> (Frame, Option<Envelope>) {
        if let Some(lazy) = self.lazy {
            lazy.begin_write();
        }
        let mut out = Vec::with_capacity(self.size + 128);
        let (mut id, mut method, mut index) = (IdAt::Absent, None, MemberIndex::default());
        out.push(b'{');
        if jsonrpc {
            out.extend_from_slice(b"\"jsonrpc\":\"2.0\",");
        }
        match self.kind {
            Kind::Notification => {}
            _ => {
                out.extend_from_slice(b"\"id\":");
                let span = write(&mut out, |out| {
                    out.extend_from_slice(self.id.as_id().json())
                });
                id = match self.id {
                    IdBuf::Absent | IdBuf::Null => IdAt::Null,
                    IdBuf::Number(_) => IdAt::Number(span),
                    IdBuf::String(_) => IdAt::String(span),
                };
                out.push(b',');
            }
        }
        let name: &[u8] = match self.kind {
            Kind::Request | Kind::Notification => {
                out.extend_from_slice(b"\"method\":\"");
                method = Some(write(&mut out, |out| self.method.write(out)));
                out.push(b'"');
                b",\"params\":"
            }
            Kind::Result => b"\"result\":",
            Kind::Error => b"\"error\":",
        };
        let answers = self.kind.is_answer();
        let (mut body, mut whole) = (None, false);
        if answers || !matches!(self.body, Node::Absent) {
            out.extend_from_slice(name);
            body = Some(write(&mut out, |out| {
                whole = self.body.write_body(out, &mut index);
            }));
        }
        for (name, value) in &self.extras {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name);
            out.extend_from_slice(b"\":");
            out.extend_from_slice(value);
        }
        out.push(b'}');
        // Errors have no member index, and an envelope requires that a session is named at most
        // once.
        let short = u32::try_from(out.len()).is_ok();
        let known = short && whole && self.kind != Kind::Error && count_sessions(&index, &out) <= 1;
        let at = known.then_some(Envelope {
            kind: self.kind,
            id,
            method,
            body,
            index: Some(index),
            jsonrpc,
            unknown_members: !self.extras.is_empty(),
            prefix: Prefix::default(),
        });
        (Frame::from(out), at)
    }
}

/// The position of what `part` writes.
fn write(out: &mut Vec<u8>, part: impl FnOnce(&mut Vec<u8>)) -> Span {
    let start = out.len();
    part(out);
    Span::new(start, out.len())
}

/// How often a body names its session.
fn count_sessions(index: &MemberIndex, text: &[u8]) -> usize {
    let named = index.members();
    named
        .filter(|member| member.has_name("sessionId", text))
        .count()
}

/// The value of `params`, `result` or `error`.
pub(super) fn body<'a>(frame: &'a Frame, at: &'a Envelope) -> Node<'a> {
    match IndexedObject::new(frame, at) {
        Some(object) => Node::Indexed(object),
        None => at.body(frame).map_or(Node::Absent, Node::raw),
    }
}

fn extras(frame: &Frame) -> Vec<Extra<'_>> {
    let known = ["jsonrpc", "id", "method", "params", "result", "error"];
    let text = frame.as_bytes().trim_ascii_start();
    text::members(text)
        .filter(|(name, _)| !known.iter().any(|plain| text::same_name(name, plain)))
        .map(|(name, value)| (Cow::Borrowed(name), Cow::Borrowed(value)))
        .collect()
}

/// An answer that the bridge makes.
pub(super) fn answer(id: Id<'_>, name: &str, value: &[u8], jsonrpc: bool) -> Frame {
    let head = if jsonrpc {
        "{\"jsonrpc\":\"2.0\",\"id\":"
    } else {
        "{\"id\":"
    };
    let middle = format!(",\"{name}\":");
    Frame::from([head.as_bytes(), id.json(), middle.as_bytes(), value, b"}"].concat())
}

/// The same frame with `jsonrpc` in front.
pub(super) fn with_jsonrpc(frame: &Frame) -> Frame {
    let text = frame.as_bytes().trim_ascii_start();
    Frame::from([&b"{\"jsonrpc\":\"2.0\","[..], &text[1..]].concat())
}
