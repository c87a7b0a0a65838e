//! Who is at the other end of a socket, and who asks with a request.
//!
//! Not here: the judgement (see `guard`), and what a request shows (see `credential`).

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use super::strangers::Stranger;
use crate::guard::{Certificate, Place, Principal};

/// A client's socket.
#[derive(Debug)]
pub(in crate::transport) struct Caller {
    /// Where it is, for logs.
    pub(in crate::transport) from: Arc<str>,
    pub(in crate::transport) address: IpAddr,
    pub(in crate::transport) place: Place,
    /// The user whose program it is, where that matters and can be told.
    pub(in crate::transport) user: Option<u32>,
    /// What it has shown with TLS.
    pub(in crate::transport) certificate: Option<Certificate>,
    /// It counts as a stranger until it is known.
    pub(in crate::transport) stranger: Mutex<Option<Stranger>>,
}

/// One who was let in.
#[derive(Clone, Debug)]
pub(in crate::transport) struct Guest {
    pub(in crate::transport) from: Arc<str>,
    pub(in crate::transport) principal: Arc<Principal>,
    /// The agent that it asks for by name.
    pub(in crate::transport) wish: Option<Arc<str>>,
}

impl Caller {
    /// It is no stranger any more.
    pub(in crate::transport) fn is_known(&self) {
        let stranger = &self.stranger;
        stranger
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }
}
