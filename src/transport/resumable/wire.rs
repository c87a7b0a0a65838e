//! What both ends write, and the connections that they write it on.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::LinkError;
use jsonrpc::{Frame, Limits};
use link::{Header, MAX_HEADER};

/// The WebSocket subprotocol of links.
pub(crate) const SUBPROTOCOL: &str = "acp-link.v1";

/// Most bytes of the header of a message.
const HEADER: usize = 64;
/// The longest interval.
const NEVER: Duration = Duration::from_secs(86_400);

/// The limits of a connection that carries a link: there is room for the header, and the link has
/// its own signs of life.
pub(crate) fn carrier_limits(limits: &Limits) -> Arc<Limits> {
    Arc::new(Limits {
        frame_from_network: limits.frame_from_network + MAX_HEADER,
        http_keepalive: NEVER,
        ..limits.clone()
    })
}

/// A message of the link without one of the conversation.
pub(super) fn encode(header: &Header) -> Frame {
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    Frame::new(bytes)
}

/// A message of the conversation with its header.
pub(super) fn with_header(seq: u64, ack: u64, frame: &Frame) -> Frame {
    let mut bytes = Vec::with_capacity(HEADER + frame.len());
    Header::Data { seq, ack }.write(&mut bytes);
    bytes.extend_from_slice(frame.as_bytes());
    Frame::new(bytes)
}

/// The peer does not keep to the protocol.
pub(super) fn broken(detail: impl fmt::Display) -> LinkError {
    LinkError::Protocol {
        protocol: SUBPROTOCOL,
        detail: detail.to_string(),
    }
}
