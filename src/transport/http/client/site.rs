//! The server at the other end: requests to it, with all that goes along with each of them.
//!
//! hyper's pool sends a request again when it met a connection that the server had just closed and
//! not a byte had left; nothing else is ever repeated here. Not here: what is asked (see `post`,
//! `stream`).

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

/// How long an unused connection is kept: less than the five seconds of Node, or requests would
/// meet connections that are being closed.
const IDLE: Duration = Duration::from_secs(3);
/// How often an HTTP/2 server is asked whether it lives, and how long it has for its answer.
const PING: Duration = Duration::from_secs(20);
/// What an HTTP/2 server may send of one stream before we have taken it, in bytes.
const WINDOW: u32 = 256 << 10;
/// The same of all streams. A stream that is not read must not hold up the others.
const WINDOWS: u32 = 64 * WINDOW;

/// The server at the other end.
pub(in crate::transport) struct Site {
    builder: Builder,
    dialer: Dialer,
    /// The connections in use, and a token that is cancelled when they are given up.
    path: Mutex<(Client<Dialer, Full<Bytes>>, CancellationToken)>,
    places: Places,
    /// What a person wants said with every request.
    greeting: HeaderMap,
    jar: Mutex<Jar>,
    pub(in crate::transport) limits: Arc<Limits>,
}

/// Where on the server things are.
#[derive(Debug)]
pub(in crate::transport) struct Places {
    /// What messages are posted to.
    pub(in crate::transport) posts: Uri,
    /// What is asked for streams of events.
    pub(in crate::transport) streams: Uri,
}

/// Why there is no answer.
#[derive(Debug)]
pub(in crate::transport) enum Silence {
    /// There was no connection: the request has not left.
    Unsent(String),
    /// The same, because nothing listens there.
    Refused(String),
    /// The connection broke off; what became of the request is not known.
    Lost(String),
}

impl Site {
    /// Reaches the server once.
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

    /// Cancelled when the connections in use now are given up.
    pub(super) fn path(&self) -> CancellationToken {
        self.path.lock().1.clone()
    }

    /// Gives up the connections of this path: a request that follows makes a new one. `false` when
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

    /// Asks the server, and waits for the head of its answer.
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

    /// Asks the server at another of its places.
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
        // Each cause repeats nothing of what is above it; the deepest says most.
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
