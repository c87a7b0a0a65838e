//! The trace format of the official conductor, for the official trace viewer.
//!
//! After `trace.rs` of the crate `agent-client-protocol-conductor` 5.0: one JSON object a line, a
//! request, a response or a notification, with seconds since the beginning. It cannot represent
//! frames that are no message.

use super::format::ObjectWriter;
use super::{Exported, Format};
use crate::jsonrpc::{Kind, Side};

pub(super) struct Jsons;

impl Format for Jsons {
    fn message(&mut self, msg: &Exported<'_>, out: &mut Vec<u8>) -> bool {
        let (Some(kind), Some(body)) = (msg.kind(), msg.body()) else {
            return false;
        };
        let (from, to) = (name(msg.from), name(msg.from.other()));
        let is_call = matches!(kind, Kind::Request | Kind::Notification);
        let row = ObjectWriter::new()
            .with("type", if is_call { kind.name() } else { "response" })
            .with("ts", msg.seconds());
        let row = match kind {
            Kind::Result | Kind::Error => {
                let failed = kind == Kind::Error;
                row.with("from", from)
                    .with("to", to)
                    .with_raw("id", msg.id())
                    .with("is_error", failed)
                    .with_some("error_domain", failed.then_some("acp"))
                    .with_raw("payload", Some(body))
            }
            Kind::Request | Kind::Notification => {
                let row = row
                    .with("protocol", "acp")
                    .with("from", from)
                    .with("to", to);
                let row = match kind {
                    Kind::Request => row.with_raw("id", msg.id()),
                    _ => row,
                };
                row.with("method", msg.method())
                    .with_some("session", msg.message.session.as_deref())
                    .with_raw("params", Some(body))
            }
        };
        row.end(out);
        out.push(b'\n');
        true
    }
}

const fn name(side: Side) -> &'static str {
    match side {
        Side::Client => "Client",
        Side::Agent => "Agent",
    }
}
