//! Token usage of the sessions of a conversation, from reports that may mean either of two things.
//!
//! ACP's draft calls a report both the usage of a turn and the total of all turns, and there are
//! agents of each kind (GitHub Copilot 1.0.102 reports totals, OpenCode 1.18.33 single turns). A
//! total never decreases. So reports are taken for totals until one is less than the one before it;
//! then all of them were of single turns, and what the sum lacks is added. The first report of a
//! loaded session may include its earlier usage.

use smallvec::SmallVec;

use conversation::{SessionHash, Tokens};

/// Sessions whose reports are kept. The least recently reported one is dropped.
const SESSIONS: usize = 64;

/// The reports of a conversation.
#[derive(Debug, Default)]
pub(super) struct TokenUsage {
    /// The most recently reported one is last.
    sessions: SmallVec<[(SessionHash, Reports); 1]>,
    /// The agent reports single turns.
    single: bool,
}

/// The reports of one session.
#[derive(Clone, Copy, Debug, Default)]
struct Reports {
    last: Tokens,
    sum: Tokens,
    counted: Tokens,
}

impl TokenUsage {
    /// A turn has ended with this report. Returns the tokens to count for it.
    pub(super) fn report(&mut self, session: SessionHash, tokens: Tokens) -> Tokens {
        let known = self
            .sessions
            .iter()
            .position(|(known, _)| *known == session);
        let mut reports = match known {
            Some(at) => self.sessions.remove(at).1,
            None => Reports::default(),
        };
        self.single |= tokens.is_less_than(&reports.last);
        reports.last = tokens;
        reports.sum = reports.sum.plus(&tokens);
        let total = if self.single { reports.sum } else { tokens };
        let more = total.minus(&reports.counted);
        reports.counted = reports.counted.plus(&more);
        if self.sessions.len() >= SESSIONS {
            self.sessions.remove(0);
        }
        self.sessions.push((session, reports));
        more
    }
}
