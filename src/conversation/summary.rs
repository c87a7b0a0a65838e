//! Summarises a message for metrics and traces, in fixed terms.
//!
//! Only made for observers that need them, of canonical messages, from the member index
//! that `scan` has made anyway: nothing is parsed twice and nothing is allocated. It contains no
//! text of a peer, except what a `TraceContext` has for traces.

use std::fmt;
use std::hash::{DefaultHasher, Hasher as _};
use std::time::{Duration, Instant};

use super::known_values::{Method, PermissionOutcome, StopReason, ToolKind, ToolStatus};
use super::tokens::{self, Tokens};
use super::trace_context::TraceContext;
use jsonrpc::{self, Envelope, Frame, IndexedMember, Kind, Side};

/// The summary of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSummary {
    /// The side that sent it.
    pub from: Side,
    /// The kind of message.
    pub kind: Kind,
    /// What it, or the request it answers, is about.
    pub topic: Topic,
    /// Its length in bytes.
    pub bytes: usize,
    /// When it was received.
    pub at: Instant,
    /// How long its request has waited for it, when it is an answer.
    pub waited: Option<Duration>,
    /// Its content, as far as it is counted.
    pub content: Content,
    /// What only traces need, when they are made.
    pub trace: Option<Box<TraceContext>>,
}

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Its method.
    pub method: Method,
    /// The session, for prompts and updates.
    pub session: SessionHash,
    /// The number of the request in the conversation, from 1; 0 for other messages.
    pub request: u64,
}

/// A session, as a hash of its id: enough to distinguish the sessions of one conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SessionHash(u64);

/// The content of a message that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing that is counted.
    Nothing,
    /// An error with this code; 0 when it has none.
    Failed(i64),
    /// A turn is over, with the tokens it used, if the agent has reported them.
    TurnEnded(StopReason, Option<Tokens>),
    /// The tokens in the context, and its capacity.
    ContextUsed(u64, u64),
    /// A tool is called.
    ToolCalled(ToolKind, Option<ToolStatus>),
    /// A tool call has this status now.
    ToolUpdated(ToolStatus),
    /// The user has answered a permission request.
    Decided(PermissionOutcome),
}

/// Chooses the trace of a request.
pub trait TraceAssigner: Send + fmt::Debug {
    /// The `traceparent` for a request that has none; `None` leaves it unchanged.
    fn parent(&mut self, summary: &MessageSummary) -> Option<String>;
}

impl SessionHash {
    /// The session among the indexed members of a body.
    fn in_body(frame: &Frame, at: &Envelope) -> Self {
        member(frame, at, "sessionId")
            .map_or_else(Self::default, |id| Self::hash(text_of(frame, id)))
    }

    /// The session that a message names, also in a body without an index.
    pub(super) fn named(frame: &Frame, at: &Envelope) -> Option<Self> {
        jsonrpc::named_session(frame, at).map(|id| Self::of(&id))
    }

    /// The session with that id.
    pub(super) fn of(id: &str) -> Self {
        Self::hash(id.as_bytes())
    }

    fn hash(id: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(id);
        Self(hasher.finish())
    }
}

impl Default for Topic {
    fn default() -> Self {
        Self {
            method: Method::Other,
            session: SessionHash::default(),
            request: 0,
        }
    }
}

impl MessageSummary {
    /// The summary of a request or a notification.
    pub(super) fn of_call(from: Side, frame: &Frame, at: &Envelope, now: Instant) -> Self {
        let raw = at.raw_method(frame);
        let method = match memchr::memchr(b'\\', raw) {
            None => Method::named(raw),
            Some(_) => Method::named(at.method(frame).as_bytes()),
        };
        let (session, content) = match method {
            Method::SessionUpdate => (SessionHash::in_body(frame, at), update(frame, at)),
            Method::SessionPrompt => (SessionHash::in_body(frame, at), Content::Nothing),
            _ => (SessionHash::default(), Content::Nothing),
        };
        Self {
            from,
            kind: at.kind,
            topic: Topic {
                method,
                session,
                request: 0,
            },
            bytes: frame.len(),
            at: now,
            waited: None,
            content,
            trace: None,
        }
    }

    /// The summary of the answer to a request about `topic`.
    pub(super) fn of_answer(
        from: Side,
        frame: &Frame,
        at: &Envelope,
        topic: Topic,
        waited: Duration,
        now: Instant,
    ) -> Self {
        let content = match (at.kind, topic.method) {
            (Kind::Error, _) => Content::Failed(code(frame, at)),
            (_, Method::SessionPrompt) => {
                member(frame, at, "stopReason").map_or(Content::Nothing, |reason| {
                    let reason = StopReason::of(text_of(frame, reason));
                    Content::TurnEnded(reason, tokens_used(frame, at))
                })
            }
            (_, Method::SessionRequestPermission) => permission(frame, at),
            _ => Content::Nothing,
        };
        Self {
            from,
            kind: at.kind,
            topic,
            bytes: frame.len(),
            at: now,
            waited: Some(waited),
            content,
            trace: None,
        }
    }

    /// Adds its trace context, if that is needed.
    pub(super) fn traced(mut self, frame: &Frame, at: &Envelope, is_needed: bool) -> Self {
        if is_needed {
            let is_tool_call = matches!(
                self.content,
                Content::ToolCalled(..) | Content::ToolUpdated(_)
            );
            self.trace = TraceContext::of(frame, at, self.topic.method, is_tool_call);
        }
        self
    }
}

fn update(frame: &Frame, at: &Envelope) -> Content {
    let inner = |name| inner(frame, at, "update", name).map(|found| text_of(frame, found));
    match inner("sessionUpdate") {
        Some(b"tool_call") => {
            // By the schema, a call without a kind is of the kind `other`.
            let kind = inner("kind").map_or(ToolKind::Other, ToolKind::of);
            Content::ToolCalled(kind, inner("status").map(ToolStatus::of))
        }
        Some(b"tool_call_update") => inner("status").map_or(Content::Nothing, |status| {
            Content::ToolUpdated(ToolStatus::of(status))
        }),
        Some(b"usage_update") => {
            match (
                inner("used").and_then(tokens::count),
                inner("size").and_then(tokens::count),
            ) {
                (Some(used), Some(size)) => Content::ContextUsed(used, size),
                _ => Content::Nothing,
            }
        }
        _ => Content::Nothing,
    }
}

fn permission(frame: &Frame, at: &Envelope) -> Content {
    inner(frame, at, "outcome", "outcome").map_or(Content::Nothing, |verdict| {
        Content::Decided(PermissionOutcome::of(text_of(frame, verdict)))
    })
}

/// Errors have no member index, and are rare.
fn code(frame: &Frame, at: &Envelope) -> i64 {
    let code = at
        .body(frame)
        .and_then(|error| jsonrpc::member(error, "code"));
    code.and_then(|code| std::str::from_utf8(code).ok()?.trim().parse().ok())
        .unwrap_or(0)
}

fn member(frame: &Frame, at: &Envelope, name: &str) -> Option<IndexedMember> {
    let index = at.index.as_ref()?;
    let text = frame.as_bytes();
    index.members().find(|member| member.has_name(name, text))
}

fn inner(frame: &Frame, at: &Envelope, outer: &str, name: &str) -> Option<IndexedMember> {
    let index = at.index.as_ref()?;
    let text = frame.as_bytes();
    let outer = index
        .members()
        .find(|member| member.has_name(outer, text))?;
    index
        .members_of(outer.slot)
        .find(|member| member.has_name(name, text))
}

/// The tokens a turn has used, as ACP reports them.
fn tokens_used(frame: &Frame, at: &Envelope) -> Option<Tokens> {
    let usage = member(frame, at, "usage")?;
    let mut tokens = Tokens::default();
    let mut any = false;
    for part in at.index.as_ref()?.members_of(usage.slot) {
        any |= tokens.report(part.name(frame.as_bytes()), text_of(frame, part));
    }
    any.then_some(tokens)
}

/// A value without its quotes.
fn text_of(frame: &Frame, member: IndexedMember) -> &[u8] {
    let value = member.value.of(frame.as_bytes()).trim_ascii();
    let bare = value
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""));
    bare.unwrap_or(value)
}
