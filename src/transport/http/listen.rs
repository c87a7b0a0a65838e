//! Serves ACP on an HTTP listener, and Agent Connect on the same port where that is configured.
//!
//! # Why
//!
//! **ACP's own paths go first.** Agent Connect may be served below `/`, and has `/agents/…` as
//! well; none of its paths ends as ACP's do.

use std::sync::Arc;

use super::port::{Beside, bind};
use super::server;
use crate::transport::{Endpoint, Listener, OpenError, Setup, agent_connect};

/// Binds an HTTP endpoint and serves ACP there.
pub(in crate::transport) async fn listen(
    at: &Endpoint,
    setup: &Setup,
) -> Result<Box<dyn Listener>, OpenError> {
    let bound = bind(at, setup).await?;
    let Some(path) = &setup.agent_connect.beside else {
        let host = server::serve(&bound.port);
        return Ok(bound.serve(host));
    };
    let lodger = agent_connect::serve(&bound.port, path)?;
    let host = server::serve(&bound.port);
    let is_lodgers = |host: &server::Service, lodger: &agent_connect::Service, path: &str| {
        !host.serves(path) && lodger.serves(path)
    };
    let both = Beside {
        host,
        lodger,
        is_lodgers,
    };
    Ok(bound.serve(Arc::new(both)))
}
