//! Opens `replay:`.

use std::sync::Arc;

use super::super::{Endpoint, Link, OpenError, OpenErrorKind, PeerKind};
use super::{ReplayAddress, link};
use crate::jsonrpc::Side;
use crate::recording::replay::{Actor, Script, Unmatched};

/// A recording that was read, to be played once.
pub(in crate::transport) struct Replay {
    name: String,
    kind: PeerKind,
    actor: Actor,
}

/// Reads a recording.
pub(in crate::transport) fn open(
    to: &Endpoint,
    address: &ReplayAddress<Endpoint>,
) -> Result<Replay, OpenError> {
    let unread = |what: String| OpenError::new(OpenErrorKind::NoInput, to, what);
    let script =
        Script::open(&address.path, address.edge).map_err(|error| unread(error.to_string()))?;
    let rules = address.rules().map_err(unread)?;
    if rules.unmatched == Unmatched::Forward && address.forward.is_none() {
        let what = "the agent to forward to is missing; name it with forward=ENDPOINT";
        return Err(OpenError::new(OpenErrorKind::Usage, to, what));
    }
    Ok(Replay {
        name: to.to_string(),
        kind: match address.edge {
            Side::Client => PeerKind::Replayed,
            // A relay stood between that form of the messages and the client, and does so again.
            Side::Agent => PeerKind::Remote,
        },
        actor: Actor::new(Arc::new(script), rules),
    })
}

impl Replay {
    /// The link to it. What was not recorded is forwarded to the agent `live`.
    pub(in crate::transport) fn link(self, live: Option<Link>) -> Link {
        link::open(self.name, self.kind, self.actor, live)
    }
}
