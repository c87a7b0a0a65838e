//! A listener of Streamable HTTP, and a client of it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use acp_relay::jsonrpc::Limits;
use acp_relay::transport::{HttpOptions, Link, Listener, Setup};
use hyper::StatusCode;
use tempfile::TempDir;

use super::super::pairs::certificate;
use crate::support::http::{Caller, How, INITIALIZE, INITIALIZED};
use crate::support::link::{accept, listen, received, send, setup_with};

/// A listener, and a client of it.
pub(crate) struct Site {
    pub(crate) listener: Box<dyn Listener>,
    pub(crate) caller: Caller,
    _dir: TempDir,
}

/// An open connection: its id, and the relay's link.
pub(crate) struct Open {
    pub(crate) id: String,
    pub(crate) link: Link,
}

impl Site {
    pub(crate) async fn open(how: How, limits: Limits) -> Self {
        Self::with(how, "http", limits, HttpOptions::default()).await
    }

    pub(crate) async fn with(how: How, scheme: &str, limits: Limits, front: HttpOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tls = certificate(&dir);
        let setup = Setup {
            tls: tls.clone(),
            http: front,
            ..setup_with(limits)
        };
        let s = if how == How::Tls { "s" } else { "" };
        let at = format!("{scheme}{s}://localhost:0");
        let listener = listen(&at.parse().unwrap(), &setup).await;
        let mut caller = Caller::to(&listener.address().to_string());
        (caller.how, caller.ca) = (how, tls.ca);
        Self {
            listener,
            caller,
            _dir: dir,
        }
    }

    /// Opens a connection.
    pub(crate) async fn initialize(&mut self) -> Open {
        let caller = self.caller.clone();
        let asking = async { caller.post(&[], INITIALIZE).await };
        let answering = async {
            let mut link = accept(&mut *self.listener).await;
            let first = received(&mut *link.rx).await;
            assert_eq!(first.as_bytes(), INITIALIZE.as_bytes());
            send(&mut *link.tx, INITIALIZED).await.unwrap();
            link
        };
        let (reply, link) = tokio::join!(asking, answering);
        assert_eq!((reply.status, &*reply.body), (StatusCode::OK, INITIALIZED));
        let id = reply.field("acp-connection-id").to_owned();
        Open { id, link }
    }
}
