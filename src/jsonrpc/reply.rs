//! Every message that the relay makes itself: errors, and notices about the agent and its link.
//!
//! All other messages are the peers' own text. `error.data.relay` marks the relay's errors.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize as _, Serialize, Serializer};
use serde_json::{Value, json};

use super::{Envelope, Exit, Frame, FrameError, FrameFault, Id, Kind, Role, Side, member};

/// Not JSON (JSON-RPC 2.0, section 5.1).
pub const PARSE_ERROR: i32 = -32700;
/// JSON, but no request that can be passed on (JSON-RPC 2.0, section 5.1).
pub const INVALID_REQUEST: i32 = -32600;
/// The other side is gone; what became of the request is unknown.
pub const PEER_LOST: i32 = -32050;
/// The agent's process has ended.
pub const AGENT_EXITED: i32 = -32051;
/// What a reconnecting peer has missed is no longer kept.
pub const RESUME_GAP: i32 = -32052;
/// A limit on requests, queues or connections is reached.
pub const OVERLOADED: i32 = -32053;
/// The relay is shutting down and takes no new requests.
pub const DRAINING: i32 = -32054;
/// A deadline of the relay has passed.
pub const TIMEOUT: i32 = -32055;
/// The message is longer than the limit.
pub const TOO_LARGE: i32 = -32056;
/// The relay's policy forbids the request.
pub const POLICY_DENIED: i32 = -32057;
/// The two sides' dialects differ here, and the relay does not guess.
pub const UNTRANSLATABLE: i32 = -32058;
/// A replayed recording holds no such request.
pub const NOT_RECORDED: i32 = -32059;
/// The codes that are the relay's own.
pub const OWN_CODES: RangeInclusive<i64> = NOT_RECORDED as i64..=PEER_LOST as i64;
/// A session could not be brought back to an agent that was started again (ACP: resource not found).
pub const NOT_RESTORED: i32 = -32002;
/// The request was cancelled (ACP, `$/cancel_request`).
pub const CANCELLED: i32 = -32800;

/// The method of the notice that an agent has exited. ACP reserves names with a leading underscore
/// for extensions, and a peer that does not support a notification ignores it.
pub const AGENT_EXITED_METHOD: &str = "_acp-relay/agent_exited";

/// The method of notices about the conversation: that the connection to the agent is lost or restored,
/// that the agent is gone or back, that a side is silent, that a turn of an earlier connection has ended.
pub const LINK_STATUS_METHOD: &str = "_acp-relay/status";

/// The reason for a conversation that has to be recorded and cannot be. It is a policy refusal, but
/// unlike others not caused by the request.
pub const UNRECORDED: &str = "unrecorded";

/// Bytes of another relay's stderr tail that are accepted.
const TAIL: usize = 4096;

/// Whether an answer is an error with one of the relay's own codes.
#[must_use]
pub fn is_own_error(frame: &Frame, at: &Envelope) -> bool {
    let code = at.body(frame).and_then(|error| member(error, "code"));
    let code = code.and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
    at.kind == Kind::Error && code.is_some_and(|code: i64| OWN_CODES.contains(&code))
}

/// Why a request fails at the relay: one JSON-RPC error, and its `data.relay` when serialized.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// The error code, one of those above.
    #[serde(skip)]
    pub code: i32,
    /// `error.message`: a clause for a person.
    #[serde(skip)]
    pub message: Cow<'static, str>,
    /// `data.relay.source`: where it failed.
    pub source: ErrorSource,
    /// `data.relay.reason`: one word for programs.
    pub reason: &'static str,
    /// `data.relay.delivered`: whether the other side has received the request.
    pub delivered: Delivered,
    /// `data.relay.retryable`: whether the same request may succeed later.
    pub retryable: bool,
    /// `data.relay.retryAfterMs`, rounded down to milliseconds.
    #[serde(
        rename = "retryAfterMs",
        serialize_with = "milliseconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub retry_after: Option<Duration>,
    /// `data.relay.exit`: how the agent's process ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// `data.relay.stderrTail`: the end of what the agent wrote to stderr.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_tail: Option<Box<str>>,
    /// `data.relay.stdoutTail`: the end of what the agent wrote to stdout instead of messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout_tail: Option<Box<str>>,
    /// `data.relay.rule`: the rule of a mapping table that refuses the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Box<str>>,
}

/// Where a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorSource {
    /// At the relay itself.
    Relay,
    /// At the client, or on the way there.
    Client,
    /// At the agent, or on the way there.
    Agent,
}

/// Whether the other side has received a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Delivered {
    /// It never left the relay; repeating it is safe.
    No,
    /// The other side has shown that it received it.
    Yes,
    /// It was sent, and nothing else is known.
    Unknown,
}

/// The exit of an agent, as one relay reports it to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// How it ended.
    pub exit: Exit,
    /// The end of what it wrote to stderr.
    pub stderr_tail: String,
}

impl Reason {
    /// A failure at the relay, of a request that was not delivered and need not be repeated. The
    /// methods below and the fields change that.
    #[must_use]
    pub fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            source: ErrorSource::Relay,
            reason: name(code),
            delivered: Delivered::No,
            retryable: false,
            retry_after: None,
            exit: None,
            stderr_tail: None,
            stdout_tail: None,
            rule: None,
        }
    }

    /// Sets where it failed.
    #[must_use]
    pub fn at(self, source: ErrorSource) -> Self {
        Self { source, ..self }
    }

    /// The same, with the address of the peer.
    #[must_use]
    pub fn of(&self, address: impl fmt::Display) -> Self {
        let message = format!("{address}: {}", self.message).into();
        Self {
            message,
            ..self.clone()
        }
    }

    /// Sets what is known of its delivery.
    #[must_use]
    pub fn delivered(self, delivered: Delivered) -> Self {
        Self { delivered, ..self }
    }

    /// Marks the request as one that may succeed later.
    #[must_use]
    pub fn retryable(self) -> Self {
        Self {
            retryable: true,
            ..self
        }
    }

    /// The relay is shutting down; another one may serve the request.
    #[must_use]
    pub fn draining() -> Self {
        Self::new(DRAINING, "the relay is shutting down").retryable()
    }

    /// The conversation has to be recorded and cannot be, or not any more.
    #[must_use]
    pub fn unrecorded() -> Self {
        let message = "the conversation has to be recorded and cannot be";
        Self {
            reason: UNRECORDED,
            ..Self::new(POLICY_DENIED, message)
        }
    }

    /// The reason for not sending a message that is longer than the relay of `to` takes.
    pub fn too_long(to: Side, bytes: usize, limit: usize) -> Self {
        let what = format!(
            "a message of {bytes} bytes is not sent: the relay of the {to} takes {limit} at most \
             (--limit frame-from-network there)"
        );
        Self::new(TOO_LARGE, what)
    }

    /// The reason for a message with this fault.
    #[must_use]
    pub fn of_fault(fault: &FrameFault) -> Self {
        let code = match fault {
            FrameFault::Malformed { .. } | FrameFault::BadHeader { .. } => PARSE_ERROR,
            FrameFault::TooLong { .. } => TOO_LARGE,
            FrameFault::TooDeep { .. }
            | FrameFault::Duplicate { .. }
            | FrameFault::NotAMessage { .. } => INVALID_REQUEST,
        };
        Self::new(code, fault.to_string())
    }
}

/// The answer to the request `id`, with `body` as the JSON value of `member` (`result` or `error`).
/// The id is returned as spelled, so it does not pass through a JSON library.
#[must_use]
pub fn answer(id: Id<'_>, member: &str, body: &[u8]) -> Frame {
    let parts = [
        br#"{"jsonrpc":"2.0","id":"#,
        id.json(),
        b",\"",
        member.as_bytes(),
        b"\":",
        body,
        b"}",
    ];
    Frame::new(parts.concat())
}

/// The error that answers the request `id`.
#[must_use]
pub fn error(id: Id<'_>, reason: &Reason) -> Frame {
    let error = json!({
        "code": reason.code,
        "message": reason.message,
        "data": { "relay": reason },
    });
    answer(id, "error", error.to_string().as_bytes())
}

/// The error that answers a message that could not be passed on, to its sender.
///
/// The id is null where the message was not JSON (JSON-RPC 2.0, section 5), and where it was an
/// answer: that id belongs to the other side, and the sender may have a request of its own under
/// it.
#[must_use]
pub fn frame_error(cause: &FrameError) -> Frame {
    let nameless = matches!(
        cause.fault,
        FrameFault::Malformed { .. } | FrameFault::BadHeader { .. }
    ) || cause.role == Some(Role::Answer);
    let id = if nameless { Id::Null } else { cause.id.as_id() };
    let reason = Reason {
        message: cause.to_string().into(),
        ..Reason::of_fault(&cause.fault)
    };
    error(id, &reason)
}

/// The error that answers a batch, to its sender.
#[must_use]
pub fn batch() -> Frame {
    let message = "batches are not part of this protocol; send one message at a time";
    error(Id::Null, &Reason::new(INVALID_REQUEST, message))
}

/// An error without the relay's mark: one that a replayed agent sends.
#[must_use]
pub fn plain_error(id: Id<'_>, code: i32, message: &str) -> Frame {
    let error = json!({ "code": code, "message": message });
    answer(id, "error", error.to_string().as_bytes())
}

/// The answer to a prompt that the client has cancelled, in place of an agent that is out of reach.
#[must_use]
pub fn cancelled_turn_for_peer(id: Id<'_>) -> Frame {
    let body = br#"{"stopReason":"cancelled","_meta":{"acp-relay":{"by":"relay"}}}"#;
    answer(id, "result", body)
}

/// The answer to a permission of a turn that the client has cancelled, in place of the client.
#[must_use]
pub fn cancelled_permission(id: Id<'_>) -> Frame {
    answer(id, "result", br#"{"outcome":{"outcome":"cancelled"}}"#)
}

/// The answer to a prompt of a replayed agent that the client has cancelled.
#[must_use]
pub fn cancelled_turn(id: Id<'_>) -> Frame {
    answer(id, "result", br#"{"stopReason":"cancelled"}"#)
}

/// The answer to any other of its requests that the client has cancelled.
#[must_use]
pub fn cancelled_request(id: Id<'_>) -> Frame {
    plain_error(id, CANCELLED, "request cancelled")
}

/// The notification that reports to another relay how the agent ended.
#[must_use]
pub fn agent_exited_notice(exit: Exit, stderr_tail: &str) -> Frame {
    let params = json!({ "exit": exit, "stderrTail": stderr_tail });
    notification(AGENT_EXITED_METHOD, &params)
}

/// The notification that tells a client that the connection to its agent is lost, or is restored,
/// and how long ago it was lost.
#[must_use]
pub fn link_status(is_lost: bool, since: Duration) -> Frame {
    let (link, detail) = match is_lost {
        true => (
            "lost",
            "the connection to the agent is lost; the relay connects again, and the agent runs on",
        ),
        false => (
            "restored",
            "the connection to the agent is restored, and nothing is lost",
        ),
    };
    let since = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    let params = json!({ "link": link, "detail": detail, "sinceMs": since });
    status(&params)
}

/// The notification that `side` has owed the answer to a request for so long and sends nothing.
#[must_use]
pub fn silent(side: Side, method: &str, session: Option<&str>, since: Duration) -> Frame {
    let since = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    let detail = format!("the {side} has sent nothing for {} s", since / 1000);
    let mut silent = json!({ "method": method, "sinceMs": since });
    if let Some(session) = session {
        silent["sessionId"] = session.into();
    }
    let params = json!({ "silent": silent, "detail": detail });
    status(&params)
}

/// The notification that the agent is down, is started again, or is back.
#[must_use]
pub fn agent_status(state: &str, detail: &str) -> Frame {
    status(&json!({ "agent": state, "detail": detail }))
}

/// The notification that cancels a request.
#[must_use]
pub fn cancel_request(id: Id<'_>) -> Frame {
    let head = br#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"#;
    Frame::new([head, id.json(), b"}}"].concat())
}

/// The notification that a turn of an earlier connection of the client has ended.
#[must_use]
pub fn turn_ended(session: &str, reason: Option<&str>) -> Frame {
    let mut params = json!({ "turn": "ended", "sessionId": session });
    if let Some(reason) = reason {
        params["stopReason"] = reason.into();
    }
    status(&params)
}

/// The notification that cancels the turn of a session.
#[must_use]
pub fn cancel_session(session: &str) -> Frame {
    notification("session/cancel", &json!({ "sessionId": session }))
}

/// Reads a notice that the agent has exited; `None` for every other message.
#[must_use]
pub fn read_notice(frame: &Frame, at: &Envelope) -> Option<Notice> {
    if at.kind != Kind::Notification || !at.has_method(frame, AGENT_EXITED_METHOD) {
        return None;
    }
    let params: Value = serde_json::from_slice(at.body(frame)?).ok()?;
    let exit = Exit::deserialize(params.get("exit")?).ok()?;
    let tail = params.get("stderrTail").and_then(Value::as_str);
    Some(Notice {
        exit,
        stderr_tail: sanitize(tail.unwrap_or_default()),
    })
}

fn status(params: &Value) -> Frame {
    notification(LINK_STATUS_METHOD, params)
}

fn notification(method: &str, params: &Value) -> Frame {
    let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    Frame::from(message.to_string())
}

/// At most the last [`TAIL`] bytes of the stderr that another machine reports, without control
/// characters: errors and logs show it.
fn sanitize(tail: &str) -> String {
    let mut start = tail.len().saturating_sub(TAIL);
    while !tail.is_char_boundary(start) {
        start += 1;
    }
    let shown = |c: char| {
        if c.is_control() && c != '\n' {
            '\u{fffd}'
        } else {
            c
        }
    };
    tail[start..].chars().map(shown).collect()
}

/// The name of one of the relay's codes.
const fn name(code: i32) -> &'static str {
    match code {
        PARSE_ERROR => "parse_error",
        INVALID_REQUEST => "invalid_request",
        PEER_LOST => "peer_lost",
        AGENT_EXITED => "agent_exited",
        RESUME_GAP => "resume_gap",
        OVERLOADED => "overloaded",
        DRAINING => "draining",
        TIMEOUT => "timeout",
        TOO_LARGE => "too_large",
        POLICY_DENIED => "policy_denied",
        UNTRANSLATABLE => "untranslatable",
        NOT_RECORDED => "not_recorded",
        NOT_RESTORED => "not_restored",
        _ => "other",
    }
}

fn milliseconds<S: Serializer>(time: &Option<Duration>, out: S) -> Result<S::Ok, S::Error> {
    let millis = time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    millis.serialize(out)
}
