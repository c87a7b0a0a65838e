//! Who is at the other end of a socket, and who asks with a request.
//!
//! Not here: the judgement (see `guard`), and what a request shows (see `credential`).

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use super::strangers::Stranger;
use crate::guard::{Certificate, Place, Principal};

/// A client's socket.
#[derive(Debug)]
pub(super) struct Caller {
    /// Where it is, for logs.
    pub(super) from: Arc<str>,
    pub(super) address: IpAddr,
    pub(super) place: Place,
    /// The user whose program it is, where that matters and can be told.
    pub(super) user: Option<u32>,
    /// What it has shown with TLS.
    pub(super) certificate: Option<Certificate>,
    /// It counts as a stranger until it is known.
    pub(super) stranger: Mutex<Option<Stranger>>,
}

/// One who was let in.
#[derive(Clone, Debug)]
pub(super) struct Guest {
    pub(super) from: Arc<str>,
    pub(super) principal: Arc<Principal>,
    /// The agent that it asks for by name.
    pub(super) wish: Option<Arc<str>>,
}

impl Caller {
    /// It is no stranger any more.
    pub(super) fn is_known(&self) {
        let stranger = &self.stranger;
        stranger
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }
}
