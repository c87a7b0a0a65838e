//! The HTTP client of all tests. It has no state: each request has a socket of its own.
//!
//! hyper makes the requests; a malformed one is sent as bytes ([`Caller::raw`]).

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::path::PathBuf;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

pub(crate) const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#;
/// Header lines of a request for a WebSocket.
pub(crate) const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

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

/// Where and how requests are sent.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// `HOST:PORT`.
    pub(crate) host: String,
    pub(crate) how: How,
    /// Header fields of each request.
    pub(crate) fields: Vec<(String, String)>,
    /// The file with the trusted certificate.
    pub(crate) ca: Option<PathBuf>,
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
    pub(crate) name: String,
    pub(crate) data: String,
    pub(crate) retry: String,
    pub(crate) comment: Option<String>,
}

/// `HOST:PORT` of an address, with or without a scheme and a path.
pub(crate) fn place(address: &str) -> &str {
    let (_, rest) = address.split_once("://").unwrap_or(("", address));
    rest.split('/').next().unwrap()
}

/// Reads the head of an answer.
pub(crate) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// More sockets than the admin listener or a viewer serves at a time. Each has sent requests for a
/// path until nothing more was accepted, and reads no answer.
pub(crate) fn unread_sockets(address: &str, path: &str) -> Vec<std::net::TcpStream> {
    let requests = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").repeat(500);
    let socket = |_| {
        let mut socket = std::net::TcpStream::connect(address).unwrap();
        socket.set_nonblocking(true).unwrap();
        // One that was closed for a later one is no failure.
        let _ = std::io::Write::write_all(&mut socket, requests.as_bytes());
        socket
    };
    (0..300).map(socket).collect()
}

impl Caller {
    /// Over HTTP/1.1, to the listener at `address`.
    pub(crate) fn to(address: &str) -> Self {
        Self {
            host: place(address).to_owned(),
            how: How::H1,
            fields: Vec::new(),
            ca: None,
        }
    }

    /// With this field in each request.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With this token in each request.
    pub(crate) fn with_token(self, token: &str) -> Self {
        self.with("authorization", &format!("Bearer {}", token.trim()))
    }

    /// Sends these bytes.
    pub(crate) async fn begin(&self, bytes: impl AsRef<[u8]>) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).await.unwrap();
        stream.write_all(bytes.as_ref()).await.unwrap();
        stream
    }

    /// Sends all of these bytes, and then reads until the server closes.
    pub(crate) async fn raw(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut answer = Vec::new();
        let mut stream = self.begin(bytes).await;
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    }

    /// Sends the head of a request to `/acp` with these header lines, and a body.
    pub(crate) async fn begin_acp(&self, method: &str, lines: &str, body: &str) -> TcpStream {
        let host = &self.host;
        let head = format!("{method} /acp HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n{body}");
        self.begin(head).await
    }

    /// Posts a message.
    pub(crate) async fn post(&self, fields: &[(&str, &str)], body: &str) -> Reply {
        let json = [("content-type", "application/json")];
        let fields = [&json[..], fields].concat();
        self.ask("POST", "/acp", &fields, body).await
    }

    /// Opens a connection of ACP's Streamable HTTP, which all later requests name.
    pub(crate) async fn initialize(self) -> Self {
        let reply = self.post(&[], INITIALIZE).await;
        let id = reply.fields.get("acp-connection-id").expect(&reply.body);
        self.with("acp-connection-id", id.to_str().unwrap())
    }

    /// Opens a stream, which must succeed.
    pub(crate) async fn events(&self, fields: &[(&str, &str)]) -> Events {
        self.events_at("/acp", fields).await
    }

    pub(crate) async fn events_at(&self, path: &str, fields: &[(&str, &str)]) -> Events {
        let accept = [("accept", "text/event-stream")];
        let fields = [&accept[..], fields].concat();
        Events::of(self.call("GET", path, &fields, "").await)
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
        body: impl AsRef<[u8]>,
    ) -> Reply {
        Reply::of(self.call(method, path, fields, body).await).await
    }

    /// Sends a request; the answer's body is not read. A field `host` replaces the right one.
    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> Response<Incoming> {
        let own = self.fields.iter();
        let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
        let fields: Vec<_> = own.chain(fields.iter().copied()).collect();
        let host = fields.iter().find(|(name, _)| *name == "host");
        let host = host.map_or(&*self.host, |(_, host)| host);
        let uri = match self.how {
            How::H1 => path.to_owned(),
            How::H2 => format!("http://{host}{path}"),
            How::Tls => format!("https://{host}{path}"),
        };
        let mut request = Request::builder().method(method).uri(uri);
        if self.how == How::H1 {
            request = request.header("host", host);
        }
        for (name, value) in fields.iter().filter(|(name, _)| *name != "host") {
            request = request.header(*name, *value);
        }
        let request = request
            .body(Full::new(Bytes::copy_from_slice(body.as_ref())))
            .unwrap();
        let stream = TcpStream::connect(&self.host).await.unwrap();
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
        let file = self.ca.as_ref().unwrap();
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

impl Reply {
    /// Reads the body of an answer.
    pub(crate) async fn of(answer: Response<Incoming>) -> Self {
        let (head, body) = answer.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Self {
            status: head.status,
            fields: head.headers,
            body: String::from_utf8_lossy(&body).into_owned(),
        }
    }

    /// A header field; empty when there is none.
    pub(crate) fn field(&self, name: &str) -> &str {
        let value = self.fields.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    /// The body as JSON; null when it is empty.
    pub(crate) fn json(&self) -> Value {
        if self.body.is_empty() {
            return Value::Null;
        }
        serde_json::from_str(&self.body).unwrap_or_else(|fault| panic!("{fault}: {}", self.body))
    }
}

impl Events {
    pub(crate) fn of(answer: Response<Incoming>) -> Self {
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
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
                return Some(Event::read(std::str::from_utf8(&block[..end]).unwrap()));
            }
            searched = self.rest.len().saturating_sub(1);
            let part = self.body.frame().await?;
            self.rest
                .extend_from_slice(&part.ok()?.into_data().unwrap());
        }
    }

    /// The next event with data; `None` at the end of the stream.
    pub(crate) async fn next_event(&mut self) -> Option<Event> {
        loop {
            let event = self.next().await?;
            if !event.data.is_empty() {
                return Some(event);
            }
        }
    }

    /// The next event with data.
    pub(crate) async fn event(&mut self) -> Event {
        self.next_event().await.expect("the stream has ended")
    }

    /// The data of the next event.
    pub(crate) async fn data(&mut self) -> String {
        self.event().await.data
    }

    /// The data of the next events, up to the first one that contains `what`.
    pub(crate) async fn until(&mut self, what: &str) -> Vec<String> {
        let mut all = Vec::new();
        while !all.last().is_some_and(|last: &String| last.contains(what)) {
            all.push(self.next_event().await.expect(what).data);
        }
        all
    }

    /// Whether no data comes until the end of the stream.
    pub(crate) async fn ends(&mut self) -> bool {
        self.next_event().await.is_none()
    }

    /// The last comment before the end of the stream; `None` when it ends with an event or a
    /// keepalive.
    pub(crate) async fn last_comment(&mut self) -> Option<String> {
        let mut last = None;
        while let Some(event) = self.next().await {
            last = event.comment;
        }
        last.filter(|comment| !comment.is_empty())
    }
}

impl Event {
    fn read(block: &str) -> Self {
        let mut event = Self::default();
        for line in block.lines() {
            match line.split_once(':').unwrap() {
                ("", comment) => event.comment = Some(comment.to_owned()),
                ("id", id) => event.id = id.trim_start().to_owned(),
                ("event", name) => event.name = name.trim_start().to_owned(),
                ("data", data) => event.data = data.strip_prefix(' ').unwrap().to_owned(),
                ("retry", retry) => event.retry = retry.trim_start().to_owned(),
                other => panic!("{other:?}"),
            }
        }
        event
    }

    /// Its data as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}
