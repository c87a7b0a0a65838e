//! A client without state: each call is one request on a socket of its own.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::sync::Arc;

use acp_relay::jsonrpc::Limits;
use acp_relay::transport::{Endpoint, HttpEndpoint, HttpOptions, Link, Listener, Setup, Tls};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::super::pairs::certificate;
use crate::support::link::{accept, listen, received, send, setup_with};

/// How a listener is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    H1,
    /// HTTP/2 in clear, by prior knowledge.
    H2,
    /// HTTP/2 over TLS, negotiated by ALPN.
    Tls,
}

/// All of them.
pub(crate) const EVERY_WAY: [How; 3] = [How::H1, How::H2, How::Tls];

/// A listener, and a client of it.
pub(crate) struct Site {
    pub(crate) listener: Box<dyn Listener>,
    pub(crate) caller: Caller,
    _dir: TempDir,
}

/// Where and how requests are sent.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) how: How,
    pub(crate) port: u16,
    tls: Tls,
}

/// An answer whose body was read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) body: String,
}

/// An open stream of events.
#[derive(Debug)]
pub(crate) struct Events {
    pub(crate) fields: HeaderMap,
    body: Incoming,
    rest: BytesMut,
}

/// One event, or a comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) data: String,
    pub(crate) retry: String,
    pub(crate) comment: Option<String>,
}

/// An open connection: its id, and the relay's link.
pub(crate) struct Open {
    pub(crate) id: String,
    pub(crate) link: Link,
}

pub(crate) const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#;

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
        let Endpoint::Http(HttpEndpoint { port, .. }) = listener.address() else {
            panic!("{}", listener.address());
        };
        Self {
            listener,
            caller: Caller { how, port, tls },
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
        let id = reply.fields["acp-connection-id"].to_str().unwrap();
        Open {
            id: id.to_owned(),
            link,
        }
    }
}

impl Caller {
    /// Over HTTP/1.1, to the listener at `endpoint`.
    pub(crate) fn to(endpoint: &str) -> Self {
        let Ok(Endpoint::Http(HttpEndpoint { port, .. })) = endpoint.parse() else {
            panic!("{endpoint}");
        };
        Self {
            how: How::H1,
            port,
            tls: Tls::default(),
        }
    }

    pub(crate) async fn post(&self, fields: &[(&str, &str)], body: &str) -> Reply {
        let json = [("content-type", "application/json")];
        let fields = [&json[..], fields].concat();
        self.ask("POST", "/acp", &fields, body).await
    }

    /// Opens a stream, which must succeed.
    pub(crate) async fn events(&self, fields: &[(&str, &str)]) -> Events {
        self.events_at("/acp", fields).await
    }

    pub(crate) async fn events_at(&self, path: &str, fields: &[(&str, &str)]) -> Events {
        let accept = [("accept", "text/event-stream")];
        let fields = [&accept[..], fields].concat();
        let answer = self.call("GET", path, &fields, "").await;
        assert_eq!(answer.status(), StatusCode::OK, "{fields:?}");
        Events::of(answer)
    }

    /// Requests a stream that is refused.
    pub(crate) async fn no_events(&self, fields: &[(&str, &str)]) -> Reply {
        let accept = [("accept", "text/event-stream")];
        self.ask("GET", "/acp", &[&accept[..], fields].concat(), "")
            .await
    }

    /// Opens a stream; `None` while another request has it.
    pub(crate) async fn try_events(&self, fields: &[(&str, &str)]) -> Option<Events> {
        let answer = self.call("GET", "/acp", fields, "").await;
        (answer.status() != StatusCode::CONFLICT).then(|| Events::of(answer))
    }

    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let answer = self.call(method, path, fields, body).await;
        let (head, body) = answer.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Reply {
            status: head.status,
            fields: head.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    async fn call(
        &self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> Response<Incoming> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let scheme = if self.how == How::Tls {
            "https"
        } else {
            "http"
        };
        let host = fields.iter().find(|(name, _)| *name == "host");
        let host = match host {
            Some((_, host)) => (*host).to_owned(),
            None => format!("localhost:{}", self.port),
        };
        let uri = match self.how {
            How::H1 => path.to_owned(),
            _ => format!("{scheme}://{host}{path}"),
        };
        let mut request = Request::builder().method(method).uri(uri);
        if self.how == How::H1 {
            request = request.header("host", &host);
        }
        for (name, value) in fields.iter().filter(|(name, _)| *name != "host") {
            request = request.header(*name, *value);
        }
        let body = Full::new(Bytes::from(body.to_owned()));
        let request = request.body(body).unwrap();
        match self.how {
            How::H1 => {
                let (mut sender, connection) =
                    http1::handshake(TokioIo::new(stream)).await.unwrap();
                tokio::spawn(connection);
                sender.send_request(request).await.unwrap()
            }
            How::H2 => over_h2(stream, request).await,
            How::Tls => over_h2(self.encrypt(stream).await, request).await,
        }
    }

    async fn encrypt(
        &self,
        stream: TcpStream,
    ) -> impl AsyncRead + AsyncWrite + Unpin + Send + use<> {
        let mut roots = RootCertStore::empty();
        let file = self.tls.ca.as_ref().unwrap();
        roots
            .add(CertificateDer::from_pem_file(file).unwrap())
            .unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        stream
    }
}

async fn over_h2<S>(stream: S, request: Request<Full<Bytes>>) -> Response<Incoming>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(stream);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    sender.send_request(request).await.unwrap()
}

impl Events {
    fn of(answer: Response<Incoming>) -> Self {
        Self {
            fields: answer.headers().clone(),
            body: answer.into_body(),
            rest: BytesMut::new(),
        }
    }

    /// The next event or comment; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        let mut searched = 0;
        loop {
            let found = memchr::memmem::find(&self.rest[searched..], b"\n\n");
            if let Some(end) = found.map(|at| searched + at) {
                let block = self.rest.split_to(end + 2);
                let block = std::str::from_utf8(&block[..end]).unwrap();
                let mut event = Event::default();
                for line in block.lines() {
                    match line.split_once(':').unwrap() {
                        ("", comment) => event.comment = Some(comment.to_owned()),
                        ("id", id) => event.id = id.trim_start().to_owned(),
                        ("data", data) => event.data = data.strip_prefix(' ').unwrap().to_owned(),
                        ("retry", retry) => event.retry = retry.trim_start().to_owned(),
                        other => panic!("{other:?}"),
                    }
                }
                return Some(event);
            }
            searched = self.rest.len().saturating_sub(1);
            let part = self.body.frame().await?;
            self.rest
                .extend_from_slice(&part.ok()?.into_data().unwrap());
        }
    }

    /// The next event with data.
    pub(crate) async fn event(&mut self) -> Event {
        loop {
            let event = self.next().await.expect("the stream has ended");
            if !event.data.is_empty() {
                return event;
            }
        }
    }

    /// The data of the next event.
    pub(crate) async fn data(&mut self) -> String {
        self.event().await.data
    }

    /// Whether no data comes until the end of the stream.
    pub(crate) async fn ends(&mut self) -> bool {
        while let Some(event) = self.next().await {
            if !event.data.is_empty() {
                return false;
            }
        }
        true
    }
}
