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
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::cookies::CookieJar;
use super::dialer::Dialer;
use crate::jsonrpc::Limits;
use crate::transport::{Endpoint, HttpEndpoint, OpenError, Setup, open_error};

/// How long an unused connection is kept: less than the five seconds of Node, or requests would be
/// sent on connections that are being closed.
const IDLE: Duration = Duration::from_secs(3);
/// Interval and timeout of pings to an HTTP/2 server.
const PING: Duration = Duration::from_secs(20);
/// What an HTTP/2 server may send of one stream before it is read, in bytes.
const STREAM_WINDOW: u32 = 256 << 10;
/// The same for all streams. A stream that is not read must not block the others.
const CONNECTION_WINDOW: u32 = 64 * STREAM_WINDOW;

/// A client of one server.
pub(in crate::transport) struct HttpClient {
    builder: Builder,
    dialer: Dialer,
    /// The pool in use, and a token that is cancelled when it is replaced.
    pool: Mutex<(Client<Dialer, Full<Bytes>>, CancellationToken)>,
    urls: Urls,
    /// The configured headers of every request.
    request_headers: HeaderMap,
    jar: Mutex<CookieJar>,
    pub(in crate::transport) limits: Arc<Limits>,
}

/// The addresses on the server.
#[derive(Debug)]
pub(in crate::transport) struct Urls {
    /// The address that messages are posted to.
    pub(in crate::transport) posts: Uri,
    /// The address of the streams of events.
    pub(in crate::transport) streams: Uri,
}

/// Why there is no response.
#[derive(Debug)]
pub(in crate::transport) enum NoResponse {
    /// There was no connection: the request has not left.
    Unsent(String),
    /// The same, because nothing listens there.
    Refused(String),
    /// The connection was lost; whether the request was processed is not known.
    Lost(String),
}

impl HttpClient {
    /// Connects to the server once.
    pub(in crate::transport) async fn connect(
        to: &Endpoint,
        endpoint: &HttpEndpoint,
        urls: Urls,
        setup: &Setup,
    ) -> Result<Self, OpenError> {
        let dialer = Dialer::connect(to, endpoint, setup).await?;
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .http1_max_headers(setup.limits.header_fields)
            .http1_max_buf_size(setup.limits.header_bytes.max(8 << 10) * 2)
            .http2_only(setup.request_headers.http2 && !endpoint.tls)
            .http2_max_header_list_size(setup.limits.header_bytes.try_into().unwrap_or(u32::MAX))
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(PING)
            .http2_keep_alive_timeout(PING);
        let client = builder.build(dialer.clone());
        Ok(Self {
            builder,
            dialer,
            pool: Mutex::new((client, CancellationToken::new())),
            urls,
            request_headers: setup.request_headers.headers.clone(),
            jar: Mutex::new(CookieJar::new(&endpoint.host, endpoint.tls, &endpoint.path)),
            limits: Arc::clone(&setup.limits),
        })
    }

    /// Cancelled when the current pool is replaced.
    pub(super) fn pool_token(&self) -> CancellationToken {
        self.pool.lock().1.clone()
    }

    /// Drops the pool of this token: a request that follows opens a new connection. `false` when
    /// that was done before.
    pub(super) fn reset_pool(&self, token: &CancellationToken) -> bool {
        let mut current = self.pool.lock();
        let first = !token.is_cancelled();
        if first {
            token.cancel();
            let client = self.builder.build(self.dialer.clone());
            *current = (client, CancellationToken::new());
        }
        first
    }

    /// Sends a request, and waits for the head of the response.
    pub(super) async fn request(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, NoResponse> {
        let url = if method == Method::GET {
            &self.urls.streams
        } else {
            &self.urls.posts
        };
        self.request_to(url, method, headers, body).await
    }

    /// The same, to another address on the server.
    pub(in crate::transport) async fn request_to(
        &self,
        url: &Uri,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, NoResponse> {
        let mut request = Request::new(Full::new(body));
        request.uri_mut().clone_from(url);
        *request.method_mut() = method;
        let fields = request.headers_mut();
        fields.clone_from(&self.request_headers);
        fields.extend(headers);
        if !fields.contains_key(USER_AGENT) {
            let agent = concat!("acp-relay/", env!("CARGO_PKG_VERSION"));
            fields.insert(USER_AGENT, HeaderValue::from_static(agent));
        }
        if let Some(cookies) = self.jar().header(fields.get(COOKIE), Instant::now()) {
            fields.insert(COOKIE, cookies);
        }
        let client = self.pool.lock().0.clone();
        let answer = client.request(request).await;
        let answer = answer.map_err(|fault| no_response(&fault))?;
        self.jar().store(answer.headers(), Instant::now());
        Ok(answer)
    }

    fn jar(&self) -> MutexGuard<'_, CookieJar> {
        self.jar.lock()
    }
}

fn no_response(fault: &hyper_util::client::legacy::Error) -> NoResponse {
    let connecting = fault.is_connect();
    let mut why = fault.to_string();
    let mut cause = fault.source();
    while let Some(deeper) = cause {
        if let Some(open) = deeper.downcast_ref::<OpenError>() {
            why.clone_from(&open.what);
            break;
        }
        // Each cause repeats nothing of what is above it; the deepest is the most specific.
        why = deeper.to_string();
        cause = deeper.source();
    }
    if connecting && why == open_error::REFUSED {
        NoResponse::Refused(why)
    } else if connecting {
        NoResponse::Unsent(why)
    } else {
        NoResponse::Lost(why)
    }
}

impl fmt::Display for NoResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsent(why) | Self::Refused(why) => {
                write!(f, "its server cannot be reached: {why}")
            }
            Self::Lost(why) => write!(f, "the connection broke off before an answer ({why})"),
        }
    }
}
