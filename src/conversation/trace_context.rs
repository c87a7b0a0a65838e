//! What only traces need of a message: texts that peers have chosen, such as the id of a request
//! and the trace it belongs to.
//!
//! Only made for observers that need it, and never for the messages that make up most of a
//! conversation.

use super::known_values::Method;
use jsonrpc::{self, Envelope, Frame, IdBuf, Kind};

/// Where the W3C trace context is in a message.
const META: &str = "_meta";
const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

/// Longest text of a peer that is kept, in bytes; longer ones are truncated.
const MAX_TEXT: usize = 256;

/// Longest `tracestate` that is kept; longer ones are dropped, as the specification allows.
const MAX_STATE: usize = 512;

/// What only traces need of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    /// The id of a request.
    pub id: Option<IdBuf>,
    /// The method, as spelled.
    pub method: String,
    /// The session it names, or that an answer has opened.
    pub session: Option<String>,
    /// The tool call it names.
    pub tool_call: Option<String>,
    /// `traceparent`, as spelled.
    pub parent: Option<String>,
    /// `tracestate`, as spelled.
    pub state: Option<String>,
}

impl TraceContext {
    /// The trace context of a message, if it has one. `method` is its method, or that of the request
    /// it answers.
    pub(super) fn of(
        frame: &Frame,
        at: &Envelope,
        method: Method,
        is_tool_call: bool,
    ) -> Option<Box<Self>> {
        let body = at.body(frame).unwrap_or_default();
        match (at.kind, method) {
            (Kind::Request, _) => Some(Box::new(Self::of_request(frame, at, body))),
            (Kind::Notification, _) if is_tool_call => {
                let update = jsonrpc::member(body, "update").unwrap_or_default();
                Some(Box::new(Self {
                    tool_call: jsonrpc::member_text(update, "toolCallId").map(cut),
                    ..Self::default()
                }))
            }
            (Kind::Result, Method::SessionNew) => Some(Box::new(Self {
                session: jsonrpc::member_text(body, "sessionId").map(cut),
                ..Self::default()
            })),
            _ => None,
        }
    }

    fn of_request(frame: &Frame, at: &Envelope, body: &[u8]) -> Self {
        let meta = jsonrpc::member(body, META).unwrap_or_default();
        let text = |name| jsonrpc::member_text(meta, name);
        Self {
            id: Some(at.id(frame).to_owned()),
            method: cut(at.method(frame)),
            session: jsonrpc::member_text(body, "sessionId").map(cut),
            tool_call: None,
            parent: text(PARENT).map(cut),
            state: text(STATE)
                .filter(|state| state.len() <= MAX_STATE)
                .map(Into::into),
        }
    }
}

/// The request with `parent` as its `traceparent`; `None` when it has no params that could hold it.
pub(super) fn with_parent(frame: &Frame, at: &Envelope, parent: &str) -> Option<Frame> {
    let text = frame.as_bytes();
    let body = at.body?;
    let own = body.of(text);
    let start = body.start as usize;
    let (place, piece) = match jsonrpc::member_range(own, META) {
        Some(meta) if own[meta.clone()].first() == Some(&b'{') => {
            (start + meta.start, format!("\"{PARENT}\":\"{parent}\""))
        }
        // It has another meaning than it should.
        Some(_) => return None,
        None => {
            let space = own.iter().take_while(|byte| byte.is_ascii_whitespace());
            let place = start + space.count();
            (place, format!("\"{META}\":{{\"{PARENT}\":\"{parent}\"}}"))
        }
    };
    let (before, behind) = text.split_at(place + 1);
    if before.last() != Some(&b'{') {
        return None;
    }
    let first = behind.iter().find(|byte| !byte.is_ascii_whitespace());
    let comma: &[u8] = if first == Some(&b'}') { b"" } else { b"," };
    Some(Frame::from(
        [before, piece.as_bytes(), comma, behind].concat(),
    ))
}

fn cut(text: std::borrow::Cow<'_, str>) -> String {
    let mut text = text.into_owned();
    if text.len() > MAX_TEXT {
        let end = (0..=MAX_TEXT).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use jsonrpc::{Limits, Scanned, scan};

    #[test]
    fn traceparent_is_inserted_without_other_changes() {
        let mark = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        for (before, after) in [
            (r#"{}"#, r#"{"_meta":{"traceparent":"M"}}"#),
            (
                r#" { "a" : 1.50 } "#,
                r#" {"_meta":{"traceparent":"M"}, "a" : 1.50 } "#,
            ),
            (r#"{"_meta":{}}"#, r#"{"_meta":{"traceparent":"M"}}"#),
            (
                r#"{"x":[{"_meta":1}],"_meta": { "a":1}}"#,
                r#"{"x":[{"_meta":1}],"_meta": {"traceparent":"M", "a":1}}"#,
            ),
            // There is no place for one.
            ("[1]", ""),
            ("null", ""),
            (r#"{"_meta":null}"#, ""),
            (r#"{"_meta":[]}"#, ""),
        ] {
            let message = |params: &str| {
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{params}}}"#)
            };
            let frame = Frame::from(message(before));
            let Scanned::Message(at) = scan(&frame, &Limits::default()) else {
                panic!("{before}");
            };
            let marked = with_parent(&frame, &at, mark);
            let wanted = (!after.is_empty()).then(|| message(&after.replace('M', mark)));
            assert_eq!(marked, wanted.map(Frame::from), "{before}");
        }
    }
}
