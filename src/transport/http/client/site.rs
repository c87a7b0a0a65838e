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

use super::cookies::Jar;
use super::dialer::Dialer;
use crate::jsonrpc::Limits;
use crate::transport::{Endpoint, OpenError, Setup, Web, failure};

/// How long an unused connection is kept: less than the five seconds of Node, or requests would be
/// sent on connections that are being closed.
const IDLE: Duration = Duration::from_secs(3);
/// Interval and timeout of pings to an HTTP/2 server.
const PING: Duration = Duration::from_secs(20);
/// What an HTTP/2 server may send of one stream before it is read, in bytes.
const WINDOW: u32 = 256 << 10;
/// The same for all streams. A stream that is not read must not block the others.
const WINDOWS: u32 = 64 * WINDOW;

/// A client of one server.
pub(in crate::transport) struct Site {
    builder: Builder,
    dialer: Dialer,
    /// The pool in use, and a token that is cancelled when it is replaced.
    path: Mutex<(Client<Dialer, Full<Bytes>>, CancellationToken)>,
    places: Places,
    /// The configured headers of every request.
    greeting: HeaderMap,
    jar: Mutex<Jar>,
    pub(in crate::transport) limits: Arc<Limits>,
}

/// The addresses on the server.
#[derive(Debug)]
pub(in crate::transport) struct Places {
    /// The address that messages are posted to.
    pub(in crate::transport) posts: Uri,
    /// The address of the streams of events.
    pub(in crate::transport) streams: Uri,
}

/// Why there is no response.
#[derive(Debug)]
pub(in crate::transport) enum Silence {
    /// There was no connection: the request has not left.
    Unsent(String),
    /// The same, because nothing listens there.
    Refused(String),
    /// The connection was lost; whether the request was processed is not known.
    Lost(String),
}

impl Site {
    /// Connects to the server once.
    pub(in crate::transport) async fn reach(
        to: &Endpoint,
        web: &Web,
        places: Places,
        setup: &Setup,
    ) -> Result<Self, OpenError> {
        let dialer = Dialer::reach(to, web, setup).await?;
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .http1_max_headers(setup.limits.header_fields)
            .http1_max_buf_size(setup.limits.header_bytes.max(8 << 10) * 2)
            .http2_only(setup.greeting.http2 && !web.tls)
            .http2_max_header_list_size(setup.limits.header_bytes.try_into().unwrap_or(u32::MAX))
            .http2_initial_stream_window_size(WINDOW)
            .http2_initial_connection_window_size(WINDOWS)
            .http2_keep_alive_interval(PING)
            .http2_keep_alive_timeout(PING);
        let client = builder.build(dialer.clone());
        Ok(Self {
            builder,
            dialer,
            path: Mutex::new((client, CancellationToken::new())),
            places,
            greeting: setup.greeting.headers.clone(),
            jar: Mutex::new(Jar::new(&web.host, web.tls, &web.path)),
            limits: Arc::clone(&setup.limits),
        })
    }

    /// Cancelled when the current pool is replaced.
    pub(super) fn path(&self) -> CancellationToken {
        self.path.lock().1.clone()
    }

    /// Drops the pool of this token: a request that follows opens a new connection. `false` when
    /// that was done before.
    pub(super) fn renew(&self, path: &CancellationToken) -> bool {
        let mut current = self.path.lock();
        let first = !path.is_cancelled();
        if first {
            path.cancel();
            let client = self.builder.build(self.dialer.clone());
            *current = (client, CancellationToken::new());
        }
        first
    }

    /// Sends a request, and waits for the head of the response.
    pub(super) async fn ask(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, Silence> {
        let place = if method == Method::GET {
            &self.places.streams
        } else {
            &self.places.posts
        };
        self.ask_at(place, method, headers, body).await
    }

    /// The same, to another address on the server.
    pub(in crate::transport) async fn ask_at(
        &self,
        place: &Uri,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, Silence> {
        let mut request = Request::new(Full::new(body));
        request.uri_mut().clone_from(place);
        *request.method_mut() = method;
        let said = request.headers_mut();
        said.clone_from(&self.greeting);
        said.extend(headers);
        if !said.contains_key(USER_AGENT) {
            let agent = concat!("acp-relay/", env!("CARGO_PKG_VERSION"));
            said.insert(USER_AGENT, HeaderValue::from_static(agent));
        }
        if let Some(cookies) = self.jar().header(said.get(COOKIE), Instant::now()) {
            said.insert(COOKIE, cookies);
        }
        let client = self.path.lock().0.clone();
        let answer = client.request(request).await;
        let answer = answer.map_err(|fault| silence(&fault))?;
        self.jar().keep(answer.headers(), Instant::now());
        Ok(answer)
    }

    fn jar(&self) -> MutexGuard<'_, Jar> {
        self.jar.lock()
    }
}

fn silence(fault: &hyper_util::client::legacy::Error) -> Silence {
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
    if connecting && why == failure::REFUSED {
        Silence::Refused(why)
    } else if connecting {
        Silence::Unsent(why)
    } else {
        Silence::Lost(why)
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsent(why) | Self::Refused(why) => {
                write!(f, "its server cannot be reached: {why}")
            }
            Self::Lost(why) => write!(f, "the connection broke off before an answer ({why})"),
        }
    }
}
