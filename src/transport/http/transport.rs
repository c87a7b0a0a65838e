//! The transport behind `http://`, `https://`, `elephant+http://` and `elephant+https://`.
//!
//! Not here: what either half does (see `client`).

use super::client;
use crate::transport::{
    BoxFuture, Endpoint, Link, Listener, OpenError, OpenErrorKind, Setup, Transport,
};

/// The transport behind the schemes of HTTP.
#[derive(Debug)]
pub(in crate::transport) struct Http;

impl Transport for Http {
    fn schemes(&self) -> &'static [&'static str] {
        &["http", "https", "elephant+http", "elephant+https"]
    }

    fn connect<'a>(
        &'a self,
        to: &'a Endpoint,
        setup: &'a Setup,
    ) -> BoxFuture<'a, Result<Link, OpenError>> {
        Box::pin(client::connect(to, setup))
    }

    fn listen<'a>(
        &'a self,
        at: &'a Endpoint,
        _setup: &'a Setup,
    ) -> BoxFuture<'a, Result<Box<dyn Listener>, OpenError>> {
        Box::pin(async move {
            let what = "listening there is not built in yet";
            Err(OpenError::new(OpenErrorKind::Usage, at, what))
        })
    }
}
