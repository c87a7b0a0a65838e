//! The transport behind `http://`, `https://` and elephant.ai's routes.

use super::{link, listen};
use crate::transport::{ConnectFuture, Endpoint, ListenFuture, Setup, Transport};

/// The transport behind `http://`, `https://`, `elephant+http://` and `elephant+https://`.
#[derive(Debug)]
pub(in crate::transport) struct Http;

impl Transport for Http {
    fn schemes(&self) -> &'static [&'static str] {
        &["http", "https", "elephant+http", "elephant+https"]
    }

    fn connect<'a>(&'a self, to: &'a Endpoint, setup: &'a Setup) -> ConnectFuture<'a> {
        Box::pin(link::connect(to, setup))
    }

    fn listen<'a>(&'a self, at: &'a Endpoint, setup: &'a Setup) -> ListenFuture<'a> {
        Box::pin(listen(at, setup))
    }
}
