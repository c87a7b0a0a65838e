//! The way of a request: its host and origin are checked, its sender is authenticated, it is
//! answered or refused, and the requesting page may read the response.
//!
//! The host and the origin come before anything else, whatever the method; the rules are in
//! `auth::origin`.

use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
    CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, ORIGIN, UPGRADE, VARY,
};
use hyper::{Method, Request, StatusCode, Version};
use tokio::task::yield_now;

use super::caller::{AuthenticatedClient, Caller};
use super::credentials::authenticate;
use super::refusal::{Refusal, Why};
use super::shared::Port;
use crate::http::headers::wants_upgrade;
use crate::{OpenError, OpenErrorKind};
use auth::origin::{self, OriginPolicy};
use auth::{CHALLENGE, PROOF, RejectReason};

/// The header by which a browser reports the relation between the page and the target.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// The headers that a page may send.
const REQUEST_HEADERS: &str = "accept, authorization, content-type, last-event-id, \
                               acp-connection-id, acp-session-id, acp-protocol-version";

/// Passes an admitted and authenticated request to `serve`; `refuse` makes the response of a
/// refusal. `methods` are those that are served, for preflight requests.
pub async fn handle<F>(
    port: &Port,
    request: Request<Incoming>,
    caller: &Caller,
    methods: &'static str,
    refuse: fn(Refusal) -> Response,
    serve: impl FnOnce(Request<Incoming>, AuthenticatedClient) -> F,
) -> Response
where
    F: Future<Output = Response>,
{
    let is_http1 = request.version() <= Version::HTTP_11;
    if is_http1 {
        // hyper handles the pipelined requests of one socket without yielding to other sockets.
        yield_now().await;
    }
    let rules = port.rules();
    let admitted = admit(&rules.origins, &request);
    let page = request.headers().get(ORIGIN).cloned();
    let page = page.filter(|_| admitted.is_ok());
    let mut answer = if let Err(refusal) = admitted {
        refusal.into_response()
    } else if let Some(proof) = proof(port, &request, caller) {
        return (StatusCode::NO_CONTENT, [(PROOF, proof)]).into_response();
    } else if page.is_some()
        && let Some(answer) = preflight(&request, methods)
    {
        // A browser sends it before it sends a token.
        answer
    } else {
        // The sender is authenticated before a byte of the body is read.
        match authenticate(&rules.gate, &request, caller) {
            Ok(client) => serve(request, client).await,
            Err(refusal) => refusal.into_response(),
        }
    };
    if let Some(refusal) = answer.extensions_mut().remove::<Refusal>() {
        report(port, &refusal, &caller.from);
        answer = refuse(refusal);
        if !is_http1 {
            // HTTP/2 has no such headers (RFC 9113, 8.2.2).
            answer.headers_mut().remove(CONNECTION);
            answer.headers_mut().remove(UPGRADE);
        }
    }
    let status = answer.status();
    let fields = answer.headers_mut();
    if status == StatusCode::NO_CONTENT || status.is_informational() {
        // axum adds a length to every empty body; these must not have one (RFC 9110, 8.6).
        fields.remove(CONTENT_LENGTH);
    }
    if let Some(origin) = page {
        fields.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let exposed = HeaderValue::from_static("acp-connection-id, acp-session-id");
        fields.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        fields.append(VARY, HeaderValue::from_static("Origin"));
    }
    answer
}

/// Admits a request to one host of the relay, from a program or a page of a listed origin.
fn admit<B>(policy: &OriginPolicy, request: &Request<B>) -> Result<(), Refusal> {
    let fields = request.headers();
    let all = |name: HeaderName| fields.get_all(name).into_iter().map(HeaderValue::as_bytes);
    // HTTP/2 names the host in `:authority`, and so may a proxy's request line.
    let authority = request.uri().authority().map(|one| one.as_str().as_bytes());
    let others = all(HOST).filter(|host| authority != Some(*host));
    let hosts = authority.into_iter().chain(others);
    let admitted = policy.check(all(ORIGIN), hosts, all(FETCH_SITE));
    let (status, why, reason) = match (admitted, host_error(request)) {
        (Err(page @ (origin::Refusal::Origin | origin::Refusal::Site)), _) => {
            let why = page.to_string();
            (StatusCode::FORBIDDEN, why, RejectReason::Origin)
        }
        (_, Some(why)) => {
            let why = why.to_owned();
            (StatusCode::BAD_REQUEST, why, RejectReason::Host)
        }
        // A client may send the request elsewhere (RFC 9110, 15.5.20), but not a handshake.
        (Err(host), None) if wants_upgrade(fields, b"websocket") => {
            (StatusCode::FORBIDDEN, host.to_string(), RejectReason::Host)
        }
        (Err(host), None) => {
            let why = host.to_string();
            (StatusCode::MISDIRECTED_REQUEST, why, RejectReason::Host)
        }
        (Ok(()), None) => return Ok(()),
    };
    Err(Refusal::fatal(status, why).counted_as(reason))
}

/// The error in a head that names no host, or several. RFC 9112 (3.2) requires 400, whichever host
/// is named: an intermediary may have used another of them. 421 and 403 are for requests that name
/// one host which is not the relay's.
fn host_error<B>(request: &Request<B>) -> Option<&'static str> {
    match request.headers().get_all(HOST).iter().count() {
        0 if request.version() == Version::HTTP_11 => Some("the Host header is missing"),
        0 | 1 => None,
        _ => Some("the Host header is given twice"),
    }
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

/// The answer to a page's preflight request.
fn preflight<B>(request: &Request<B>, methods: &'static str) -> Option<Response> {
    let asks = request.headers().get(ACCESS_CONTROL_REQUEST_METHOD);
    asks.filter(|_| request.method() == Method::OPTIONS)?;
    let private_network = HeaderName::from_static("access-control-allow-private-network");
    let fields = [
        (ACCESS_CONTROL_ALLOW_METHODS, methods),
        (ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS),
        (ACCESS_CONTROL_MAX_AGE, "600"),
        (private_network, "true"),
    ];
    Some((StatusCode::NO_CONTENT, fields).into_response())
}

/// Reports a refusal: to the accept loop when it ends the socket and has a text, otherwise only to
/// the counters and the debug log. Over HTTP/2 the socket stays open for the other requests on it.
fn report(port: &Port, refusal: &Refusal, from: &str) {
    let status = refusal.status;
    tracing::debug!(from, %status, why = ?refusal.why, "a request was refused");
    match (refusal.count_as, &refusal.why) {
        (None, _) => {}
        (Some(reason), Why::Text(why)) if refusal.hang_up => {
            let kind = match status.as_u16() {
                401 | 403 | 404 | 421 | 429 => OpenErrorKind::Forbidden,
                _ => OpenErrorKind::Protocol,
            };
            let what = format!("refused with {status}: {why}");
            port.reject(from, OpenError::new(kind, from, what), reason);
        }
        (Some(reason), _) => port.count(reason),
    }
}
