//! Serves ACP on an HTTP listener, and Agent Connect on the same port where that is configured.
//!
//! # Why
//!
//! **ACP's own paths go first.** Agent Connect may be served below `/`, and has `/agents/…` as
//! well; none of its paths ends as ACP's do.

use std::sync::Arc;

use super::port::{EitherHandler, bind};
use super::server;
use crate::transport::{Endpoint, Listener, OpenError, Setup, agent_connect};

/// Binds an HTTP endpoint and serves ACP there.
pub(in crate::transport) async fn listen(
    at: &Endpoint,
    setup: &Setup,
) -> Result<Box<dyn Listener>, OpenError> {
    let bound = bind(at, setup).await?;
    let Some(path) = &setup.agent_connect.path else {
        let main = server::serve(&bound.port);
        return Ok(bound.serve(main));
    };
    let other = agent_connect::serve(&bound.port, path)?;
    let main = server::serve(&bound.port);
    let is_for_other =
        |main: &server::AcpService, other: &agent_connect::RestService, path: &str| {
            !main.serves(path) && other.serves(path)
        };
    let both = EitherHandler {
        main,
        other,
        is_for_other,
    };
    Ok(bound.serve(Arc::new(both)))
}
