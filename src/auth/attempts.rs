//! Limits the wrong tokens of an address.
//!
//! Each address has a token bucket: it may fail a number of times at once, and as many times again
//! over a minute. An IPv6 address counts with its /64, which usually belongs to one customer.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Time after which all failures of an address are forgotten.
const MINUTE: Duration = Duration::from_secs(60);

/// Most addresses that are remembered. Beyond it: those that expire first are dropped.
const ADDRESSES: usize = 4096;

/// Recent failures, by address.
#[derive(Debug)]
pub struct FailedAttempts {
    most: u32,
    /// When the last of an address's failures is forgotten.
    until: HashMap<IpAddr, Instant>,
}

impl FailedAttempts {
    /// Allows `most` failures of one address a minute.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            most: u32::try_from(most).unwrap_or(u32::MAX).max(1),
            until: HashMap::new(),
        }
    }

    /// Counts a failure.
    ///
    /// # Errors
    /// When there were too many already: the time until another one is allowed.
    pub fn record(&mut self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let each = MINUTE / self.most;
        let address = address_group(address);
        let until = self.until.get(&address).copied();
        let until = until.filter(|until| *until > now).unwrap_or(now) + each;
        let ahead = until - now;
        if ahead > MINUTE {
            return Err(ahead - MINUTE);
        }
        if self.until.len() >= ADDRESSES && !self.until.contains_key(&address) {
            self.forget(now);
        }
        self.until.insert(address, until);
        Ok(())
    }

    /// The number of addresses that are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.until.len()
    }

    fn forget(&mut self, now: Instant) {
        self.until.retain(|_, until| *until > now);
        if self.until.len() >= ADDRESSES {
            let mut all: Vec<Instant> = self.until.values().copied().collect();
            let (_, middle, _) = all.select_nth_unstable(ADDRESSES / 2);
            let middle = *middle;
            self.until.retain(|_, until| *until > middle);
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
