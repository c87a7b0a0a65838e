//! Notices that the machine has slept, or that its network has changed, so that a connection is
//! tried at once and not when a timer runs out.

use std::net::{IpAddr, UdpSocket};
use std::task::Context;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(5);
/// The clock of the day runs on while the machine sleeps, and the other one does not. They differ by
/// more than this afterwards.
const SLEPT: Duration = Duration::from_secs(5);
/// Addresses for documentation (RFC 5737, RFC 3849): nothing is sent to them.
const ELSEWHERE: [(&str, &str); 2] = [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];

/// Looks at the network from time to time.
#[derive(Debug)]
pub(super) struct NetworkWatch {
    timer: Interval,
    seen: Look,
}

/// What a look shows.
#[derive(Clone, Copy, Debug)]
struct Look {
    day: SystemTime,
    awake: Instant,
    /// The addresses from which this machine would reach others: they tell its networks apart.
    addresses: [Option<IpAddr>; 2],
}

impl NetworkWatch {
    pub(super) fn new() -> Self {
        let mut timer = interval(INTERVAL);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        timer.reset();
        Self {
            timer,
            seen: Look::now(),
        }
    }

    /// Whether the machine has slept since the last look, or its network has changed.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let mut changed = false;
        while self.timer.poll_tick(cx).is_ready() {
            let before = std::mem::replace(&mut self.seen, Look::now());
            changed |= self.seen.differs_from(&before);
        }
        changed
    }
}

impl Look {
    fn now() -> Self {
        Self {
            day: SystemTime::now(),
            awake: Instant::now(),
            addresses: ELSEWHERE.map(|(own, other)| {
                let socket = UdpSocket::bind(own).ok()?;
                socket.connect(other).ok()?;
                socket.local_addr().ok().map(|address| address.ip())
            }),
        }
    }

    fn differs_from(&self, before: &Self) -> bool {
        let day = self.day.duration_since(before.day).unwrap_or_default();
        let awake = self.awake.saturating_duration_since(before.awake);
        day > awake + SLEPT || self.addresses != before.addresses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_and_another_network_are_noticed() {
        let before = Look::now();
        let minute = Duration::from_secs(60);
        let later = Look {
            day: before.day + minute,
            awake: before.awake + minute,
            ..before
        };
        assert!(!later.differs_from(&before));
        let slept = Look {
            day: later.day + minute,
            ..later
        };
        assert!(slept.differs_from(&before));
        // The clock may be set back.
        let set = Look {
            day: before.day - minute,
            ..later
        };
        assert!(!set.differs_from(&before));
        let moved = Look {
            addresses: [Some([10, 0, 0, 1].into()), None],
            ..later
        };
        assert!(moved.differs_from(&later));
    }
}
