//! The proxy of a network without a direct way out: `HTTPS_PROXY` and `NO_PROXY`, as curl reads them.
//!
//! What is proxied is TLS, through CONNECT (RFC 9110, section 9.3.6): the proxy learns the name and the
//! port of the server, and no token. Loopback addresses are never proxied.

use std::env;

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{HOST, PROXY_AUTHORIZATION};
use hyper::{Request, StatusCode, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::{Endpoint, HttpEndpoint, OpenError, OpenErrorKind, Setup, open_error, tcp};
use auth::address::Reach;

/// The port of a proxy whose address has none, as for curl.
const PORT: u16 = 1080;

/// A proxy.
pub(super) struct Proxy(Intercept);

/// The address of the proxy for servers behind TLS, without its user and password, and the names that
/// are reached without it; `None` if the environment sets none.
#[must_use]
pub fn https_proxy() -> Option<(String, String)> {
    let any = Uri::from_static("https://proxied.invalid");
    // `NO_PROXY=*` leaves nothing to the proxy.
    let proxy = Matcher::from_env().intercept(&any)?;
    let direct = ["NO_PROXY", "no_proxy"].map(env::var).into_iter().flatten();
    Some((shown(&proxy), direct.take(1).collect()))
}

fn shown(proxy: &Intercept) -> String {
    // The library takes a part of a password with an `@` for the host.
    let (uri, port) = (proxy.uri(), proxy.uri().port_u16().unwrap_or(PORT));
    let scheme = uri.scheme_str().unwrap_or_default();
    format!("{scheme}://{}:{port}", uri.host().unwrap_or_default())
}

impl Proxy {
    /// The proxy on the way to a server, if there is one.
    pub(super) fn find(to: &Endpoint, web: &HttpEndpoint, setup: &Setup) -> Option<Self> {
        // A proxy would reach what this relay must not.
        let is_limited = !matches!(setup.reach, Reach::All);
        if !web.tls || to.is_loopback() || is_limited {
            return None;
        }
        let uri = format!("https://{}", web.host_and_port()).parse().ok()?;
        Matcher::from_env().intercept(&uri).map(Self)
    }

    /// Opens a connection to the server through it.
    pub(super) async fn dial(
        &self,
        to: &Endpoint,
        web: &HttpEndpoint,
        setup: &Setup,
    ) -> Result<TcpStream, OpenError> {
        let name = shown(&self.0);
        let fail = |kind, what: String| {
            let what = format!("the proxy {name} (HTTPS_PROXY) {what}");
            let remedy = "Correct HTTPS_PROXY, or add the host to NO_PROXY";
            OpenError::new(kind, to, what).with_remedy(remedy)
        };
        let uri = self.0.uri();
        let host = match (uri.scheme_str(), uri.host()) {
            (Some("http"), Some(host)) => host.trim_matches(['[', ']']),
            _ => {
                let what = "is of a kind that is not supported: http:// is".to_owned();
                return Err(fail(OpenErrorKind::Usage, what));
            }
        };
        let port = uri.port_u16().unwrap_or(PORT);
        let stream = tcp::dial(to, host, port, setup).await;
        let stream = stream.map_err(|error| fail(error.kind, format!("fails: {}", error.what)))?;
        let opening = async {
            let lost = |fault: hyper::Error| {
                fail(
                    OpenErrorKind::Unavailable,
                    format!("does not answer ({fault})"),
                )
            };
            let (mut sender, connection) =
                http1::handshake(TokioIo::new(stream)).await.map_err(lost)?;
            tokio::spawn(connection.with_upgrades());
            let target = web.host_and_port();
            let mut request = Request::connect(&target).header(HOST, &target);
            if let Some(secret) = self.0.basic_auth() {
                request = request.header(PROXY_AUTHORIZATION, secret);
            }
            let request = request.body(Empty::<Bytes>::new());
            let request = request.map_err(|fault| fail(OpenErrorKind::Usage, fault.to_string()))?;
            let answer = sender.send_request(request).await.map_err(lost)?;
            match answer.status() {
                StatusCode::OK => {}
                StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                    let what = "asks for a user and a password: http://USER:PASSWORD@HOST:PORT";
                    return Err(fail(OpenErrorKind::Forbidden, what.to_owned()));
                }
                status => {
                    let what = format!("does not connect to {target}: it answers {status}");
                    return Err(fail(OpenErrorKind::Unavailable, what));
                }
            }
            let upgraded = hyper::upgrade::on(answer).await.map_err(lost)?;
            let parts = upgraded.downcast::<TokioIo<TcpStream>>();
            let parts = parts.ok().filter(|parts| parts.read_buf.is_empty());
            let unclear = || fail(OpenErrorKind::Protocol, "sends bytes of its own".to_owned());
            Ok(parts.ok_or_else(unclear)?.io.into_inner())
        };
        let within = setup.limits.handshake;
        let opened = timeout(within, opening).await;
        opened.unwrap_or_else(|_| Err(open_error::timed_out(to, "the proxy", within)))
    }
}
