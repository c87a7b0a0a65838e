//! The names of the peers in a capture, from `initialize` and its answer.
//!
//! Most formats have no other place for them; a format that names the peers has precedence.

use super::capture::{Capture, Item};
use crate::jsonrpc::Side;
use crate::recording::parse_json;

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
    let (member, place) = match from {
        Side::Client => ("clientInfo", "/params/clientInfo"),
        Side::Agent => ("agentInfo", "/result/agentInfo"),
    };
    if item.to == from || memchr::memmem::find(&item.bytes, member.as_bytes()).is_none() {
        return None;
    }
    let message = parse_json(&item.bytes)?;
    if from == Side::Client && message["method"] != "initialize" {
        return None;
    }
    let info = message.pointer(place)?;
    let word = |name: &str| info[name].as_str().map(str::trim).filter(|w| !w.is_empty());
    let whole = match (word("name")?, word("version")) {
        (name, Some(version)) => format!("{name} {version}"),
        (name, None) => name.to_owned(),
    };
    Some(whole.chars().take(MAX_NAME).collect())
}
