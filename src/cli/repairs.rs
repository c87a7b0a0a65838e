//! Which rules repair what `check` finds: the conversation as the relay would forward it.
//!
//! Each message is translated from its sender's dialect, and the result is checked against the
//! schema, too. A violation that is absent from the result was repaired by the rules that changed
//! the message.

use std::sync::Arc;

use super::dialect::Pair;
use crate::acp::{Conversation, Deviation, Kind, Remedies, Remedy};
use crate::conversation::{Choice, Recognised};
use crate::dialect::{Fired, Happened, Library, Unknown};
use crate::jsonrpc::{Frame, Side};

/// The conversation with both sides translated.
#[derive(Debug)]
pub(super) struct Repairs {
    library: Arc<Library>,
    pair: Pair,
    canonical: Conversation,
    recognised: [Option<Recognised>; 2],
    heard: [bool; 2],
    /// The result of the last message.
    last: Last,
}

#[derive(Debug, Default)]
struct Last {
    rules: Vec<Remedy>,
    /// The dialect it was read as.
    reader: String,
    /// The violations that remain after the rules.
    left: Vec<Deviation>,
}

impl Repairs {
    /// # Errors
    /// A dialect is not known.
    pub(super) fn new(
        library: &Arc<Library>,
        client: &Choice,
        agent: &Choice,
        one_sided: bool,
    ) -> Result<Self, Unknown> {
        Ok(Self {
            library: Arc::clone(library),
            pair: Pair::new(library, client, agent)?,
            canonical: Conversation::new(one_sided),
            recognised: [None, None],
            heard: [false; 2],
            last: Last::default(),
        })
    }

    /// The dialect that a side's messages were read as, and by what it was recognised; `None` for a
    /// side without messages.
    pub(super) fn dialect(&self, side: Side) -> Option<(&str, Option<&Recognised>)> {
        let recognised = self.recognised[side as usize].as_ref();
        self.heard[side as usize].then(|| (self.pair.dialect(side), recognised))
    }

    fn why(&self, dialect: &str, rule: &str) -> String {
        let table = self.library.table(dialect).ok();
        let rules = table.into_iter().flat_map(|table| &table.rules);
        let found = rules.into_iter().find(|known| *known.id == *rule);
        found.map_or_else(String::new, |rule| rule.why.clone())
    }
}

impl Remedies for Repairs {
    fn hear(&mut self, from: Option<Side>, message: &Frame) {
        self.last = Last::default();
        let Some(from) = from else {
            // The sender's dialect is not known; the message is recorded to match its response.
            self.last.left = self.canonical.hear(None, message).deviations;
            return;
        };
        self.heard[from as usize] = true;
        let turn = self.pair.read(from, message);
        if let Some(found) = turn.recognised {
            self.recognised[from as usize] = Some(found);
        }
        for frame in &turn.stage.after {
            let verdict = self.canonical.hear(Some(from), frame);
            self.last.left.extend(verdict.deviations);
            // The other side's translation has to know what was requested of it.
            self.pair.write(from.other(), frame);
        }
        // A failed or denied translation is canonical, but is not a repair of the message.
        let failed = [Happened::Untranslatable, Happened::Permission];
        if turn
            .stage
            .notes
            .iter()
            .any(|note| failed.contains(&note.what))
        {
            return;
        }
        let remedy = |fired: &Fired| Remedy {
            rule: fired.to_string(),
            why: self.why(&fired.dialect, &fired.rule),
        };
        self.last.rules = turn.stage.fired.iter().map(remedy).collect();
        self.last.reader = turn.stage.dialect;
    }

    fn rules(&self, deviation: &Deviation) -> Vec<Remedy> {
        if deviation.stays_in(&self.last.left) {
            return Vec::new();
        }
        if deviation.pointer == "/jsonrpc" && deviation.kind == Kind::MissingMember {
            return vec![Remedy {
                rule: self.last.reader.clone(),
                why: "Messages that are read without `jsonrpc` are forwarded with it.".to_owned(),
            }];
        }
        self.last.rules.clone()
    }
}
