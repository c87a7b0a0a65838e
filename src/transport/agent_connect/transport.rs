//! The transport behind `agent-connect+http://` and `agent-connect+https://`.
//!
//! Not here: what it does (see `listen`).

use super::listen::listen;
use crate::transport::{
    BoxFuture, Endpoint, Link, Listener, OpenError, OpenErrorKind, Setup, Transport,
};

/// The transport behind `agent-connect+http://` and `agent-connect+https://`.
#[derive(Debug)]
pub(in crate::transport) struct Rest;

impl Transport for Rest {
    fn schemes(&self) -> &'static [&'static str] {
        &["agent-connect+http", "agent-connect+https"]
    }

    fn check(&self, to: &Endpoint, _setup: &Setup) -> Result<(), OpenError> {
        let what = "Agent Connect is served here, but agents of it cannot be used yet";
        Err(OpenError::new(OpenErrorKind::Usage, to, what))
    }

    fn connect<'a>(
        &'a self,
        to: &'a Endpoint,
        setup: &'a Setup,
    ) -> BoxFuture<'a, Result<Link, OpenError>> {
        Box::pin(async move { Err(self.check(to, setup).expect_err("it is never possible")) })
    }

    fn listen<'a>(
        &'a self,
        at: &'a Endpoint,
        setup: &'a Setup,
    ) -> BoxFuture<'a, Result<Box<dyn Listener>, OpenError>> {
        Box::pin(listen(at, setup))
    }
}
