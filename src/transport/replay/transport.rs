//! The transport for `replay:`.

use std::sync::Arc;

use super::super::{
    Binding, Connecting, Endpoint, OpenError, OpenErrorKind, PeerKind, Setup, Transport, registry,
};
use super::{Spot, link};
use crate::recording::replay::{Actor, Edge, Rules, Script, Unmatched};

/// Plays recordings.
#[derive(Debug)]
pub(in crate::transport) struct Replay;

impl Transport for Replay {
    fn schemes(&self) -> &'static [&'static str] {
        &["replay"]
    }

    fn check(&self, to: &Endpoint, setup: &Setup) -> Result<(), OpenError> {
        let spot = spot(to)?;
        read(to, spot)?;
        match &spot.forward {
            Some(forward) => registry::check(forward, setup),
            None => Ok(()),
        }
    }

    fn connect<'a>(&'a self, to: &'a Endpoint, setup: &'a Setup) -> Connecting<'a> {
        Box::pin(async move {
            let spot = spot(to)?;
            let (script, rules) = read(to, spot)?;
            let live = match &spot.forward {
                Some(forward) => Some(registry::connect(forward, setup).await?),
                None => None,
            };
            let actor = Actor::new(Arc::new(script), rules);
            let kind = match spot.edge {
                Edge::Client => PeerKind::Played,
                // A relay stood between that form of the messages and the client, and does so
                // again.
                Edge::Agent => PeerKind::Remote,
            };
            Ok(link::open(to.to_string(), kind, actor, live))
        })
    }

    fn listen<'a>(&'a self, at: &'a Endpoint, _setup: &'a Setup) -> Binding<'a> {
        Box::pin(async move {
            let what = "a recording plays the agent; no client can connect from it";
            let mut error = OpenError::new(OpenErrorKind::Usage, at, what);
            error.remedy =
                Some("To play the client, use `acp-relay replay client FILE`".to_owned());
            Err(error)
        })
    }
}

fn spot(endpoint: &Endpoint) -> Result<&Spot, OpenError> {
    match endpoint {
        Endpoint::Replay(spot) => Ok(spot),
        other => Err(OpenError::misplaced(other)),
    }
}

fn read(to: &Endpoint, spot: &Spot) -> Result<(Script, Rules), OpenError> {
    let unread = |what: String| OpenError::new(OpenErrorKind::NoInput, to, what);
    let script = Script::open(&spot.path, spot.edge).map_err(|error| unread(error.to_string()))?;
    let rules = spot.rules().map_err(unread)?;
    if rules.unmatched == Unmatched::Forward && spot.forward.is_none() {
        let what = "the agent to forward to is missing; name it with forward=ENDPOINT";
        return Err(OpenError::new(OpenErrorKind::Usage, to, what));
    }
    Ok((script, rules))
}
