//! Sends requests to one server, with the headers and cookies that go with each of them.
//!
//! hyper's pool sends a request again when it met a connection that the server had just closed and
//! not a byte had left; nothing else is ever repeated here.

use std::error::Error as _;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{COOKIE, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, Uri};
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::cookies::CookieJar;
use super::dialer::Dialer;
use super::response::read_body;
use crate::{Endpoint, HttpProtocol, OpenError, OpenErrorKind, Setup};
use jsonrpc::Limits;

/// How long an unused connection is kept: less than the five seconds of Node, or requests would be
/// sent on connections that are being closed.
const IDLE: Duration = Duration::from_secs(3);
/// Interval and timeout of pings to an HTTP/2 server.
const PING: Duration = Duration::from_secs(20);
/// What an HTTP/2 server may send of one stream before it is read, in bytes.
const STREAM_WINDOW: u32 = 256 << 10;
/// The same for all streams. A stream that is not read must not block the others.
const CONNECTION_WINDOW: u32 = 64 * STREAM_WINDOW;
/// The name of this program, for servers.
const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("acp-relay/", env!("CARGO_PKG_VERSION")));

/// A client of one server, which is at an `http` endpoint of any protocol or at a Unix socket.
pub struct HttpClient {
    to: Endpoint,
    /// Scheme and authority of its URLs.
    base: String,
    builder: Builder,
    dialer: Dialer,
    /// The pool in use, and a token that is cancelled when it is replaced.
    pool: Mutex<(Client<Dialer, Full<Bytes>>, CancellationToken)>,
    /// The configured headers of every request.
    request_headers: HeaderMap,
    jar: Mutex<CookieJar>,
    /// The limits of its requests.
    pub limits: Arc<Limits>,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum NoResponse {
    /// There was no connection: the request has not left.
    #[error("its server cannot be reached: {}", .0.what)]
    Unsent(#[from] OpenError),
    /// The connection was lost; whether the request was processed is not known.
    #[error("the connection broke off before an answer ({0})")]
    Lost(String),
    /// What came is no answer.
    #[error("{0}")]
    Unreadable(String),
}

impl HttpClient {
    /// A client that connects when it sends its first request.
    ///
    /// # Errors
    /// When the endpoint is no server of HTTP, or TLS cannot be set up.
    pub fn new(to: &Endpoint, setup: &Setup) -> Result<Self, OpenError> {
        let (base, tls, http2) = match to {
            Endpoint::Http(web) => {
                let scheme = if web.tls { "https" } else { "http" };
                let http2 = !web.tls && web.protocol != HttpProtocol::WebSocket;
                let http2 = http2 && setup.request_headers.http2;
                (format!("{scheme}://{}", web.authority()), web.tls, http2)
            }
            Endpoint::Unix(_) => ("http://localhost".to_owned(), false, false),
            _ => return Err(OpenError::wrong_scheme(to)),
        };
        let limits = Arc::clone(&setup.limits);
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .http1_max_headers(limits.header_fields)
            .http1_max_buf_size(limits.header_bytes.max(8 << 10) * 2)
            .http2_only(http2)
            .http2_max_header_list_size(limits.header_bytes.try_into().unwrap_or(u32::MAX))
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(PING)
            .http2_keep_alive_timeout(PING);
        let dialer = Dialer::new(to, setup)?;
        let client = builder.build(dialer.clone());
        Ok(Self {
            to: to.clone(),
            base,
            builder,
            dialer,
            pool: Mutex::new((client, CancellationToken::new())),
            request_headers: setup.request_headers.headers.clone(),
            jar: Mutex::new(CookieJar::new(tls)),
            limits,
        })
    }

    /// Opens the connection for the first request, so that the caller learns when the server is
    /// not there.
    pub async fn connect(&self) -> Result<(), OpenError> {
        self.dialer.connect().await
    }

    /// The URL of a path on the server.
    pub fn url(&self, path: &str) -> Result<Uri, OpenError> {
        let url = format!("{}{path}", self.base).parse();
        url.map_err(|fault| {
            let what = format!("that is not an HTTP address ({fault})");
            OpenError::new(OpenErrorKind::Usage, &self.to, what)
        })
    }

    /// A request to the server, without headers.
    ///
    /// # Errors
    /// When the path holds what no path may.
    pub fn request(
        &self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<Request<Bytes>, OpenError> {
        let mut request = Request::new(body.into());
        *request.method_mut() = method;
        *request.uri_mut() = self.url(path)?;
        Ok(request)
    }

    /// Sends a request to the server and reads the whole response; `max` is the longest body in
    /// bytes.
    ///
    /// # Errors
    /// When there is no response, or its body is longer.
    pub async fn fetch(
        &self,
        request: Request<Bytes>,
        max: usize,
    ) -> Result<Response<Bytes>, NoResponse> {
        let (head, body) = self.send(request).await?.into_parts();
        let body = read_body(body, max).await.map_err(NoResponse::Lost)?;
        Ok(Response::from_parts(head, body))
    }

    /// The same, but reads only the head of the response.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Incoming>, NoResponse> {
        let mut request = request.map(Full::new);
        let fields = request.headers_mut();
        let own = std::mem::replace(fields, self.request_headers.clone());
        fields.extend(own);
        fields.entry(USER_AGENT).or_insert(AGENT);
        if let Some(cookies) = self.cookies() {
            fields.insert(COOKIE, cookies);
        }
        let client = self.pool.lock().0.clone();
        let answer = client.request(request).await;
        let answer = answer.map_err(|fault| self.no_response(&fault))?;
        self.jar.lock().store(answer.headers(), Instant::now());
        Ok(answer)
    }

    /// The cookies of the next request.
    pub(crate) fn cookies(&self) -> Option<HeaderValue> {
        let given = self.request_headers.get(COOKIE);
        self.jar.lock().header(given, Instant::now())
    }

    /// Cancelled when the current pool is replaced.
    pub(crate) fn pool_token(&self) -> CancellationToken {
        self.pool.lock().1.clone()
    }

    /// Drops the pool of this token: a request that follows opens a new connection. `false` when
    /// that was done before.
    pub(crate) fn reset_pool(&self, token: &CancellationToken) -> bool {
        let mut current = self.pool.lock();
        let first = !token.is_cancelled();
        if first {
            token.cancel();
            let client = self.builder.build(self.dialer.clone());
            *current = (client, CancellationToken::new());
        }
        first
    }

    fn no_response(&self, fault: &hyper_util::client::legacy::Error) -> NoResponse {
        let mut why = fault.to_string();
        let mut cause = fault.source();
        while let Some(deeper) = cause {
            if let Some(open) = deeper.downcast_ref::<OpenError>() {
                return NoResponse::Unsent(open.clone());
            }
            // Each cause repeats nothing of what is above it; the deepest is the most specific.
            why = match deeper.downcast_ref::<hyper::Error>() {
                Some(fault) if fault.is_parse() => {
                    return NoResponse::Unreadable(format!("its answer is not HTTP/1.1: {fault}"));
                }
                Some(fault) if fault.is_incomplete_message() => "unexpected end of file".to_owned(),
                _ => deeper.to_string(),
            };
            cause = deeper.source();
        }
        if fault.is_connect() {
            NoResponse::Unsent(OpenError::new(OpenErrorKind::Protocol, &self.to, why))
        } else {
            NoResponse::Lost(why)
        }
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpClient").field(&self.base).finish()
    }
}

impl NoResponse {
    /// Whether nothing listens there.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Self::Unsent(fault) if fault.is_refused())
    }

    /// The cause alone, as a clause.
    #[must_use]
    pub fn cause(&self) -> &str {
        match self {
            Self::Unsent(fault) => &fault.what,
            Self::Lost(why) | Self::Unreadable(why) => why,
        }
    }
}
