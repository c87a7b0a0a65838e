//! Notices that the machine has slept, or that its network has changed, so that a connection is
//! tried at once and not when a timer runs out.

use std::net::{IpAddr, UdpSocket};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(5);
/// The clock of the day runs on while the machine sleeps, and the other one does not. They differ by
/// more than this afterwards.
const SLEPT: Duration = Duration::from_secs(5);
/// Addresses for documentation (RFC 5737, RFC 3849): nothing is sent to them.
const ELSEWHERE: [(&str, &str); 2] = [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];

/// The network as it was.
#[derive(Debug)]
pub(super) struct NetworkWatch {
    timer: Interval,
    seen: (SystemTime, Instant),
    addresses: [Option<IpAddr>; 2],
}

impl NetworkWatch {
    pub(super) fn new() -> Self {
        let mut timer = interval(INTERVAL);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        timer.reset();
        Self {
            timer,
            seen: (SystemTime::now(), Instant::now()),
            addresses: addresses(),
        }
    }

    /// Whether something has changed since the last look.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let mut changed = false;
        while let Poll::Ready(now) = self.timer.poll_tick(cx) {
            let (day, before) = std::mem::replace(&mut self.seen, (SystemTime::now(), now));
            let day = self.seen.0.duration_since(day).unwrap_or_default();
            let addresses = addresses();
            changed |= day > now.saturating_duration_since(before) + SLEPT;
            changed |= addresses != self.addresses;
            self.addresses = addresses;
        }
        changed
    }
}

/// The addresses of this machine from which it would reach others: they show which network it uses.
fn addresses() -> [Option<IpAddr>; 2] {
    ELSEWHERE.map(|(own, other)| {
        let socket = UdpSocket::bind(own).ok()?;
        socket.connect(other).ok()?;
        socket.local_addr().ok().map(|address| address.ip())
    })
}
