//! A WebSocket that carries a resumable link, one end of which is elsewhere.

use super::handshake::open;
use super::link::client;
use crate::resumable::{SUBPROTOCOL, carrier_limits};
use crate::{Endpoint, Link, OpenError, OpenErrorKind, Setup};

/// Opens one.
///
/// # Errors
/// The server is not reached, or does not know links.
pub async fn connect_carrier(to: &Endpoint, setup: &Setup) -> Result<Link, OpenError> {
    let opened = open(to, setup, Some(SUBPROTOCOL)).await?;
    if !opened.is_chosen {
        let what = "the server there keeps no links";
        return Err(OpenError::new(OpenErrorKind::Protocol, to, what));
    }
    let limits = carrier_limits(&setup.limits);
    Ok(client(opened, to.to_string(), &limits, true))
}
