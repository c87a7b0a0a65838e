//! Checks the Host and Origin of a request, and lets the requesting web page read the response.
//!
//! Done before anything else, whatever the method. The rules are in `auth::origin`.

use axum::response::{IntoResponse as _, Response};
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HOST,
    HeaderMap, HeaderName, HeaderValue, ORIGIN, UPGRADE, VARY,
};
use hyper::{Method, Request, StatusCode, Version};

use super::refusal::Refusal;
use crate::auth::RejectReason;
use crate::auth::origin::{self, OriginPolicy};
use crate::transport::http::content::lists;

/// The header by which a browser reports the relation between the page and the target.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The web page that sent a request, when there is one.
#[derive(Debug)]
pub(in crate::transport) struct Page(Option<HeaderValue>);

/// Admits a request, or returns why not.
pub(super) fn admit<B>(policy: &OriginPolicy, request: &Request<B>) -> Result<Page, Refusal> {
    let fields = request.headers();
    let all = |name: HeaderName| fields.get_all(name).into_iter().map(HeaderValue::as_bytes);
    // HTTP/2 names the host in `:authority`, and so may a proxy's request line.
    let authority = request.uri().authority().map(|one| one.as_str().as_bytes());
    let hosts = match authority {
        Some(authority) => {
            let mut hosts = vec![authority];
            hosts.extend(all(HOST).filter(|host| *host != authority));
            hosts
        }
        None => all(HOST).collect(),
    };
    let admitted = policy.check(all(ORIGIN), hosts, all(FETCH_SITE));
    let refused = |status, why: String, turned| Err(Refusal::fatal(status, why).counted_as(turned));
    match (admitted, host_error(request)) {
        (Err(page @ (origin::Refusal::Origin | origin::Refusal::Site)), _) => refused(
            StatusCode::FORBIDDEN,
            page.to_string(),
            RejectReason::Origin,
        ),
        (_, Some(why)) => refused(StatusCode::BAD_REQUEST, why.to_owned(), RejectReason::Host),
        // A client may send the request elsewhere (RFC 9110, 15.5.20), but not a handshake.
        (Err(host), None) if wants_upgrade(fields, b"websocket") => {
            refused(StatusCode::FORBIDDEN, host.to_string(), RejectReason::Host)
        }
        (Err(host), None) => refused(
            StatusCode::MISDIRECTED_REQUEST,
            host.to_string(),
            RejectReason::Host,
        ),
        (Ok(()), None) => Ok(Page(fields.get(ORIGIN).cloned())),
    }
}

/// The error in a head that names no host, or several. RFC 9112 (3.2) requires 400, whichever host
/// is named: an intermediary may have used another of them. 421 and 403 are for requests that name
/// one host which is not the relay's.
fn host_error<B>(request: &Request<B>) -> Option<&'static str> {
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (_, Some(_)) => Some("the Host header is given twice"),
        (None, None) if request.version() == Version::HTTP_11 => Some("the Host header is missing"),
        _ => None,
    }
}

/// Whether a request asks for an upgrade to that protocol (RFC 9110, 7.8).
pub(in crate::transport) fn wants_upgrade(fields: &HeaderMap, protocol: &[u8]) -> bool {
    lists(fields, &UPGRADE, protocol)
}

impl Page {
    /// Answers a page's preflight request; `methods` are those that are served.
    pub(in crate::transport) fn preflight<B>(
        &self,
        request: &Request<B>,
        methods: &'static str,
    ) -> Option<Response> {
        let is_preflight = request.method() == Method::OPTIONS
            && request
                .headers()
                .contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if self.0.is_none() || !is_preflight {
            return None;
        }
        let allowed = "accept, authorization, content-type, last-event-id, acp-connection-id, \
                       acp-session-id, acp-protocol-version";
        let private_network = HeaderName::from_static("access-control-allow-private-network");
        let fields = [
            (ACCESS_CONTROL_ALLOW_METHODS, methods),
            (ACCESS_CONTROL_ALLOW_HEADERS, allowed),
            (ACCESS_CONTROL_MAX_AGE, "600"),
            (private_network, "true"),
        ];
        Some((StatusCode::NO_CONTENT, fields).into_response())
    }

    /// Lets the page read a response.
    pub(in crate::transport) fn expose(self, fields: &mut HeaderMap) {
        let Some(origin) = self.0 else {
            return;
        };
        fields.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let exposed = HeaderValue::from_static("acp-connection-id, acp-session-id");
        fields.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        fields.append(VARY, HeaderValue::from_static("Origin"));
    }
}
