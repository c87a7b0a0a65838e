//! How long an agent may run without a renewal by the relay.
//!
//! Where another machine may get an agent's session after some time, the agent has to end by then, also
//! if this relay is stopped (SIGSTOP) and cannot end it. So its watchdog knows the time, and each
//! renewal of the session extends it.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::net::UnixStream;

/// The lowest order that is a time; the others are numbers of signals.
const FIRST: u8 = 128;
/// The unit of the times.
const UNIT: Duration = Duration::from_millis(250);

/// The time until which an agent may run; without one it may run on. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Lease(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    until: Option<Instant>,
    /// The socket to the watchdog of the last process that was started with it.
    control: Weak<UnixStream>,
}

impl Lease {
    /// The agent may run until then. Replaces the time that was set before.
    pub fn extend(&self, until: Instant) {
        let mut state = self.0.lock();
        state.until = Some(until);
        state.send();
    }

    /// The process at the other end of the socket to its watchdog has this lease.
    pub fn bind(&self, control: &Arc<UnixStream>) {
        let mut state = self.0.lock();
        state.control = Arc::downgrade(control);
        state.send();
    }
}

impl State {
    /// Sends the time that is left to the watchdog, if both are known.
    fn send(&self) {
        if let (Some(until), Some(control)) = (self.until, self.control.upgrade()) {
            let left = until.saturating_duration_since(Instant::now());
            let units = (left.as_millis() / UNIT.as_millis()).min((u8::MAX - FIRST).into());
            // The watchdog may have ended.
            let _ = rustix::io::write(control, &[FIRST + units as u8]);
        }
    }
}

/// The time that an order grants, if it is one.
pub(super) fn granted(order: u8) -> Option<Duration> {
    let units = order.checked_sub(FIRST)?;
    Some(UNIT * u32::from(units))
}

impl PartialEq for Lease {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Lease {}
