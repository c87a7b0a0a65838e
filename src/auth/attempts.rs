//! Limits the wrong tokens of an address.
//!
//! Each address may fail a number of times at once, and as many times again over a minute. An IPv6
//! address counts with its /64, which usually belongs to one customer.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::RateLimit;

/// Time after which all failures of an address are forgotten.
const MINUTE: Duration = Duration::from_secs(60);

/// Most addresses that are remembered. Beyond it: those that expire first are dropped.
const ADDRESSES: usize = 4096;

/// Recent failures, by address.
#[derive(Debug)]
pub struct FailedAttempts {
    most: usize,
    recent: HashMap<IpAddr, RateLimit>,
}

impl FailedAttempts {
    /// Allows `most` failures of one address a minute.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            most,
            recent: HashMap::new(),
        }
    }

    /// Counts a failure.
    ///
    /// # Errors
    /// When there were too many already: the time until another one is allowed.
    pub fn record(&mut self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let address = address_group(address);
        if self.recent.len() >= ADDRESSES && !self.recent.contains_key(&address) {
            self.forget(now);
        }
        let limit = self.recent.entry(address);
        let limit = limit.or_insert_with(|| RateLimit::per(MINUTE, self.most));
        limit.acquire(now)
    }

    /// The number of addresses that are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.recent.len()
    }

    fn forget(&mut self, now: Instant) {
        self.recent.retain(|_, limit| !limit.is_idle(now));
        if self.recent.len() >= ADDRESSES {
            let mut all: Vec<_> = self.recent.values().map(RateLimit::idle_at).collect();
            let middle = *all.select_nth_unstable(ADDRESSES / 2).1;
            self.recent.retain(|_, limit| limit.idle_at() > middle);
        }
    }
}

/// What counts as one address: for IPv6 the /64, which usually belongs to one customer.
#[must_use]
pub fn address_group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}
