//! The transport for `replay:`.

use std::sync::Arc;

use super::super::{
    ConnectFuture, Endpoint, ListenFuture, OpenError, OpenErrorKind, PeerKind, Setup, Transport,
};
use super::{ReplayAddress, link};
use crate::jsonrpc::Side;
use crate::recording::replay::{Actor, ReplayRules, Script, Unmatched};

/// Plays recordings. The live agent of a recording is opened as any other endpoint.
#[derive(Debug)]
pub(in crate::transport) struct ReplayTransport {
    pub(in crate::transport) check: fn(&Endpoint, &Setup) -> Result<(), OpenError>,
    pub(in crate::transport) connect: for<'a> fn(&'a Endpoint, &'a Setup) -> ConnectFuture<'a>,
}

impl Transport for ReplayTransport {
    fn schemes(&self) -> &'static [&'static str] {
        &["replay"]
    }

    fn check(&self, to: &Endpoint, setup: &Setup) -> Result<(), OpenError> {
        let address = address(to)?;
        read(to, address)?;
        match &address.forward {
            Some(forward) => (self.check)(forward, setup),
            None => Ok(()),
        }
    }

    fn connect<'a>(&'a self, to: &'a Endpoint, setup: &'a Setup) -> ConnectFuture<'a> {
        Box::pin(async move {
            let address = address(to)?;
            let (script, rules) = read(to, address)?;
            let live = match &address.forward {
                Some(forward) => Some((self.connect)(forward, setup).await?),
                None => None,
            };
            let actor = Actor::new(Arc::new(script), rules);
            let kind = match address.edge {
                Side::Client => PeerKind::Replayed,
                // A relay stood between that form of the messages and the client, and does so
                // again.
                Side::Agent => PeerKind::Remote,
            };
            Ok(link::open(to.to_string(), kind, actor, live))
        })
    }

    fn listen<'a>(&'a self, at: &'a Endpoint, _setup: &'a Setup) -> ListenFuture<'a> {
        Box::pin(async move {
            let what = "a recording plays the agent; no client can connect from it";
            Err(OpenError::new(OpenErrorKind::Usage, at, what)
                .with_remedy("To play the client, use `acp-relay replay client FILE`"))
        })
    }
}

fn address(endpoint: &Endpoint) -> Result<&ReplayAddress<Endpoint>, OpenError> {
    match endpoint {
        Endpoint::Replay(address) => Ok(address),
        other => Err(OpenError::wrong_scheme(other)),
    }
}

fn read(
    to: &Endpoint,
    address: &ReplayAddress<Endpoint>,
) -> Result<(Script, ReplayRules), OpenError> {
    let unread = |what: String| OpenError::new(OpenErrorKind::NoInput, to, what);
    let script =
        Script::open(&address.path, address.edge).map_err(|error| unread(error.to_string()))?;
    let rules = address.rules().map_err(unread)?;
    if rules.unmatched == Unmatched::Forward && address.forward.is_none() {
        let what = "the agent to forward to is missing; name it with forward=ENDPOINT";
        return Err(OpenError::new(OpenErrorKind::Usage, to, what));
    }
    Ok((script, rules))
}
