//! The requests that pass through a translation and await their answer.
//!
//! An answer names no method, so what was asked is remembered, in both columns. Bounded. Not
//! here: that every request is answered, which is `core`'s to see to.

use std::collections::HashMap;

use super::name::Name;
use super::permission::Offered;
use crate::wire::IdBuf;

/// Most requests in flight that one side's translation follows.
const OPEN: usize = 1 << 16;

/// A request in flight.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// Its method in the dialect.
    pub(super) dialect: Name,
    /// Its method in canonical.
    pub(super) canonical: Name,
    /// The session it was for.
    pub(super) session: Option<String>,
    /// Slots that hold until it is answered.
    pub(super) slots: Vec<(usize, Box<[u8]>)>,
    /// The options a permission request offered, in canonical.
    pub(super) offered: Option<Offered>,
    /// The id its asker knows it by, when that differs.
    pub(super) asker_id: Option<IdBuf>,
    /// What is done with its answer.
    pub(super) purpose: Purpose,
    /// The canonical params of `session/set_config_option`.
    pub(super) params: Option<Vec<u8>>,
}

/// What is done with an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It goes to the one who asked.
    #[default]
    Forward,
    /// The bridge asked; nobody waits for the answer.
    Swallow,
    /// The bridge asked for the number of this tool call.
    ToolNumber(String),
    /// The bridge asked for a session.
    Session,
}

/// The requests of one side.
#[derive(Debug, Default)]
pub(super) struct Requests {
    open: HashMap<IdBuf, Asked>,
    /// Requests that could not be followed.
    pub(super) lost: u64,
}

impl Asked {
    /// A request of which only the method is known.
    pub(super) fn of(dialect: &str, canonical: &str) -> Self {
        Self {
            dialect: dialect.into(),
            canonical: canonical.into(),
            ..Self::default()
        }
    }

    /// Whether nothing has to be done with its answer but what rules say.
    pub(super) fn is_plain(&self) -> bool {
        self.purpose == Purpose::Forward && self.asker_id.is_none()
    }
}

impl Requests {
    pub(super) fn ask(&mut self, id: IdBuf, asked: Asked) {
        if self.open.len() >= OPEN {
            self.lost += 1;
            return;
        }
        self.open.insert(id, asked);
    }

    pub(super) fn answer(&mut self, id: &IdBuf) -> Option<Asked> {
        if let Some(asked) = self.open.remove(id) {
            return Some(asked);
        }
        // A number may come back in another spelling; only one candidate may be meant.
        if !matches!(id, IdBuf::Number(_)) {
            return None;
        }
        let mut twins = self
            .open
            .keys()
            .filter(|open| open.as_id().same_double(&id.as_id()));
        let (Some(twin), None) = (twins.next().cloned(), twins.next()) else {
            return None;
        };
        self.open.remove(&twin)
    }

    /// Forgets what was remembered for the answers.
    pub(super) fn forget_slots(&mut self) {
        for asked in self.open.values_mut() {
            asked.slots.clear();
        }
    }

    pub(super) fn has(&self, id: &IdBuf) -> bool {
        self.open.contains_key(id)
    }
}
