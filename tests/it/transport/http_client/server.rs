//! A server whose answers the test gives, request by request.
//!
//! It only speaks HTTP, through hyper. The test sends its streams in pieces and breaks them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use acp_relay::transport::{Endpoint, Link, Setup, registry};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame as Part, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::support::link::{received, send};
pub(super) use crate::transport::http::caller::{INITIALIZE, INITIALIZED};

/// A request that waits for the test's answer.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) version: hyper::Version,
    pub(super) body: String,
    answer: oneshot::Sender<Option<Response<Pieces>>>,
}

pub(super) struct Server {
    pub(super) port: u16,
    asked: mpsc::Receiver<Asked>,
}

/// The far end of a stream of events.
pub(super) struct Events(mpsc::Sender<io::Result<Bytes>>);

/// A body in pieces.
#[derive(Debug)]
pub(super) struct Pieces(mpsc::Receiver<io::Result<Bytes>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Part<Bytes>>>> {
        let piece = std::task::ready!(self.0.poll_recv(cx));
        Poll::Ready(piece.map(|piece| piece.map(Part::data)))
    }
}

impl Server {
    pub(super) async fn start() -> Self {
        Self::start_with(None).await
    }

    pub(super) async fn start_with(tls: Option<TlsAcceptor>) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = socket.local_addr().expect("bound").port();
        let (tx, asked) = mpsc::channel(64);
        tokio::spawn(async move {
            while let Ok((stream, _)) = socket.accept().await {
                let (tx, tls) = (tx.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, tx).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, tx).await;
                            }
                        }
                    }
                });
            }
        });
        Self { port, asked }
    }

    pub(super) fn at(&self, scheme: &str) -> Endpoint {
        let text = format!("{scheme}://localhost:{}/acp", self.port);
        text.parse().expect("it is an endpoint")
    }

    /// The next request. One must come.
    pub(super) async fn next(&mut self) -> Asked {
        self.asked.recv().await.expect("the server lives")
    }

    /// The next request, which must have that method.
    pub(super) async fn of(&mut self, method: Method) -> Asked {
        let asked = self.next().await;
        assert_eq!(asked.method, method, "{asked:?}");
        asked
    }

    /// Fails when a request comes within a moment.
    pub(super) async fn quiet(&mut self) {
        if let Ok(asked) = timeout(Duration::from_millis(150), self.next()).await {
            panic!("an unexpected request: {asked:?}");
        }
    }

    /// A link whose `initialize` is answered, and the connection's stream of events.
    pub(super) async fn begun(&mut self, setup: &Setup) -> (Link, Events) {
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
        let events = self.of(Method::GET).await.stream();
        assert_eq!(received(&mut *link.rx).await, INITIALIZED.into());
        (link, events)
    }

    pub(super) async fn link(&self, setup: &Setup) -> Link {
        let link = registry::connect(&self.at("http"), setup).await;
        link.unwrap_or_else(|fault| panic!("{fault}"))
    }
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.get_all(name).iter();
        let only = all.next()?;
        assert!(all.next().is_none(), "{name} occurs twice: {self:?}");
        Some(std::str::from_utf8(only.as_bytes()).expect("it is text"))
    }

    pub(super) fn answer(self, status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) {
        let (tx, rx) = mpsc::channel(1);
        tx.try_send(Ok(body.into())).expect("there is room");
        self.respond(status, headers, Pieces(rx));
    }

    pub(super) fn accept(self) {
        self.answer(202, &[], "");
    }

    /// Answers with a stream of events.
    pub(super) fn stream(self) -> Events {
        assert_eq!(self.header("accept"), Some("text/event-stream"));
        let (tx, rx) = mpsc::channel(1);
        let head = [("content-type", "text/event-stream; charset=utf-8")];
        self.respond(200, &head, Pieces(rx));
        Events(tx)
    }

    /// Closes the connection without an answer.
    pub(super) fn hang_up(self) {
        self.answer.send(None).expect("the service waits");
    }

    fn respond(self, status: u16, headers: &[(&str, &str)], body: Pieces) {
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let response = response.body(body).expect("a response");
        // The client may have cancelled the request.
        let _ = self.answer.send(Some(response));
    }
}

impl Events {
    /// Sends a piece as it is.
    pub(super) async fn piece(&self, piece: impl Into<Bytes>) {
        let sent = self.0.send(Ok(piece.into())).await;
        sent.expect("the client reads");
    }

    /// Sends one event, without an id.
    pub(super) async fn send(&self, data: &str) {
        self.piece(format!("data: {data}\n\n")).await;
    }

    /// Breaks the connection.
    pub(super) async fn break_off(self) {
        let fault = Err(io::Error::other("broken on purpose"));
        self.0.send(fault).await.expect("the client reads");
    }

    /// Waits until the client has closed the stream.
    pub(super) async fn unread(self) {
        self.0.closed().await;
    }

    /// Whether a piece could be sent within the time; not when the client has stopped reading.
    pub(super) async fn sends(&self, piece: Bytes, within: Duration) -> bool {
        timeout(within, self.0.send(Ok(piece))).await.is_ok()
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    tx: mpsc::Sender<Asked>,
) {
    let tx = Arc::new(tx);
    let service = service_fn(move |request: Request<Incoming>| {
        let tx = Arc::clone(&tx);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            let (answer, answered) = oneshot::channel();
            let asked = Asked {
                method: head.method,
                uri: head.uri,
                headers: head.headers,
                version: head.version,
                body: String::from_utf8(body.into()).map_err(io::Error::other)?,
                answer,
            };
            tx.send(asked).await.map_err(io::Error::other)?;
            let answer = answered.await.ok().flatten();
            answer.ok_or_else(|| io::Error::other("hung up on purpose"))
        }
    });
    let builder = Builder::new(TokioExecutor::new());
    // It ends with an error when a test breaks it.
    let _ = builder
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
