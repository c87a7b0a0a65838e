//! Waits at ports of loopback for requests of a browser, and answers them with pages of ours.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use policy::LoginRedirect;
use rustix::process::geteuid;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use transport::owner::of_socket;
use uuid::Uuid;

/// Most connections of browsers at a time, which open some without a request.
const MAX_CONNECTIONS: usize = 16;
/// Time for pages that are being sent.
const LAST: Duration = Duration::from_secs(1);
/// The content of pages: nothing is loaded, and nothing runs.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

/// Listeners at a port.
pub(super) struct Doors(Vec<TcpListener>);

/// What a request is answered with, and whether it is the awaited one.
type Verdict = (Response<Full<Bytes>>, bool);

impl Doors {
    /// Listens where a redirect leads, or at any port.
    ///
    /// # Errors
    /// Another program has the port.
    pub(super) fn open(to: Option<&LoginRedirect>) -> Result<Self, String> {
        let port = to.map_or(0, |to| to.port);
        let hosts: &[&str] = match to.map(|to| &*to.host) {
            Some("localhost") => &["127.0.0.1", "::1"],
            Some("[::1]") => &["::1"],
            _ => &["127.0.0.1"],
        };
        let bind = |host: &&str| -> io::Result<TcpListener> {
            let listener = std::net::TcpListener::bind((*host, port))?;
            listener.set_nonblocking(true)?;
            TcpListener::from_std(listener)
        };
        let mut doors = Vec::new();
        for host in hosts {
            match bind(host) {
                Ok(door) => doors.push(door),
                // A machine may have one version of IP only.
                Err(fault) if !doors.is_empty() && fault.kind() != io::ErrorKind::AddrInUse => {}
                Err(fault) => {
                    return Err(format!(
                        "port {port} of this machine, where the login ends, cannot be used ({fault})"
                    ));
                }
            }
        }
        Ok(Self(doors))
    }

    /// Waits for the redirect; its path and query.
    pub(super) async fn redirect(self, to: &LoginRedirect) -> String {
        let to = to.clone();
        self.serve(move |target| match to.check(target) {
            Ok(()) => (page(StatusCode::OK, "Logged in", PASSED), true),
            Err(why) => {
                tracing::info!("a request at the port of a login is not its redirect: {why}");
                (page(StatusCode::NOT_FOUND, "Not found", NOTHING), false)
            }
        })
        .await
    }

    /// The address of a page that asks whether the page at `address` may be opened, and what ends when
    /// its link was followed.
    pub(super) fn question(
        self,
        agent: &str,
        host: &str,
        address: &str,
    ) -> (String, impl Future<Output = ()>) {
        let key = Uuid::new_v4().simple().to_string();
        let port = self.0.first().and_then(|door| door.local_addr().ok());
        let port = port.map_or(0, |at| at.port());
        let question = format!("http://127.0.0.1:{port}/{key}");
        let text = format!(
            "<p>The agent <b>{}</b> asks you to log in at <b>{}</b>.</p>\
             <p><a href=\"/{key}/open\">Open that page</a>, or close this one.</p>",
            escaped(agent),
            escaped(host)
        );
        let address = address.to_owned();
        let answer = move |target: &str| {
            let rest = target
                .strip_prefix('/')
                .and_then(|rest| rest.strip_prefix(&*key));
            match rest {
                Some("") => (page(StatusCode::OK, "A login", &text), false),
                Some("/open") => {
                    let mut response = page(StatusCode::SEE_OTHER, "A login", "");
                    if let Ok(address) = HeaderValue::from_str(&address) {
                        response
                            .headers_mut()
                            .insert(hyper::header::LOCATION, address);
                    }
                    (response, true)
                }
                _ => (page(StatusCode::NOT_FOUND, "Not found", NOTHING), false),
            }
        };
        (question, async move { drop(self.serve(answer).await) })
    }

    /// Answers GETs until one is the awaited one; its target.
    async fn serve(self, answer: impl Fn(&str) -> Verdict + Send + Sync + 'static) -> String {
        let answer = Arc::new(answer);
        let (sender, mut found) = mpsc::channel(1);
        let mut connections = JoinSet::new();
        loop {
            let stream = tokio::select! {
                target = found.recv() => {
                    // The browser gets its page; others of its connections may have no request.
                    let served = async { while connections.join_next().await.is_some() {} };
                    let _ = timeout(LAST, served).await;
                    return target.unwrap_or_default();
                }
                stream = next(&self.0) => stream,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            };
            if connections.len() < MAX_CONNECTIONS && is_own(&stream) {
                connections.spawn(converse(stream, Arc::clone(&answer), sender.clone()));
            }
        }
    }
}

/// The next connection at any of the doors.
async fn next(doors: &[TcpListener]) -> TcpStream {
    poll_fn(|cx| {
        let mut accepted = doors.iter().map(|door| door.poll_accept(cx));
        let stream = accepted.find_map(|one| match one {
            Poll::Ready(Ok((stream, _))) => Some(stream),
            _ => None,
        });
        stream.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Whether a connection is of this user: others of the machine can read the addresses that a browser is
/// started with. Not every system tells.
fn is_own(stream: &TcpStream) -> bool {
    let ends = stream
        .peer_addr()
        .and_then(|far| Ok((far, stream.local_addr()?)));
    let user = ends.ok().and_then(|(far, near)| of_socket(far, near));
    user == Some(geteuid().as_raw()) || cfg!(not(target_os = "linux"))
}

/// Answers the one request of a connection.
async fn converse(
    stream: TcpStream,
    answer: Arc<impl Fn(&str) -> Verdict + Send + Sync + 'static>,
    found: mpsc::Sender<String>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let target = request
            .uri()
            .path_and_query()
            .map_or("", |target| target.as_str());
        let (response, is_awaited) = match *request.method() {
            Method::GET => answer(target),
            _ => (
                page(StatusCode::METHOD_NOT_ALLOWED, "Not found", NOTHING),
                false,
            ),
        };
        if is_awaited {
            // A second one is not awaited any more.
            let _ = found.try_send(target.to_owned());
        }
        async move { Ok::<_, Infallible>(response) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).keep_alive(false);
    // A connection that breaks has had no request, or got its page.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

const PASSED: &str = "<p>The login was passed on to the agent. You can close this page.</p>";
const NOTHING: &str = "<p>acp-relay waits here for the end of a login, which this is not.</p>";

fn page(status: StatusCode, title: &str, text: &str) -> Response<Full<Bytes>> {
    let text = format!(
        "<!doctype html><meta charset=\"utf-8\"><title>{title}</title>\
         <style>body{{font:16px sans-serif;margin:4em auto;max-width:32em}}</style>{text}\n"
    );
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (CONNECTION, "close"),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Text for HTML, outside of tags.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
