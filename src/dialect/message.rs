//! A message in parts, for translation.

use std::borrow::Cow;

use super::habit::Seal;
use super::look::{Look, Sketch};
use super::name::Name;
use super::text;
use super::tree::Node;
use crate::jsonrpc::{Envelope, Frame, Id, IdAt, IdBuf, Kind, Outline, Span, Stem};

/// A member JSON-RPC does not know: its raw name and value.
type Extra<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// A message in parts.
#[derive(Clone, Debug)]
pub(super) struct Message<'a> {
    pub(super) kind: Kind,
    pub(super) id: IdBuf,
    pub(super) method: Name,
    /// `params`, `result` or `error`; absent when the member is missing.
    pub(super) body: Node<'a>,
    /// Members that JSON-RPC does not know.
    pub(super) extras: Vec<Extra<'a>>,
    /// Whether it differs from the frame it was made from.
    pub(super) changed: bool,
    /// An estimate of its size in bytes.
    size: usize,
    /// A value in the message whose reading is noted.
    seal: Option<&'a Seal<'a>>,
}

impl<'a> Message<'a> {
    /// Parses a frame. For an answer, `method` is that of its request.
    pub(super) fn take(frame: &'a Frame, at: &'a Envelope, method: Name) -> Self {
        Self::sealed(frame, at, method, None)
    }

    /// The same, with a lazy value.
    pub(super) fn sealed(
        frame: &'a Frame,
        at: &'a Envelope,
        method: Name,
        seal: Option<&'a Seal<'a>>,
    ) -> Self {
        Self {
            kind: at.kind,
            id: at.id(frame).to_owned(),
            method,
            body: match body(frame, at) {
                Node::Sketch(sketch) => Node::Sketch(sketch.sealed(seal)),
                body => body,
            },
            extras: if at.strangers {
                extras(frame)
            } else {
                Vec::new()
            },
            changed: false,
            size: frame.len(),
            seal,
        }
    }

    /// A message that the bridge makes.
    pub(super) fn made(kind: Kind, id: IdBuf, method: &str, body: Node<'a>) -> Self {
        Self {
            kind,
            id,
            method: method.into(),
            body,
            extras: Vec::new(),
            changed: true,
            size: 0,
            seal: None,
        }
    }

    /// Divides the estimated size: the message is split into `count` messages.
    pub(super) fn is_cut_into(&mut self, count: usize) {
        self.size /= count.max(1);
    }

    /// The session it names.
    pub(super) fn session(&self) -> Option<String> {
        let json = self.body.look_at("sessionId").map(Look::json);
        json.as_deref().and_then(text::string).map(Cow::into_owned)
    }

    /// Writes it as a frame.
    pub(super) fn frame(&self, jsonrpc: bool) -> Frame {
        self.told(jsonrpc).0
    }

    /// Writes it, with the envelope of the frame if the body is an opened object, so that the frame
    /// need not be scanned.
    pub(super) fn told(&self, jsonrpc: bool) -> (Frame, Option<Envelope>) {
        if let Some(seal) = self.seal {
            seal.is_to_be_written();
        }
        let mut out = Vec::with_capacity(self.size + 128);
        let (mut id, mut method, mut outline) = (IdAt::Absent, None, Outline::default());
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
                whole = self.body.write_body(out, &mut outline);
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
        let known = short && whole && self.kind != Kind::Error && sessions(&outline, &out) <= 1;
        let at = known.then_some(Envelope {
            kind: self.kind,
            id,
            method,
            body,
            outline: Some(outline),
            jsonrpc,
            strangers: !self.extras.is_empty(),
            stem: Stem::default(),
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
fn sessions(outline: &Outline, text: &[u8]) -> usize {
    let named = outline.members();
    named
        .filter(|member| member.is_called("sessionId", text))
        .count()
}

/// The value of `params`, `result` or `error`.
pub(super) fn body<'a>(frame: &'a Frame, at: &'a Envelope) -> Node<'a> {
    match Sketch::of(frame, at) {
        Some(sketch) => Node::Sketch(sketch),
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
