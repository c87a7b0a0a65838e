//! What answers the requests of a port.

use std::sync::Arc;

use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;

use super::caller::Caller;
use super::shared::Port;
use crate::transport::{BoxFuture, OpenError, Setup};

/// Answers the requests of a port.
pub(crate) trait HttpService: Send + Sync {
    /// Whether it serves a path of the port.
    fn serves(&self, path: &str) -> bool;

    /// Answers one request. Called in the order of the heads of a socket.
    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        caller: Arc<Caller>,
    ) -> BoxFuture<'static, Response>;

    /// Applies the settings that can change while it runs.
    fn renew(&self, setup: &Setup) {
        let _ = setup;
    }

    /// Waits, once no more clients are accepted, until nothing needs the port any more.
    fn ended(&self) -> BoxFuture<'_, ()>;
}

/// Starts the service that the settings put beside ACP on a port, if any. It is one of the
/// `extensions` of the settings.
#[derive(Clone, Copy)]
pub(crate) struct ServeBeside(pub(crate) fn(&Arc<Port>) -> StartedService);

/// What [`ServeBeside`] returns.
pub(crate) type StartedService = Result<Option<Arc<dyn HttpService>>, OpenError>;

/// Two services on one port.
pub(in crate::transport::http) struct BothServices {
    /// It also refuses the paths that neither of them serves.
    pub(in crate::transport::http) main: Arc<dyn HttpService>,
    pub(in crate::transport::http) other: Arc<dyn HttpService>,
}

impl HttpService for BothServices {
    fn serves(&self, path: &str) -> bool {
        self.main.serves(path) || self.other.serves(path)
    }

    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        caller: Arc<Caller>,
    ) -> BoxFuture<'static, Response> {
        let path = request.uri().path();
        let for_other = !self.main.serves(path) && self.other.serves(path);
        let service = if for_other { &self.other } else { &self.main };
        service.clone().answer(request, caller)
    }

    fn renew(&self, setup: &Setup) {
        self.main.renew(setup);
        self.other.renew(setup);
    }

    fn ended(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            tokio::join!(self.main.ended(), self.other.ended());
        })
    }
}
