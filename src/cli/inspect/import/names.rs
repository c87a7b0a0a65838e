//! The names of the peers in a capture, from `initialize` and its answer.
//!
//! Most formats have no other place for them; a format that names the peers has precedence.

use serde_json::Value;

use super::capture::{Capture, Item};
use crate::jsonrpc::{Kind, Limits, Scanned, Side, scan};
use crate::recording::members;

/// Maximum characters of a name.
const MAX_NAME: usize = 80;

impl Capture {
    /// Names the peers that the format does not name.
    pub(super) fn name_peers(&mut self) {
        for (name, from) in [
            (&mut self.client, Side::Client),
            (&mut self.agent, Side::Agent),
        ] {
            if name.is_none() {
                *name = self.items.iter().find_map(|item| name_in(item, from));
            }
        }
    }
}

/// The name and version of `from` in this message.
fn name_in(item: &Item, from: Side) -> Option<String> {
    // The result needs no request: no other result has this member.
    let (kind, member) = match from {
        Side::Client => (Kind::Request, "clientInfo"),
        Side::Agent => (Kind::Result, "agentInfo"),
    };
    if item.to == from || memchr::memmem::find(&item.bytes, member.as_bytes()).is_none() {
        return None;
    }
    let frame = item.frame();
    let Scanned::Message(envelope) = scan(&frame, &Limits::default()) else {
        return None;
    };
    if envelope.kind != kind
        || (kind == Kind::Request && !envelope.has_method(&frame, "initialize"))
    {
        return None;
    }
    let body = envelope.body(&frame)?;
    let (_, at) = members(body).find(|(name, _)| *name == member.as_bytes())?;
    let info: Value = serde_json::from_slice(&body[at]).ok()?;
    let word = |name: &str| info[name].as_str().map(str::trim).filter(|w| !w.is_empty());
    let whole = match (word("name")?, word("version")) {
        (name, Some(version)) => format!("{name} {version}"),
        (name, None) => name.to_owned(),
    };
    Some(whole.chars().take(MAX_NAME).collect())
}
