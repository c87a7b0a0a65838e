//! Serves ACP on an HTTP listener, and beside it the service of a module above this one where one is
//! configured.
//!
//! # Why
//!
//! **ACP's own paths go first.** Agent Connect may be served below `/`, and has `/agents/…` as
//! well; none of its paths ends as ACP's do.

use std::sync::Arc;

use super::port::bind;
use super::port::service::{BothServices, ServeBeside};
use super::server;
use crate::transport::{Endpoint, Listener, OpenError, Setup};

/// Binds an HTTP endpoint and serves ACP there.
pub(in crate::transport) async fn listen(
    at: &Endpoint,
    setup: &Setup,
) -> Result<Box<dyn Listener>, OpenError> {
    let bound = bind(at, setup).await?;
    let beside = setup.extensions.get::<ServeBeside>();
    let other = beside.map(|beside| beside.0(&bound.port)).transpose()?;
    let main = server::serve(&bound.port);
    let Some(other) = other.flatten() else {
        return Ok(bound.serve_with(main));
    };
    Ok(bound.serve_with(Arc::new(BothServices { main, other })))
}
