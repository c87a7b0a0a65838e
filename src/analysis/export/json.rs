//! Formats of JSON: messages one a line, and the formats of other programs.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::{Exported, Format};
use jsonrpc::{Kind, Limits, Side, is_json};
use recording::capture::write_line;
use recording::{Header, one_line};

/// Bare messages, and other lines that are JSON.
#[derive(Debug)]
pub(super) struct Plain;

/// `{"dir":"c2a","ts":0.1,"msg":{…}}`; a line that is no JSON as `"raw":"…"`.
#[derive(Debug)]
pub(super) struct Captured;

/// The trace format of the official conductor, for the official trace viewer: `trace.rs` of the
/// crate `agent-client-protocol-conductor` 5.0. It cannot represent frames that are no message.
#[derive(Debug)]
pub(super) struct Jsons;

/// The export format of acp-devtools, version 1: `packages/core/src/storage/export.ts` of
/// github.com/maksugr/acp-devtools (MIT). Frames are strings in it, so that also those that are no
/// JSON can be exported.
#[derive(Debug, Default)]
pub(super) struct Devtools(Vec<Box<RawValue>>);

/// A line of [`Jsons`]: a request, a response or a notification.
#[derive(Serialize)]
struct JsonsLine<'a> {
    r#type: &'a str,
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<&'a str>,
    from: &'a str,
    to: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Option<&'a RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_domain: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a RawValue>,
}

/// A message of [`Devtools`].
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DevtoolsMessage<'a> {
    seq: usize,
    timestamp: u64,
    direction: &'a str,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rpc_id: Option<&'a RawValue>,
    raw: &'a str,
    payload: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parse_error: Option<&'a str>,
}

/// The members of [`Devtools`].
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DevtoolsExport<'a> {
    version: u64,
    exported_at: u64,
    tool: Value,
    session: Value,
    messages: &'a [Box<RawValue>],
}

impl Format for Plain {
    fn message(&mut self, msg: &Exported<'_>, out: &mut Vec<u8>) -> bool {
        let is_line = msg.kind().is_some() || is_json(msg.bytes, &Limits::default());
        if is_line {
            out.extend(one_line(msg.bytes));
            out.push(b'\n');
        }
        is_line
    }
}

impl Format for Captured {
    fn message(&mut self, msg: &Exported<'_>, out: &mut Vec<u8>) -> bool {
        write_line(out, msg.from, msg.event.t, msg.bytes, msg.kind().is_some());
        out.push(b'\n');
        true
    }
}

impl Format for Jsons {
    fn message(&mut self, msg: &Exported<'_>, out: &mut Vec<u8>) -> bool {
        let (Some(kind), Some(body)) = (msg.kind(), msg.body()) else {
            return false;
        };
        let name = |side| match side {
            Side::Client => "Client",
            Side::Agent => "Agent",
        };
        let is_call = !kind.is_answer();
        let failed = kind == Kind::Error;
        let line = JsonsLine {
            r#type: if is_call { kind.name() } else { "response" },
            ts: msg.event.t as f64 / 1e6,
            protocol: is_call.then_some("acp"),
            from: name(msg.from),
            to: name(msg.from.other()),
            id: (kind != Kind::Notification).then(|| msg.id()),
            is_error: (!is_call).then_some(failed),
            error_domain: failed.then_some("acp"),
            method: is_call.then(|| msg.method()),
            session: msg.message.session.as_deref().filter(|_| is_call),
            params: is_call.then_some(body),
            payload: (!is_call).then_some(body),
        };
        push_line(&line, out);
        true
    }
}

impl Format for Devtools {
    fn message(&mut self, msg: &Exported<'_>, _: &mut Vec<u8>) -> bool {
        let kind = match msg.kind() {
            Some(Kind::Result) => "response",
            Some(kind) => kind.name(),
            None => "unknown",
        };
        let is_call = msg.kind().is_some_and(|kind| !kind.is_answer());
        let payload = msg.raw();
        let message = to_raw_value(&DevtoolsMessage {
            seq: self.0.len() + 1,
            timestamp: msg.at / 1_000,
            direction: match msg.from {
                Side::Client => "editor-to-agent",
                Side::Agent => "agent-to-editor",
            },
            kind,
            method: is_call.then(|| msg.method()),
            rpc_id: msg.id(),
            raw: &String::from_utf8_lossy(msg.bytes),
            payload,
            parse_error: payload.is_none().then_some("invalid JSON"),
        });
        let is_written = message.is_ok();
        self.0.extend(message);
        is_written
    }

    fn end(&mut self, header: &Header, last: u64, out: &mut Vec<u8>) {
        let export = DevtoolsExport {
            version: 1,
            exported_at: last / 1_000,
            tool: json!({"name": "acp-relay", "version": env!("CARGO_PKG_VERSION")}),
            session: json!({
                "id": 1,
                "name": null,
                "agentCommand": header.agent.name,
                "clientName": header.client.name,
                "startedAt": header.began / 1_000,
                "endedAt": last / 1_000,
            }),
            messages: &self.0,
        };
        push_line(&export, out);
    }
}

/// Appends a value in one line; the messages in it keep their spelling.
fn push_line(value: &impl Serialize, out: &mut Vec<u8>) {
    let text = serde_json::to_vec(value).unwrap_or_default();
    out.extend(one_line(&text));
    out.push(b'\n');
}
