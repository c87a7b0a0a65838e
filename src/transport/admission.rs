//! Authenticates a client on a byte stream when it is accepted, and rejects it if necessary.
//!
//! A rejected client receives a JSON-RPC error with the id `null`, because no request came before.
//! The decision itself is `auth`'s; clients over HTTP are handled elsewhere.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::{Arrival, Link, LinkError, OpenError, OpenErrorKind, Setup, failure, moment};
use crate::auth::{Claim, Denial, Principal, Turned};
use crate::jsonrpc::reply::{self, Reason};
use crate::jsonrpc::{Farewell, Id};

/// Time limit for sending the error to a rejected client.
const PATIENCE: Duration = Duration::from_secs(1);

/// Authenticates a new client. Its link is opened by the worker that will serve it.
pub(super) fn arrival(
    from: String,
    claim: &Claim,
    setup: &Setup,
    scheme: &'static str,
    open: impl FnOnce(String, &Setup) -> io::Result<Link> + Send + 'static,
) -> Arrival {
    let judged = setup.gate.judge(claim, moment());
    let worker = setup.workers.pick();
    let (name, setup) = (from.clone(), setup.clone());
    let finish = Box::pin(async move {
        let link = open(name.clone(), &setup);
        let link = link.map_err(|source| failure::not_taken(&name, &source))?;
        settle(judged, link, &setup, scheme).await
    });
    Arrival {
        from,
        finish,
        worker,
    }
}

/// The link of an admitted client; a rejected client receives an error.
async fn settle(
    judged: Result<Arc<Principal>, Denial>,
    mut link: Link,
    setup: &Setup,
    scheme: &'static str,
) -> Result<Link, OpenError> {
    match judged {
        Ok(principal) => {
            link.peer.principal = Some(principal);
            Ok(link)
        }
        Err(_) => {
            setup.gate.turned_away(scheme, Turned::Auth);
            let unlike = setup.gate.user_name();
            let what = format!("it is not known to be a program of the user {unlike}");
            let fault = OpenError::new(OpenErrorKind::Forbidden, &link.peer.name, what)
                .with_remedy("Connect it over http:// or ws:// with a token");
            // The client may have disconnected already, or read too slowly.
            let _ = timeout(PATIENCE, tell(link)).await;
            Err(fault)
        }
    }
}

async fn tell(mut link: Link) -> Result<(), LinkError> {
    let reason = Reason::new(
        reply::POLICY_DENIED,
        "only programs of the relay's own user may connect here",
    );
    poll_fn(|cx| link.tx.poll_ready(cx)).await?;
    link.tx.start_send(reply::error(Id::Null, &reason))?;
    poll_fn(|cx| link.tx.poll_close(cx, Farewell::Unauthorized)).await
}
