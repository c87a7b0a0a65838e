//! What the sessions of a conversation have cost, from reports that may mean either of two things.
//!
//! ACP's draft calls it both the usage of a turn and the total across all turns, and there are
//! agents of each kind (GitHub Copilot 1.0.102 adds up, OpenCode 1.18.33 does not). A total never
//! becomes less. So reports are taken for totals until one is less than the one before it. That
//! shows that all of them were of single turns, and what is missing in the sum is added then. The
//! first report of a session that was loaded may hold what it has cost before. Not here: where
//! reports stand (see `conversation::gist`).

use smallvec::SmallVec;

use crate::conversation::{SessionHash, Tokens};

/// Sessions of which is known what they reported. The one that was silent longest is forgotten.
const SESSIONS: usize = 64;

/// What was reported so far.
#[derive(Debug, Default)]
pub(super) struct Spending {
    /// The one that reported last stands last.
    sessions: SmallVec<[(SessionHash, Reports); 1]>,
    /// The agent reports each turn alone.
    alone: bool,
}

/// The reports of one session.
#[derive(Clone, Copy, Debug, Default)]
struct Reports {
    last: Tokens,
    sum: Tokens,
    counted: Tokens,
}

impl Spending {
    /// A turn has ended with this report; what is to be counted for it.
    pub(super) fn report(&mut self, session: SessionHash, tokens: Tokens) -> Tokens {
        let known = self
            .sessions
            .iter()
            .position(|(known, _)| *known == session);
        let mut reports = match known {
            Some(at) => self.sessions.remove(at).1,
            None => Reports::default(),
        };
        self.alone |= tokens.is_less_than(&reports.last);
        reports.last = tokens;
        reports.sum = reports.sum.plus(&tokens);
        let total = if self.alone { reports.sum } else { tokens };
        let more = total.minus(&reports.counted);
        reports.counted = reports.counted.plus(&more);
        if self.sessions.len() >= SESSIONS {
            self.sessions.remove(0);
        }
        self.sessions.push((session, reports));
        more
    }
}
