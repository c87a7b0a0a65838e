//! The client at the other end of a socket, and the client that sent a request.
//!
//! A socket counts as unauthenticated until credentials on it are accepted. Such sockets are
//! limited by address and in total, so that other clients still find one; `Limits::handshake`
//! bounds how long a client may stay unauthenticated.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::net::TcpStream;

use crate::tcp;
use auth::{AuthRequirement, Certificate, Gate, Principal, Reachability, address_group};
use jsonrpc::Limits;
use panics::SharedMutex;

/// A client's socket.
#[derive(Debug)]
pub struct Caller {
    /// Its address, for logs.
    pub(super) from: Arc<str>,
    pub(super) address: IpAddr,
    /// The local address that it connected to.
    pub(super) dialed: Option<SocketAddr>,
    pub(super) place: Reachability,
    /// The user its program runs as, where that matters and can be determined.
    pub(super) user: Option<u32>,
    /// The certificate it presented with TLS.
    pub(super) certificate: Option<Certificate>,
    /// The head of a request has come.
    pub(super) has_requested: AtomicBool,
    unauthenticated: Mutex<Option<UnauthenticatedSocket>>,
}

/// A client whose credentials were accepted.
#[derive(Clone, Debug)]
pub struct AuthenticatedClient {
    pub(crate) from: Arc<str>,
    /// Whom it acts for.
    pub principal: Arc<Principal>,
    /// The agent that it asks for by name.
    pub(crate) wanted_agent: Option<Arc<str>>,
}

/// The addresses of unauthenticated sockets.
#[derive(Debug)]
pub(super) struct UnauthenticatedSockets {
    max_per_address: usize,
    max: usize,
    open: SharedMutex<Vec<IpAddr>>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
struct UnauthenticatedSocket {
    sockets: Arc<UnauthenticatedSockets>,
    address: IpAddr,
}

impl Caller {
    /// What is known of a client before it has sent anything; `None` when there are too many
    /// unauthenticated sockets.
    pub(super) fn of(
        stream: &TcpStream,
        from: Arc<str>,
        address: SocketAddr,
        place: Reachability,
        gate: &Gate,
        sockets: &Arc<UnauthenticatedSockets>,
    ) -> Option<Self> {
        let user = tcp::user_of(stream, address, gate, place);
        let is_known = gate.requirement(place) == AuthRequirement::Nothing || gate.is_user(user);
        let unauthenticated = match is_known {
            true => None,
            false => Some(sockets.add(address.ip())?),
        };
        Some(Self {
            from,
            address: address.ip(),
            dialed: stream.local_addr().ok(),
            place,
            user,
            certificate: None,
            has_requested: AtomicBool::new(false),
            unauthenticated: Mutex::new(unauthenticated),
        })
    }

    /// Whether the head of a request has come.
    pub(super) fn has_requested(&self) -> bool {
        self.has_requested.load(Ordering::Relaxed)
    }

    /// Whether its credentials were not accepted yet.
    pub(super) fn is_unauthenticated(&self) -> bool {
        self.unauthenticated.lock().is_some()
    }

    /// Its credentials were accepted.
    pub(super) fn set_authenticated(&self) {
        self.unauthenticated.lock().take();
    }
}

impl UnauthenticatedSockets {
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            max_per_address: limits.unauthenticated_sockets,
            max: (limits.http_sockets / 2).max(1),
            open: SharedMutex::default(),
        })
    }

    /// Counts another one; `None` when there are too many.
    fn add(self: &Arc<Self>, address: IpAddr) -> Option<UnauthenticatedSocket> {
        let address = address_group(address);
        let mut open = self.open.lock();
        let same = open.iter().filter(|one| **one == address);
        if open.len() >= self.max || same.count() >= self.max_per_address {
            return None;
        }
        open.push(address);
        let sockets = self.clone();
        Some(UnauthenticatedSocket { sockets, address })
    }
}

impl Drop for UnauthenticatedSocket {
    fn drop(&mut self) {
        let mut open = self.sockets.open.lock();
        if let Some(at) = open.iter().position(|one| *one == self.address) {
            open.swap_remove(at);
        }
    }
}
