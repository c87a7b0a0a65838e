//! A server whose answers the test gives, request by request.
//!
//! It only speaks HTTP, through hyper. The test sends its streams in pieces and breaks them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

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

/// A request that waits for the test's answer.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) version: hyper::Version,
    pub(crate) body: String,
    answer: oneshot::Sender<Option<Response<Pieces>>>,
}

pub(crate) struct Server {
    pub(crate) port: u16,
    asked: mpsc::Receiver<Asked>,
}

/// Status, header fields and body.
pub(crate) type Answer = Option<(u16, Vec<(&'static str, &'static str)>, String)>;

/// The far end of a stream of events.
pub(crate) struct Events(mpsc::Sender<io::Result<Bytes>>);

/// A body in pieces.
#[derive(Debug)]
pub(crate) struct Pieces(mpsc::Receiver<io::Result<Bytes>>);

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
    pub(crate) async fn start() -> Self {
        Self::start_with(None).await
    }

    pub(crate) async fn start_with(tls: Option<TlsAcceptor>) -> Self {
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

    /// Starts one that answers each request with what `answer` returns: status, header fields and
    /// body; `None` opens a stream of events that does not end. Returns its `HOST:PORT`.
    pub(crate) async fn answering(answer: impl Fn(&Asked) -> Answer + Send + 'static) -> String {
        let mut server = Self::start().await;
        let host = format!("127.0.0.1:{}", server.port);
        tokio::spawn(async move {
            let mut streams = Vec::new();
            while let Some(asked) = server.asked.recv().await {
                match answer(&asked) {
                    Some((status, fields, body)) => asked.answer(status, &fields, body),
                    None => streams.push(asked.stream()),
                }
            }
        });
        host
    }

    /// The next request. One must come.
    pub(crate) async fn next(&mut self) -> Asked {
        self.asked.recv().await.expect("the server lives")
    }

    /// The next request, which must have that method.
    pub(crate) async fn of(&mut self, method: Method) -> Asked {
        let asked = self.next().await;
        assert_eq!(asked.method, method, "{asked:?}");
        asked
    }

    /// Fails when a request comes within a moment.
    pub(crate) async fn quiet(&mut self) {
        if let Ok(asked) = timeout(Duration::from_millis(150), self.next()).await {
            panic!("an unexpected request: {asked:?}");
        }
    }
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.get_all(name).iter();
        let only = all.next()?;
        assert!(all.next().is_none(), "{name} occurs twice: {self:?}");
        Some(std::str::from_utf8(only.as_bytes()).expect("it is text"))
    }

    pub(crate) fn answer(self, status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) {
        let (tx, rx) = mpsc::channel(1);
        tx.try_send(Ok(body.into())).expect("there is room");
        self.respond(status, headers, Pieces(rx));
    }

    pub(crate) fn accept(self) {
        self.answer(202, &[], "");
    }

    /// Answers with a stream of events.
    pub(crate) fn stream(self) -> Events {
        assert_eq!(self.header("accept"), Some("text/event-stream"));
        self.stream_with(&[])
    }

    /// The same, with these header fields, to a client that may accept other types as well.
    pub(crate) fn stream_with(self, headers: &[(&str, &str)]) -> Events {
        let (tx, rx) = mpsc::channel(1);
        let kind = [("content-type", "text/event-stream; charset=utf-8")];
        self.respond(200, &[headers, &kind].concat(), Pieces(rx));
        Events(tx)
    }

    /// Closes the connection without an answer.
    pub(crate) fn hang_up(self) {
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
    pub(crate) async fn piece(&self, piece: impl Into<Bytes>) {
        let sent = self.0.send(Ok(piece.into())).await;
        sent.expect("the client reads");
    }

    /// Sends one event, without an id.
    pub(crate) async fn send(&self, data: &str) {
        self.piece(format!("data: {data}\n\n")).await;
    }

    /// Breaks the connection.
    pub(crate) async fn break_off(self) {
        let fault = Err(io::Error::other("broken on purpose"));
        self.0.send(fault).await.expect("the client reads");
    }

    /// Waits until the client has closed the stream.
    pub(crate) async fn unread(self) {
        self.0.closed().await;
    }

    /// Whether a piece could be sent within the time; not when the client has stopped reading.
    pub(crate) async fn sends(&self, piece: Bytes, within: Duration) -> bool {
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
