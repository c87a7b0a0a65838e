//! When the client is told that the connection to the agent is lost, and that it is restored: if it
//! has asked for that in `initialize`.
//!
//! The conversation itself notices nothing of an outage: the link outlives connections.

use std::mem;
use std::time::{Duration, Instant};

use jsonrpc::member;

/// An outage that is shorter is not told.
const SHORT: Duration = Duration::from_secs(2);

/// The path of the capability, which is `true` for a client that wants to be told.
const CAPABILITY: [&str; 4] = ["clientCapabilities", "_meta", "acp-relay", "status"];

/// What the client knows of the connection to the agent.
#[derive(Debug, Default)]
pub(super) struct LinkStatus {
    is_wanted: bool,
    lost_since: Option<Instant>,
    /// The client was told of the outage.
    is_told: bool,
}

/// Whether a client asks for notices of the relay by these parameters of its `initialize`.
#[must_use]
pub fn wants_status(params: &[u8]) -> bool {
    let mut path = CAPABILITY.iter();
    path.try_fold(params, |object, name| member(object, name)) == Some(b"true")
}

impl LinkStatus {
    /// Reads the parameters of the client's `initialize`.
    pub(super) fn read_capability(&mut self, params: &[u8]) {
        self.is_wanted = wants_status(params);
    }

    /// Whether the client has asked for notices of the relay.
    pub(super) const fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Since when the connection is lost.
    pub(super) const fn lost_since(&self) -> Option<Instant> {
        self.lost_since
    }

    /// When the client is to be told of an outage.
    pub(super) fn due(&self) -> Option<Instant> {
        let is_due = self.is_wanted && !self.is_told;
        Some(self.lost_since.filter(|_| is_due)? + SHORT)
    }

    /// The connection is lost since then, or there is one. Returns for how long it was lost, if the
    /// client is to be told that it is restored.
    pub(super) fn update(&mut self, since: Option<Instant>, now: Instant) -> Option<Duration> {
        if since.is_some() {
            // Of an outage that was told, the first loss counts.
            self.lost_since = self.lost_since.filter(|_| self.is_told).or(since);
            return None;
        }
        let lost = self.lost_since.take()?;
        mem::take(&mut self.is_told).then(|| now - lost)
    }

    /// For how long the connection has been lost, if it is time to tell the client.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Duration> {
        let lost = self.lost_since?;
        self.is_told |= self.due()? <= now;
        self.is_told.then(|| now - lost)
    }
}
