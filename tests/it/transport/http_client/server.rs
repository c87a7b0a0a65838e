//! Links to a server whose answers the test gives.

use acp_relay::transport::{Endpoint, Link, Setup, registry};
use hyper::Method;

use crate::support::http::{INITIALIZE, INITIALIZED};
use crate::support::http_server::{Asked, Events, Server};
use crate::support::link::{received, send};

impl Server {
    pub(crate) fn at(&self, scheme: &str) -> Endpoint {
        let text = format!("{scheme}://localhost:{}/acp", self.port);
        text.parse().expect("it is an endpoint")
    }

    /// A link whose `initialize` is answered, and the connection's stream of events.
    pub(super) async fn begun(&mut self, setup: &Setup) -> (Link, Events) {
        let (link, asked) = self.initialized(setup).await;
        (link, asked.stream())
    }

    /// The same, without an answer to the request for the stream.
    pub(super) async fn initialized(&mut self, setup: &Setup) -> (Link, Asked) {
        let mut link = self.link(setup).await;
        send(&mut *link.tx, INITIALIZE).await.expect("it is sent");
        let asked = self.of(Method::POST).await;
        assert_eq!(asked.body, INITIALIZE);
        assert!(asked.header("acp-connection-id").is_none(), "{asked:?}");
        let head = [
            ("acp-connection-id", "c1"),
            ("content-type", "application/json"),
        ];
        asked.answer(200, &head, INITIALIZED);
        assert_eq!(received(&mut *link.rx).await, INITIALIZED.into());
        (link, self.of(Method::GET).await)
    }

    pub(super) async fn link(&self, setup: &Setup) -> Link {
        let link = registry::connect(&self.at("http"), setup).await;
        link.unwrap_or_else(|fault| panic!("{fault}"))
    }
}
