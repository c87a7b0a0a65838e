//! HAR 1.2 with WebSocket messages as Chromium writes them (`_webSocketMessages`).
//!
//! The conversation becomes one connection, whatever its transport was.

use serde_json::json;

use super::{Exported, Format};
use crate::jsonrpc::Side;
use crate::recording::Header;
use crate::recording::rfc3339;

#[derive(Default)]
pub(super) struct Har {
    began: u64,
    last: u64,
    has_messages: bool,
}

impl Format for Har {
    fn begin(&mut self, header: &Header, out: &mut Vec<u8>) {
        self.began = header.began;
        self.last = header.began;
        let log = json!({
            "version": "1.2",
            "creator": {"name": "acp-relay", "version": env!("CARGO_PKG_VERSION")},
            "comment": format!("{} to {}", header.client.name, header.agent.name),
            "pages": [],
        });
        let entry = json!({
            "startedDateTime": rfc3339(header.began),
            "request": {
                "method": "GET",
                "url": "ws://acp.invalid/",
                "httpVersion": "HTTP/1.1",
                "cookies": [],
                "headers": [],
                "queryString": [],
                "headersSize": -1,
                "bodySize": 0,
            },
            "response": {
                "status": 101,
                "statusText": "Switching Protocols",
                "httpVersion": "HTTP/1.1",
                "cookies": [],
                "headers": [],
                "content": {"size": 0, "mimeType": ""},
                "redirectURL": "",
                "headersSize": -1,
                "bodySize": 0,
            },
            "cache": {},
            "_resourceType": "websocket",
        });
        let (log, entry) = (log.to_string(), entry.to_string());
        out.extend_from_slice(b"{\"log\":");
        out.extend_from_slice(&log.as_bytes()[..log.len() - 1]);
        out.extend_from_slice(b",\"entries\":[");
        out.extend_from_slice(&entry.as_bytes()[..entry.len() - 1]);
        out.extend_from_slice(b",\"_webSocketMessages\":[");
    }

    fn message(&mut self, msg: &Exported<'_>, out: &mut Vec<u8>) -> bool {
        // A text message is UTF-8.
        let Ok(text) = std::str::from_utf8(msg.bytes) else {
            return false;
        };
        self.last = self.began + msg.event.t;
        out.extend_from_slice(if self.has_messages { b",\n" } else { b"\n" });
        self.has_messages = true;
        let message = json!({
            "type": if msg.from == Side::Client { "send" } else { "receive" },
            "time": self.last as f64 / 1e6,
            "opcode": 1,
            "data": text,
        });
        out.extend_from_slice(message.to_string().as_bytes());
        true
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let time = (self.last - self.began) as f64 / 1e3;
        let times = json!({"time": time, "timings": {"send": 0, "wait": 0, "receive": time}});
        out.extend_from_slice(b"\n],");
        out.extend_from_slice(&times.to_string().as_bytes()[1..]);
        out.extend_from_slice(b"]}}\n");
    }
}
