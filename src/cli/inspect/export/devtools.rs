//! The export format of acp-devtools, version 1.
//!
//! After `packages/core/src/storage/export.ts` of github.com/maksugr/acp-devtools (MIT). Frames
//! are strings in it, so that also those that are no JSON can be exported.

use serde_json::json;

use super::format::ObjectWriter;
use super::{Exported, Format};
use crate::jsonrpc::{Kind, Side};
use crate::recording::Header;

#[derive(Default)]
pub(super) struct Devtools {
    began: u64,
    agent: String,
    client: String,
    count: u64,
    last: u64,
}

impl Format for Devtools {
    fn begin(&mut self, header: &Header, out: &mut Vec<u8>) {
        self.began = header.began;
        self.agent.clone_from(&header.agent.name);
        self.client.clone_from(&header.client.name);
        out.extend_from_slice(b"{\"version\":1,\"messages\":[");
    }

    fn message(&mut self, msg: &Exported<'_>, out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(if self.count == 0 { b"\n" } else { b",\n" });
        self.count += 1;
        self.last = self.began + msg.event.t;
        let kind = match msg.kind() {
            Some(Kind::Request) => "request",
            Some(Kind::Notification) => "notification",
            Some(Kind::Result) => "response",
            Some(Kind::Error) => "error",
            None => "unknown",
        };
        let is_call = !matches!(kind, "response" | "error" | "unknown");
        let way = match msg.from {
            Side::Client => "editor-to-agent",
            Side::Agent => "agent-to-editor",
        };
        let raw = msg.raw();
        let row = ObjectWriter::new()
            .with("seq", self.count)
            .with("timestamp", self.last / 1_000)
            .with("direction", way)
            .with("kind", kind)
            .with_some("method", is_call.then(|| msg.method()));
        let row = match msg.id() {
            Some(id) => row.with_raw("rpcId", Some(id)),
            None => row,
        };
        row.with("raw", String::from_utf8_lossy(msg.bytes))
            .with_raw("payload", raw)
            .with_some("parseError", raw.is_none().then_some("invalid JSON"))
            .end(out);
        true
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let rest = json!({
            "exportedAt": self.last / 1_000,
            "tool": {"name": "acp-relay", "version": env!("CARGO_PKG_VERSION")},
            "session": {
                "id": 1,
                "name": null,
                "agentCommand": self.agent,
                "clientName": self.client,
                "startedAt": self.began / 1_000,
                "endedAt": self.last / 1_000,
            },
        });
        let rest = rest.to_string();
        out.extend_from_slice(b"\n],");
        out.extend_from_slice(&rest.as_bytes()[1..]);
        out.push(b'\n');
    }
}
