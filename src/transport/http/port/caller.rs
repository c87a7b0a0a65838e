//! The client at the other end of a socket, and the client that sent a request.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::TcpStream;

use super::unauthenticated::{UnauthenticatedSocket, UnauthenticatedSockets};
use crate::auth::{AuthRequirement, Certificate, Gate, Principal, Reachability};
use crate::transport::tcp;

/// A client's socket.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Its address, for logs.
    pub(in crate::transport) from: Arc<str>,
    pub(in crate::transport) address: IpAddr,
    /// The local address that it connected to.
    pub(in crate::transport) dialed: Option<SocketAddr>,
    pub(in crate::transport) place: Reachability,
    /// The user its program runs as, where that matters and can be determined.
    pub(in crate::transport) user: Option<u32>,
    /// The certificate it presented with TLS.
    pub(in crate::transport) certificate: Option<Certificate>,
    /// It counts as unauthenticated until its credentials were accepted.
    pub(in crate::transport) unauthenticated: Mutex<Option<UnauthenticatedSocket>>,
}

/// A client whose credentials were accepted.
#[derive(Clone, Debug)]
pub(crate) struct AuthenticatedClient {
    pub(in crate::transport) from: Arc<str>,
    pub(crate) principal: Arc<Principal>,
    /// The agent that it asks for by name.
    pub(in crate::transport) wanted_agent: Option<Arc<str>>,
}

impl Caller {
    /// What is known of a client before it has sent anything; `None` when there are too many
    /// unauthenticated sockets.
    pub(in crate::transport) fn of(
        stream: &TcpStream,
        from: Arc<str>,
        address: SocketAddr,
        place: Reachability,
        gate: &Gate,
        unauthenticated: &Arc<UnauthenticatedSockets>,
    ) -> Option<Self> {
        let user = tcp::user_of(stream, address, gate, place);
        let is_known = gate.requirement(place) == AuthRequirement::Nothing || gate.is_user(user);
        let slot = if is_known {
            None
        } else {
            Some(unauthenticated.add(address.ip())?)
        };
        Some(Self {
            from,
            address: address.ip(),
            dialed: stream.local_addr().ok(),
            place,
            user,
            certificate: None,
            unauthenticated: Mutex::new(slot),
        })
    }

    /// Whether its credentials were not accepted yet.
    pub(in crate::transport) fn is_unauthenticated(&self) -> bool {
        let slot = &self.unauthenticated;
        slot.lock().is_some()
    }

    /// Its credentials were accepted.
    pub(in crate::transport) fn set_authenticated(&self) {
        let slot = &self.unauthenticated;
        slot.lock().take();
    }
}
