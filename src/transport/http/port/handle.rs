//! Checks a request, has it answered or refused, and lets the requesting page read the response.

use axum::response::Response;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderValue, UPGRADE};
use hyper::{Request, StatusCode, Version};
use tokio::task::yield_now;

use super::answer;
use super::caller::{AuthenticatedClient, Caller};
use super::credentials::authenticate;
use super::origin_check::admit;
use super::refusal::{Refusal, Why};
use super::shared::Port;
use crate::auth::{CHALLENGE, PROOF};
use crate::transport::{OpenError, OpenErrorKind};

/// Passes an admitted and authenticated request to `serve`; `refuse` makes the response of a
/// refusal. `methods` are those that are served, for preflight requests.
pub(crate) async fn handle<F>(
    port: &Port,
    request: Request<Incoming>,
    caller: &Caller,
    methods: &'static str,
    refuse: fn(Refusal) -> Response,
    serve: impl FnOnce(Request<Incoming>, AuthenticatedClient) -> F,
) -> Response
where
    F: Future<Output = Result<Response, Refusal>>,
{
    let is_http1 = request.version() <= Version::HTTP_11;
    if is_http1 {
        // hyper handles the pipelined requests of one socket without yielding to other sockets.
        yield_now().await;
    }
    let refused = |refusal: Refusal| {
        report(port, &refusal, &caller.from);
        let mut answer = refuse(refusal);
        if !is_http1 {
            // HTTP/2 has no such headers (RFC 9113, 8.2.2).
            answer.headers_mut().remove(CONNECTION);
            answer.headers_mut().remove(UPGRADE);
        }
        answer
    };
    let rules = port.rules();
    let origin = match admit(&rules.origins, &request) {
        Ok(origin) => origin,
        Err(refusal) => return refused(refusal),
    };
    if let Some(proof) = proof(port, &request, caller) {
        let mut answer = answer::empty(StatusCode::NO_CONTENT);
        answer.headers_mut().insert(PROOF, proof);
        return answer;
    }
    // A browser sends a preflight request before it sends a token.
    let mut answer = match origin.preflight(&request, methods) {
        Some(answer) => answer,
        // The sender is authenticated before a byte of the body is read.
        None => match authenticate(&rules.gate, &request, caller) {
            Ok(client) => serve(request, client).await.unwrap_or_else(refused),
            Err(refusal) => refused(refusal),
        },
    };
    let status = answer.status();
    if status == StatusCode::NO_CONTENT || status.is_informational() {
        // axum adds a length to every empty body; these must not have one (RFC 9110, 8.6).
        answer.headers_mut().remove(CONTENT_LENGTH);
    }
    origin.expose(answer.headers_mut());
    answer
}

/// The proof that a request asks for, if this listener has a key. No credentials are needed: a
/// program of the same user asks before it sends its token, and the proof holds for this nonce and
/// address only.
fn proof<B>(port: &Port, request: &Request<B>, caller: &Caller) -> Option<HeaderValue> {
    let nonce = request.headers().get(CHALLENGE)?;
    let key = port.setup.local_key.as_ref()?;
    let proof = key.prove(nonce.as_bytes(), caller.dialed?)?;
    HeaderValue::try_from(proof).ok()
}

/// Reports a refusal: to the accept loop when it ends the socket and has a text, otherwise only to
/// the counters and the debug log. Over HTTP/2 the socket stays open for the other requests on it.
fn report(port: &Port, refusal: &Refusal, from: &str) {
    let status = refusal.status;
    tracing::debug!(from, %status, why = ?refusal.why, "a request was refused");
    let Some(reason) = refusal.count_as else {
        return;
    };
    if refusal.hang_up
        && let Why::Text(why) = &refusal.why
    {
        let kind = match status {
            StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::MISDIRECTED_REQUEST
            | StatusCode::TOO_MANY_REQUESTS => OpenErrorKind::Forbidden,
            _ => OpenErrorKind::Protocol,
        };
        let what = format!("refused with {status}: {why}");
        port.reject(from, OpenError::new(kind, from, what), reason);
    } else {
        port.count(reason);
    }
}
