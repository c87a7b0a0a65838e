//! Authenticates a client on a byte stream when it is accepted, and rejects it if necessary.
//!
//! A rejected client receives a JSON-RPC error with the id `null`, because no request came before.
//! The decision itself is `auth`'s; clients over HTTP are handled elsewhere.

use std::time::Duration;

use tokio::time::timeout;

use super::{IncomingLink, Link, LinkError, OpenError, OpenErrorKind, Setup, clock};
use crate::auth::{Credentials, RejectReason};
use crate::jsonrpc::reply::{self, Reason};
use crate::jsonrpc::{CloseReason, Id};

/// Time limit for sending the error to a rejected client.
const REJECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Authenticates the client on a new link.
pub(super) fn admit(
    mut link: Link,
    credentials: &Credentials,
    setup: &Setup,
    scheme: &'static str,
) -> IncomingLink {
    let decision = setup.gate.authenticate(credentials, clock::current_time());
    let (from, gate) = (link.peer.name.clone(), setup.gate.clone());
    let finish = Box::pin(async move {
        if let Ok(principal) = decision {
            link.peer.principal = Some(principal);
            return Ok(link);
        }
        gate.rejected(scheme, RejectReason::Auth);
        let user = gate.user_name();
        let what = format!("it is not known to be a program of the user {user}");
        let fault = OpenError::new(OpenErrorKind::Forbidden, &link.peer.name, what)
            .with_remedy("Connect it over http:// or ws:// with a token");
        // The client may have disconnected already, or read too slowly.
        let _ = timeout(REJECT_TIMEOUT, reject(link)).await;
        Err(fault)
    });
    IncomingLink { from, finish }
}

async fn reject(mut link: Link) -> Result<(), LinkError> {
    let reason = Reason::new(
        reply::POLICY_DENIED,
        "only programs of the relay's own user may connect here",
    );
    link.send(reply::error(Id::Null, &reason)).await?;
    link.close(CloseReason::Unauthorized).await
}
