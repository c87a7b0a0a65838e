//! Counts the sockets of unauthenticated clients, by address and in total. `Limits::handshake`
//! bounds how long a client may stay unauthenticated.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::auth::address_group;
use crate::jsonrpc::Limits;

/// The counts and their limits.
#[derive(Debug)]
pub(in crate::transport) struct UnauthenticatedSockets {
    /// Per address.
    max_per_address: usize,
    /// In total, so that other clients still find a socket.
    max: usize,
    counts: Mutex<HashMap<IpAddr, usize>>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(in crate::transport) struct UnauthenticatedSocket {
    sockets: Arc<UnauthenticatedSockets>,
    address: IpAddr,
}

impl UnauthenticatedSockets {
    pub(in crate::transport) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            max_per_address: limits.unauthenticated_sockets,
            max: (limits.http_sockets / 2).max(1),
            counts: Mutex::default(),
        })
    }

    /// Counts another one; `None` when there are too many.
    pub(in crate::transport) fn add(
        self: &Arc<Self>,
        address: IpAddr,
    ) -> Option<UnauthenticatedSocket> {
        let address = address_group(address);
        let mut counts = self.counts.lock();
        let total: usize = counts.values().sum();
        let count = counts.get(&address).copied().unwrap_or(0);
        if total >= self.max || count >= self.max_per_address {
            return None;
        }
        counts.insert(address, count + 1);
        let sockets = self.clone();
        Some(UnauthenticatedSocket { sockets, address })
    }
}

impl Drop for UnauthenticatedSocket {
    fn drop(&mut self) {
        let mut counts = self.sockets.counts.lock();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
        }
        counts.retain(|_, count| *count > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_limited_per_network_and_overall() {
        let limits = Limits {
            unauthenticated_sockets: 2,
            http_sockets: 8,
            ..Limits::default()
        };
        let sockets = UnauthenticatedSockets::new(&limits);
        let add = |text: &str| sockets.add(text.parse().expect("an address"));
        let first = add("2001:db8:1:2::1").expect("the first");
        let _second = add("2001:db8:1:2:ffff::2").expect("the second");
        assert!(add("2001:db8:1:2::3").is_none(), "the same network");
        let _third = add("2001:db8:1:3::1").expect("another network");
        let _fourth = add("::ffff:192.0.2.1").expect("the fourth of all");
        assert!(add("198.51.100.1").is_none(), "half of the sockets");
        drop(first);
        assert!(add("198.51.100.1").is_some());
    }
}
