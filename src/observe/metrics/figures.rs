//! The figures of one conversation, which its task writes and a scrape reads.
//!
//! Not here: what they are made of (see `instrument`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::agent::{AgentFigures, GAP};
use super::cells::{Cell, Histogram, Table};
use super::pace::Pace;
use super::words::{KINDS, Transport};
use crate::conversation::Method;
use crate::jsonrpc::Side;

/// Upper bounds of message sizes, in bytes: 256 B to 64 MiB, each four times the last.
pub(super) const SIZES: [u64; 10] = [
    1 << 8,
    1 << 10,
    1 << 12,
    1 << 14,
    1 << 16,
    1 << 18,
    1 << 20,
    1 << 22,
    1 << 24,
    1 << 26,
];

/// The figures of one conversation.
#[derive(Debug)]
pub struct Figures {
    pub(super) transports: [Transport; 2],
    pub(super) client: String,
    pub(super) agent: Arc<AgentFigures>,
    pub(super) since: Instant,
    pub(super) passed: Passed<Cell>,
    /// Bytes received from a side and sent to it.
    pub(super) bytes: [[Cell; 2]; 2],
    pub(super) frames: [[Cell; 2]; 2],
    /// Requests open, by who asked.
    pub(super) in_flight: Table<Cell, 2>,
    pub(super) turns: Cell,
    pub(super) sessions: Cell,
    pub(super) notes: Cell,
    /// Between the updates of a turn.
    pub(super) gaps: Histogram<Cell>,
    /// How full the agent's context was when it was last told, in millionths and one; 0 while it was
    /// not.
    pub(super) context: Cell,
    /// Bytes that wait for a side, and for how many there is room.
    pub(super) waiting: [Cell; 2],
    pub(super) room: usize,
}

/// Messages that were passed on.
#[derive(Debug)]
pub(super) struct Passed<C> {
    /// By who said them, kind, method.
    pub(super) messages: Table<C, 3>,
    /// By who said them, kind, bucket.
    pub(super) sizes: Table<C, 3>,
    /// Bytes, by who said them and kind.
    pub(super) bytes: Table<C, 2>,
    pub(super) pace: Pace<C>,
}

/// What there is to see of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glimpse {
    /// Its number; they are counted from 1.
    pub number: u64,
    /// The client, as in the log.
    pub client: String,
    /// How the client is connected.
    pub transport: &'static str,
    /// The agent's name in the configuration.
    pub agent: String,
    /// How long it has been going on.
    pub age: Duration,
    /// Messages from the client and from the agent.
    pub messages: [u64; 2],
    /// Bytes of those.
    pub bytes: [u64; 2],
    /// Requests that await an answer, of the client and of the agent.
    pub in_flight: [u64; 2],
    /// Turns that go on.
    pub turns: u64,
    /// Sessions that are open.
    pub sessions: u64,
    /// Things that were not simply messages passed on.
    pub notes: u64,
}

impl<C: Default> Passed<C> {
    pub(super) fn new() -> Self {
        Self {
            messages: Table::new([2, KINDS.len(), Method::ALL.len()]),
            sizes: Table::new([2, KINDS.len(), SIZES.len() + 1]),
            bytes: Table::new([2, KINDS.len()]),
            pace: Pace::new(),
        }
    }
}

impl Figures {
    pub(super) fn new(
        client: String,
        transports: [Transport; 2],
        agent: Arc<AgentFigures>,
        since: Instant,
        room: usize,
    ) -> Self {
        Self {
            transports,
            client,
            agent,
            since,
            passed: Passed::new(),
            bytes: Default::default(),
            frames: Default::default(),
            in_flight: Table::new([2, Method::ALL.len()]),
            turns: Cell::default(),
            sessions: Cell::default(),
            notes: Cell::default(),
            gaps: Histogram::new(GAP),
            context: Cell::default(),
            waiting: Default::default(),
            room,
        }
    }

    /// Takes down that so many tokens of so many are in the agent's context.
    pub(super) fn filled(&self, used: u64, size: u64) {
        if size > 0 {
            let millionths = u128::from(used) * 1_000_000 / u128::from(size);
            self.context
                .set(u64::try_from(millionths).unwrap_or(u64::MAX - 1) + 1);
        }
    }

    /// How full the agent's context is, if it has ever said so.
    pub(super) fn context_used(&self) -> Option<f64> {
        let millionths = self.context.get().checked_sub(1)?;
        #[expect(clippy::cast_precision_loss, reason = "a ratio is near 1")]
        let millionths = millionths as f64;
        Some(millionths / 1e6)
    }

    pub(super) fn glimpse(&self, number: u64, now: Instant) -> Glimpse {
        let received = |from: &[[Cell; 2]; 2]| [from[0][0].get(), from[1][0].get()];
        let open = |side: Side| {
            let methods = 0..Method::ALL.len();
            methods
                .map(|at| self.in_flight.at([side as usize, at]).get())
                .sum()
        };
        Glimpse {
            number,
            client: self.client.clone(),
            transport: self.transports[0].name(),
            agent: self.agent.name.clone(),
            age: now.saturating_duration_since(self.since),
            messages: received(&self.frames),
            bytes: received(&self.bytes),
            in_flight: [open(Side::Client), open(Side::Agent)],
            turns: self.turns.get(),
            sessions: self.sessions.get(),
            notes: self.notes.get(),
        }
    }
}

/// The bucket of a message's size.
pub(super) fn bucket(bytes: usize) -> usize {
    let above = (bytes.saturating_sub(1) as u64) >> 8;
    let bits = (u64::BITS - above.leading_zeros()) as usize;
    bits.div_ceil(2).min(SIZES.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_in_the_first_bucket_whose_bound_it_does_not_pass() {
        for (at, bound) in SIZES.into_iter().enumerate() {
            let bound = usize::try_from(bound).expect("it is small");
            assert_eq!(bucket(bound), at, "{bound}");
            assert_eq!(bucket(bound + 1), at + 1, "{bound} + 1");
        }
        assert_eq!((bucket(0), bucket(1)), (0, 0));
        assert_eq!(bucket(usize::MAX), SIZES.len());
    }
}
