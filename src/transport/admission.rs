//! Authenticates a client on a byte stream when it is accepted, and rejects it if necessary.
//!
//! A rejected client receives a JSON-RPC error with the id `null`, because no request came before.
//! The decision itself is `auth`'s; clients over HTTP are handled elsewhere.

use std::io;
use std::time::Duration;

use tokio::time::timeout;

use super::{
    AcceptFuture, BoxFuture, Endpoint, IncomingLink, Link, LinkError, Listener, OpenError,
    OpenErrorKind, Setup, clock, open_error,
};
use auth::{Credentials, RejectReason};
use jsonrpc::reply::{self, Reason};
use jsonrpc::{CloseReason, Id};

/// Time limit for sending the error to a rejected client.
const REJECT_TIMEOUT: Duration = Duration::from_secs(1);

/// A bound socket whose clients speak over a byte stream.
pub(super) struct StreamListener<S> {
    pub(super) socket: S,
    pub(super) at: Endpoint,
    pub(super) setup: Setup,
    /// Accepts the next client.
    pub(super) next: for<'a> fn(&'a Self) -> BoxFuture<'a, io::Result<IncomingLink>>,
}

impl<S: Send + Sync> Listener for StreamListener<S> {
    fn accept(&mut self) -> AcceptFuture<'_> {
        let next = (self.next)(self);
        Box::pin(async move { Some(next.await) })
    }

    fn address(&self) -> Endpoint {
        self.at.clone()
    }

    fn update(&mut self, setup: &Setup) -> Result<(), OpenError> {
        self.setup = setup.clone();
        Ok(())
    }
}

/// Authenticates a new client. Its link is opened by the worker that will serve it; a rejected
/// client receives an error.
pub(super) fn admit(
    from: String,
    credentials: &Credentials,
    setup: &Setup,
    scheme: &'static str,
    open: impl FnOnce(String, &Setup) -> io::Result<Link> + Send + 'static,
) -> IncomingLink {
    let decision = setup.gate.authenticate(credentials, clock::current_time());
    let worker = setup.workers.pick();
    let (name, setup) = (from.clone(), setup.clone());
    let finish = Box::pin(async move {
        let link = open(name.clone(), &setup);
        let mut link = link.map_err(|source| open_error::not_accepted(&name, &source))?;
        if let Ok(principal) = decision {
            link.peer.principal = Some(principal);
            return match &setup.links {
                Some(links) if setup.detects_links => Ok(links.detect(link, &setup.limits).await),
                _ => Ok(Some(link)),
            };
        }
        setup.gate.rejected(scheme, RejectReason::Auth);
        let user = setup.gate.user_name();
        let what = format!("it is not known to be a program of the user {user}");
        let fault = OpenError::new(OpenErrorKind::Forbidden, &link.peer.name, what)
            .with_remedy("Connect it over http:// or ws:// with a token");
        // The client may have disconnected already, or read too slowly.
        let _ = timeout(REJECT_TIMEOUT, reject(link)).await;
        Err(fault)
    });
    IncomingLink {
        from,
        finish,
        worker,
    }
}

async fn reject(mut link: Link) -> Result<(), LinkError> {
    let reason = Reason::new(
        reply::POLICY_DENIED,
        "only programs of the relay's own user may connect here",
    );
    link.send(reply::error(Id::Null, &reason)).await?;
    link.close(CloseReason::Unauthorized).await
}
