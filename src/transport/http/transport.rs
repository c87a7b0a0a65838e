//! The transport behind `http://`, `https://` and elephant.ai's routes.
//!
//! Not here: how each side of it works (see `server`).

use super::server;
use crate::transport::{BoxFuture, Endpoint, Link, Listener, OpenError, OpenErrorKind};
use crate::transport::{Setup, Transport};

/// The transport behind `http://`, `https://`, `elephant+http://` and `elephant+https://`.
#[derive(Debug)]
pub(in crate::transport) struct Http;

impl Transport for Http {
    fn schemes(&self) -> &'static [&'static str] {
        &["http", "https", "elephant+http", "elephant+https"]
    }

    fn connect<'a>(
        &'a self,
        to: &'a Endpoint,
        _setup: &'a Setup,
    ) -> BoxFuture<'a, Result<Link, OpenError>> {
        Box::pin(async move {
            let what = "agents behind HTTP cannot be reached yet";
            Err(OpenError::new(OpenErrorKind::Usage, to, what))
        })
    }

    fn listen<'a>(
        &'a self,
        at: &'a Endpoint,
        setup: &'a Setup,
    ) -> BoxFuture<'a, Result<Box<dyn Listener>, OpenError>> {
        Box::pin(server::listen(at, setup))
    }
}
