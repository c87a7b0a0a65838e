//! Counts the sockets of unauthenticated clients, by address and in total. `Limits::handshake`
//! bounds how long a client may stay unauthenticated.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::auth::neighbourhood;
use crate::jsonrpc::Limits;

/// The counts and their limits.
#[derive(Debug)]
pub(in crate::transport) struct Strangers {
    /// Per address.
    most: usize,
    /// In total, so that other clients still find a socket.
    most_of_all: usize,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    each: HashMap<IpAddr, usize>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(in crate::transport) struct Stranger {
    all: Arc<Strangers>,
    address: IpAddr,
}

impl Strangers {
    pub(in crate::transport) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            most: limits.strangers,
            most_of_all: (limits.http_sockets / 2).max(1),
            counts: Mutex::default(),
        })
    }

    /// Counts another one; `None` when there are too many.
    pub(in crate::transport) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Stranger> {
        let address = neighbourhood(address);
        let mut counts = self.counts();
        if counts.all >= self.most_of_all {
            return None;
        }
        let count = counts.each.entry(address).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        counts.all += 1;
        drop(counts);
        let all = self.clone();
        Some(Stranger { all, address })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut counts = self.all.counts();
        counts.all -= 1;
        if let Some(count) = counts.each.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.each.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_one_address_and_all_together_leave_room_for_others() {
        let limits = Limits {
            strangers: 2,
            http_sockets: 8,
            ..Limits::default()
        };
        let strangers = Strangers::new(&limits);
        let enter = |text: &str| strangers.enter(text.parse().expect("an address"));
        let first = enter("2001:db8:1:2::1").expect("the first");
        let _second = enter("2001:db8:1:2:ffff::2").expect("the second");
        assert!(enter("2001:db8:1:2::3").is_none(), "the same network");
        let _third = enter("2001:db8:1:3::1").expect("another network");
        let _fourth = enter("::ffff:192.0.2.1").expect("the fourth of all");
        assert!(enter("198.51.100.1").is_none(), "half of the sockets");
        drop(first);
        assert!(enter("198.51.100.1").is_some());
    }
}
