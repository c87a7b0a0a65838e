//! The credentials of a request, and the refusal when they are not sufficient.
//!
//! A token comes in `Authorization: Bearer` (RFC 6750), or, because pages cannot set headers of a
//! WebSocket, as a subprotocol `acp.bearer.BASE64URL`, which is never chosen. It does not come in
//! the query: addresses are logged by every server and proxy on their way.

use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;
use hyper::header::{
    AUTHORIZATION, FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
    SEC_WEBSOCKET_PROTOCOL, VIA, WWW_AUTHENTICATE,
};
use hyper::{Request, StatusCode};

use super::caller::{AuthenticatedClient, Caller};
use super::refusal::Refusal;
use crate::clock;
use auth::{Credentials, Denial, Gate, origin};

/// The prefix of a page's token among the subprotocols.
const TOKEN_PREFIX: &str = "acp.bearer.";

/// Headers by which a proxy marks a forwarded request, besides all that begin with `X-Forwarded-`.
const FORWARD_HEADERS: [HeaderName; 7] = [
    FORWARDED,
    VIA,
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("x-client-ip"),
    HeaderName::from_static("x-original-forwarded-for"),
    HeaderName::from_static("true-client-ip"),
    HeaderName::from_static("cf-connecting-ip"),
];

/// The challenge where there is no token.
const NO_TOKEN: &str = "Bearer realm=\"acp-relay\"";

/// The challenge for an invalid token.
const INVALID_TOKEN: &str = "Bearer realm=\"acp-relay\", error=\"invalid_token\"";

/// For the user that the relay runs as, whose programs on this machine need no token.
const NOT_NEEDED: &str = "this token is invalid or expired; without a token this program would be \
                        let in, because it runs as the user that the relay runs as";

/// Authenticates the sender of a request.
pub(super) fn authenticate<B>(
    gate: &Gate,
    request: &Request<B>,
    caller: &Caller,
) -> Result<AuthenticatedClient, Refusal> {
    let fields = request.headers();
    let via_proxy = is_forwarded(fields) || !is_for_this_machine(request);
    let token = token(fields);
    let credentials = Credentials {
        reachability: caller.place,
        address: Some(caller.address),
        // A proxy may run as the same user; the user of its client is not known.
        user: caller.user.filter(|_| !via_proxy),
        certificate: caller.certificate.as_ref(),
        token: token.as_deref(),
    };
    let verdict = gate.authenticate(&credentials, clock::current_time());
    let not_needed = gate.requires_user(credentials.reachability) && gate.is_user(credentials.user);
    let principal = verdict.map_err(|denial| match denial {
        Denial::Wrong if not_needed => unauthorized(INVALID_TOKEN, NOT_NEEDED),
        denial => refusal(denial),
    })?;
    caller.set_authenticated();
    Ok(AuthenticatedClient {
        from: Arc::clone(&caller.from),
        principal,
        wanted_agent: None,
    })
}

/// Whether a proxy marked the request as forwarded.
pub(in crate::http) fn is_forwarded(fields: &HeaderMap) -> bool {
    let is_forward = |name: &HeaderName| name.as_str().starts_with("x-forwarded-");
    FORWARD_HEADERS.iter().any(|name| fields.contains_key(name)) || fields.keys().any(is_forward)
}

/// Whether a request names the relay by a name that only this machine can use. A request with
/// another of its names has come through a proxy, even when that does not mark it.
fn is_for_this_machine<B>(request: &Request<B>) -> bool {
    let authority = request.uri().authority().map(|one| one.as_str().as_bytes());
    let field = request.headers().get(HOST).map(HeaderValue::as_bytes);
    authority.or(field).is_some_and(origin::names_loopback)
}

/// The subprotocol for a client that sent a token as one: the first of the others it offers.
pub(in crate::http) fn subprotocol(fields: &HeaderMap) -> Option<&str> {
    let has_token = subprotocols(fields).any(|one| one.starts_with(TOKEN_PREFIX));
    let mut others = subprotocols(fields).filter(|one| !one.starts_with(TOKEN_PREFIX));
    others.next().filter(|_| has_token)
}

/// Whether a client offers this subprotocol.
pub(in crate::http) fn offers(fields: &HeaderMap, protocol: &str) -> bool {
    subprotocols(fields).any(|one| one == protocol)
}

/// The token of a request. Anything that is not a token, or more than one, becomes an empty token,
/// which is never valid.
fn token(fields: &HeaderMap) -> Option<Vec<u8>> {
    let headers = fields.get_all(AUTHORIZATION).iter();
    let headers = headers.map(|value| bearer(value.as_bytes()).unwrap_or_default());
    let protocols = subprotocols(fields).filter_map(|one| one.strip_prefix(TOKEN_PREFIX));
    let protocols = protocols.map(|text| {
        let decoded = BASE64URL_NOPAD.decode(text.trim_end_matches('=').as_bytes());
        decoded.unwrap_or_default()
    });
    let mut all = headers.chain(protocols);
    let first = all.next()?;
    Some(if all.any(|other| other != first) {
        Vec::new()
    } else {
        first
    })
}

/// The value after `Bearer`.
fn bearer(value: &[u8]) -> Option<Vec<u8>> {
    let (scheme, token) = value.split_at_checked(6)?;
    let rest = token.strip_prefix(b" ")?;
    let bearer = scheme.eq_ignore_ascii_case(b"bearer");
    bearer.then(|| rest.trim_ascii().to_vec())
}

fn subprotocols(fields: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = fields.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).map(str::trim)
}

fn refusal(denial: Denial) -> Refusal {
    match denial {
        Denial::TooOften(wait) => {
            let why = "too many wrong tokens have come from this address; try again later";
            // Rounded up to whole seconds.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            let refusal = Refusal::fatal(StatusCode::TOO_MANY_REQUESTS, why);
            refusal.with_field(RETRY_AFTER, &seconds.to_string())
        }
        Denial::Wrong => unauthorized(INVALID_TOKEN, "this token is invalid or expired"),
        Denial::Missing => unauthorized(
            NO_TOKEN,
            "a token is needed, and never in the address: \"Authorization: Bearer TOKEN\", or from \
             a page the WebSocket subprotocol acp.bearer.BASE64URL; `acp-relay token show` prints \
             it",
        ),
    }
}

/// The sender is not authenticated; the challenge names the credentials needed.
fn unauthorized(challenge: &'static str, why: &'static str) -> Refusal {
    Refusal::fatal(StatusCode::UNAUTHORIZED, why).with_field(WWW_AUTHENTICATE, challenge)
}
