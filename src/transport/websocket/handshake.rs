//! The opening of a WebSocket (RFC 6455, section 4) as a client, with the HTTP client. No extension
//! is offered.

use std::fmt;

use bytes::Bytes;
use hyper::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS,
    SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::http::client::{HttpClient, HttpStream, NoResponse, ServerRefusal};
use crate::http::headers::{LINK_HELLO, MAX_MESSAGE, lists, longest};
use crate::{Endpoint, OpenError, OpenErrorKind, Setup, open_error};
use jsonrpc::Frame;

/// The subprotocol that is offered first, and means nothing: some servers choose the first one
/// whatever it is, such as those on the npm package `ws`, and do not speak it.
const PLAIN: &str = "acp";

/// An open WebSocket.
pub struct Opened {
    /// Its stream.
    pub stream: HttpStream,
    /// What the server has sent behind its answer.
    pub begun: Bytes,
    /// Whether the server has chosen the subprotocol that was offered.
    pub is_chosen: bool,
    /// Whether the server has taken the greeting of a resumable link from the request.
    pub is_greeted: bool,
    /// The longest message that the server takes, if it has announced that.
    pub longest: usize,
}

/// Opens a WebSocket, and offers a subprotocol.
///
/// # Errors
/// When the server cannot be reached, refuses, or does not speak the protocol.
pub async fn open(
    to: &Endpoint,
    setup: &Setup,
    offered: Option<&'static str>,
) -> Result<Opened, OpenError> {
    upgrade(&HttpClient::new(to, setup)?, to, offered, None).await
}

/// The same with a client of that server, which keeps cookies; `greeting` is that of a resumable link.
pub(super) async fn upgrade(
    client: &HttpClient,
    to: &Endpoint,
    offered: Option<&'static str>,
    greeting: Option<&Frame>,
) -> Result<Opened, OpenError> {
    let Endpoint::Http(web) = to else {
        return Err(OpenError::wrong_scheme(to));
    };
    let key = generate_key();
    let mut request = client.request(Method::GET, &web.path, "")?;
    for (name, value) in [
        (CONNECTION, "Upgrade"),
        (UPGRADE, "websocket"),
        (SEC_WEBSOCKET_VERSION, "13"),
        (SEC_WEBSOCKET_KEY, &key),
    ] {
        let value = HeaderValue::from_str(value).map_err(|fault| not_spoken(to, fault))?;
        request.headers_mut().insert(name, value);
    }
    let own = client.limits.frame_from_network.into();
    request.headers_mut().insert(MAX_MESSAGE, own);
    if let Some(protocol) = offered {
        let protocols = HeaderValue::from_str(&format!("{PLAIN}, {protocol}"));
        let protocols = protocols.map_err(|fault| not_spoken(to, fault))?;
        let fields = request.headers_mut();
        fields.insert(SEC_WEBSOCKET_PROTOCOL, protocols);
    }
    if let Some(greeting) = greeting {
        let line = HeaderValue::from_bytes(greeting.as_bytes().trim_ascii_end());
        let mut line = line.map_err(|fault| not_spoken(to, fault))?;
        // It has the key of the link.
        line.set_sensitive(true);
        request.headers_mut().insert(LINK_HELLO, line);
    }
    client.connect().await?;
    let opening = async {
        let response = client.send(request).await.map_err(|fault| match fault {
            NoResponse::Unsent(fault) => fault,
            NoResponse::Lost(why) => open_error::lost(to, why),
            NoResponse::Unreadable(why) => not_spoken(to, why),
        })?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(refused(to, ServerRefusal::read(response).await));
        }
        let checked = check(response.headers(), &key, offered);
        let is_chosen = checked.map_err(|what| not_spoken(to, what))?;
        let is_greeted = is_chosen && response.headers().contains_key(LINK_HELLO);
        let longest = longest(response.headers());
        let upgraded = hyper::upgrade::on(response).await;
        let upgraded = upgraded.map_err(|fault| not_spoken(to, fault))?;
        let parts = upgraded.downcast::<TokioIo<HttpStream>>();
        let parts = parts.map_err(|_| not_spoken(to, "its connection is another one"))?;
        Ok(Opened {
            stream: parts.io.into_inner(),
            begun: parts.read_buf,
            is_chosen,
            is_greeted,
            longest,
        })
    };
    let within = client.limits.handshake;
    let opened = timeout(within, opening).await;
    opened.unwrap_or_else(|_| Err(open_error::timed_out(to, "the handshake", within)))
}

/// Whether an answer that accepts the WebSocket has chosen the offered subprotocol, or what is wrong
/// with it.
fn check(fields: &HeaderMap, key: &str, offered: Option<&str>) -> Result<bool, &'static str> {
    if !lists(fields, &UPGRADE, b"websocket") || !lists(fields, &CONNECTION, b"upgrade") {
        return Err("its 101 upgrades to something else");
    }
    let accept = derive_accept_key(key.as_bytes());
    let accepted: Vec<_> = fields.get_all(SEC_WEBSOCKET_ACCEPT).iter().collect();
    if accepted != [accept.as_str()] {
        return Err("its answer is not to our request");
    }
    let chosen: Vec<_> = fields.get_all(SEC_WEBSOCKET_PROTOCOL).iter().collect();
    let is_chosen = offered.is_some_and(|offered| chosen == [offered]);
    let is_plain = chosen.is_empty() || (offered.is_some() && chosen == [PLAIN]);
    if fields.contains_key(SEC_WEBSOCKET_EXTENSIONS) || !(is_plain || is_chosen) {
        return Err("it chose an extension or a protocol that was not offered");
    }
    Ok(is_chosen)
}

jsonrpc::opaque_debug!(Opened);

fn refused(to: &Endpoint, refusal: ServerRefusal) -> OpenError {
    let (kind, remedy) = match refusal.status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            (OpenErrorKind::Forbidden, open_error::CHECK_TOKEN)
        }
        status if open_error::is_transient(status) => {
            (OpenErrorKind::Unavailable, "Try again later")
        }
        _ => (OpenErrorKind::Protocol, "Check the path; /acp is usual"),
    };
    OpenError::new(kind, to, refusal.text).with_remedy(remedy)
}

fn not_spoken(to: &Endpoint, why: impl fmt::Display) -> OpenError {
    let what = format!("it does not speak WebSocket ({why})");
    OpenError::new(OpenErrorKind::Protocol, to, what).with_remedy("Check the port and the scheme")
}
