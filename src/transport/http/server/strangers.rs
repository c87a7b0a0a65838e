//! Sockets of clients that have not shown yet who they are, counted by address.
//!
//! Not here: how long a client may stay unknown (`Limits::handshake`).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many there are at each address.
#[derive(Debug)]
pub(in crate::transport) struct Strangers {
    most: usize,
    counts: Mutex<HashMap<IpAddr, usize>>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(in crate::transport) struct Stranger {
    all: Arc<Strangers>,
    address: IpAddr,
}

impl Strangers {
    pub(in crate::transport) fn new(most: usize) -> Arc<Self> {
        let counts = Mutex::default();
        Arc::new(Self { most, counts })
    }

    /// Another one has come; `None` when there are too many of that address.
    pub(in crate::transport) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Stranger> {
        let address = address.to_canonical();
        let mut counts = self.counts();
        let count = counts.entry(address).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        drop(counts);
        let all = self.clone();
        Some(Stranger { all, address })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut counts = self.all.counts();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}
