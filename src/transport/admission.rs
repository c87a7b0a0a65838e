//! A client on a byte stream, from the moment it is accepted: it is judged, and let in or turned
//! away.
//!
//! One that may not come in is told so in the only words it can be expected to know: an error that
//! answers no request. Not here: the judgement (see `guard`), and clients that begin with HTTP.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::{Arrival, Link, LinkError, OpenError, OpenErrorKind, Setup, failure, moment};
use crate::auth::{Claim, Denial, Principal, Turned};
use crate::jsonrpc::reply::{self, Reason};
use crate::jsonrpc::{Farewell, Id};

/// Time the client has to hear it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Judges a client that has just come. Its link is opened by the worker that will serve it.
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

/// The link of a client that was let in; one that was not is told.
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
                .with_remedy("Let it come over http:// or ws:// with a token");
            // It has gone already, or reads too slowly to be told.
            let _ = timeout(PATIENCE, tell(link)).await;
            Err(fault)
        }
    }
}

async fn tell(mut link: Link) -> Result<(), LinkError> {
    let reason = Reason::new(
        reply::POLICY_DENIED,
        "only programs of the relay's own user may come in here",
    );
    poll_fn(|cx| link.tx.poll_ready(cx)).await?;
    link.tx.start_send(reply::error(Id::Null, &reason))?;
    poll_fn(|cx| link.tx.poll_close(cx, Farewell::Unauthorized)).await
}
