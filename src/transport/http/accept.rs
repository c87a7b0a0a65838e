//! The accept loop and the HTTP server of everything that speaks HTTP: listeners for clients, the
//! admin listener and the viewer.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use jsonrpc::Limits;
use panics::{self, Place, panic_point};

/// Time to wait before accepting again when the operating system refuses (no descriptors left).
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// Time between pings on an HTTP/2 socket, and for their answer.
const PING: Duration = Duration::from_secs(20);
/// Smallest buffer the HTTP/1.1 server takes, in bytes.
const MIN_BUFFER: usize = 8 << 10;

/// Accepts sockets until `end`, at most `max` at a time: `serve` holds the permit of a socket as
/// long as it is open. Errors of the operating system go to `report`.
pub async fn accept_sockets<S, F>(
    accept: impl Fn() -> F + Send,
    max: usize,
    end: impl Future<Output = ()> + Send,
    report: impl Fn(io::Error) + Send,
    serve: impl Fn(S, OwnedSemaphorePermit) + Send,
) where
    F: Future<Output = io::Result<S>> + Send,
{
    let sockets = Arc::new(Semaphore::new(max));
    tokio::pin!(end);
    loop {
        let next = async {
            let permit = sockets.clone().acquire_owned().await;
            (accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            next = next => next,
            () = end.as_mut() => return,
        };
        match (accepted, permit) {
            (Ok(socket), Ok(permit)) => serve(socket, permit),
            (Err(fault), _) => {
                report(fault);
                sleep(ACCEPT_RETRY).await;
            }
            (_, Err(_closed)) => return,
        }
    }
}

/// A server for both versions of HTTP, within the limits. A socket may have no request on it, or
/// take over the head of one, for `head_timeout`.
#[must_use]
pub fn http_server(limits: &Limits, head_timeout: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(head_timeout)
        .title_case_headers(true)
        .max_headers(limits.header_fields)
        .max_buf_size(limits.header_bytes.max(MIN_BUFFER));
    let max = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(max(limits.http_requests))
        .max_header_list_size(max(limits.header_bytes))
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    builder
}

/// Answers a request of the viewer or of the admin listener, with 500 after a panic.
pub async fn answer(place: Place, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let answer = async {
        panic_point(place.name(), path.as_bytes());
        next.run(request).await
    };
    let answer = panics::confine(place, Box::pin(answer)).await;
    answer.unwrap_or_else(|| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}
