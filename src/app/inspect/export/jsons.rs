//! The trace of the official conductor, for the official trace viewer.
//!
//! After `trace.rs` of the crate `agent-client-protocol-conductor` 5.0: one JSON object a line, a
//! request, a response or a notification, with seconds since the beginning. It has no place for
//! what is no message.

use serde_json::json;

use super::form::line;
use super::{Form, Said};
use crate::recording::MessageKind;
use crate::wire::Side;

pub(super) struct Jsons;

impl Form for Jsons {
    fn message(&mut self, said: &Said<'_>, out: &mut Vec<u8>) -> bool {
        let (Some(kind), Some(body)) = (said.kind(), said.body()) else {
            return false;
        };
        let (from, to) = (name(said.from), name(said.from.other()));
        let value = match kind {
            MessageKind::Result | MessageKind::Error => {
                let failed = kind == MessageKind::Error;
                let mut value = json!({
                    "type": "response",
                    "ts": said.seconds(),
                    "from": from,
                    "to": to,
                    "id": said.id(),
                    "is_error": failed,
                });
                if failed {
                    value["error_domain"] = json!("acp");
                }
                value["payload"] = json!(body);
                value
            }
            MessageKind::Request | MessageKind::Notification => {
                let mut value = json!({
                    "type": kind.name(),
                    "ts": said.seconds(),
                    "protocol": "acp",
                    "from": from,
                    "to": to,
                });
                if kind == MessageKind::Request {
                    value["id"] = json!(said.id());
                }
                value["method"] = json!(said.method());
                if let Some(session) = &said.message.session {
                    value["session"] = json!(session);
                }
                value["params"] = json!(body);
                value
            }
        };
        line(out, &value);
        true
    }
}

const fn name(side: Side) -> &'static str {
    match side {
        Side::Client => "Client",
        Side::Agent => "Agent",
    }
}
