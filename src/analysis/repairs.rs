//! Which rules repair what `check` finds: the conversation as the relay would forward it.
//!
//! Each message is translated from its sender's dialect, and the result is checked against the
//! schema, too. A violation that is absent from the result was repaired by the rules that changed
//! the message.

use std::sync::Arc;

use super::lint::Remedy;
use acp::{Checker, Violation, ViolationKind};
use conversation::offline::TranslatorPair;
use conversation::{Detection, DialectChoice};
use dialect::versions::V2_DIALECT;
use dialect::{DialectError, DialectEvent, FiredRule, Library};
use jsonrpc::{Frame, Side};

/// The conversation with both sides translated.
#[derive(Debug)]
pub struct Repairs {
    library: Arc<Library>,
    pair: TranslatorPair,
    canonical: Checker,
    recognised: [Option<Detection>; 2],
    received: [bool; 2],
    /// The sides that speak v2, which no rule repairs.
    v2: [bool; 2],
    /// The result of the last message.
    last_result: LastResult,
}

#[derive(Debug, Default)]
struct LastResult {
    rules: Vec<Remedy>,
    /// The dialect it was read as.
    reader: String,
    /// The violations that remain after the rules.
    left: Vec<Violation>,
}

impl Repairs {
    /// For a client and an agent that speak these dialects; `one_sided`: only one of them is heard.
    ///
    /// # Errors
    /// A dialect is not known.
    pub fn new(
        library: &Arc<Library>,
        client: &DialectChoice,
        agent: &DialectChoice,
        one_sided: bool,
    ) -> Result<Self, DialectError> {
        Ok(Self {
            library: Arc::clone(library),
            pair: TranslatorPair::new(library, client, agent)?,
            canonical: Checker::new(one_sided),
            recognised: [None, None],
            received: [false; 2],
            v2: [false; 2],
            last_result: LastResult::default(),
        })
    }

    /// The dialect that a side's messages were read as, and by what it was recognised; `None` for a
    /// side without messages.
    pub fn dialect(&self, side: Side) -> Option<(&str, Option<&Detection>)> {
        if self.v2[side as usize] {
            return Some((V2_DIALECT, None));
        }
        let recognised = self.recognised[side as usize].as_ref();
        self.received[side as usize].then(|| (self.pair.dialect(side), recognised))
    }

    /// Passes over a message of a side that speaks v2.
    pub fn skip(&mut self, from: Side) {
        self.last_result = LastResult::default();
        self.v2[from as usize] = true;
    }

    /// Receives every other message of the conversation, in order, before [`Repairs::rules`] is called
    /// for it.
    pub fn receive(&mut self, from: Option<Side>, message: &Frame) {
        self.last_result = LastResult::default();
        let Some(from) = from else {
            // The sender's dialect is not known; the message is recorded to match its response.
            self.last_result.left = self.canonical.check(None, message).violations;
            return;
        };
        self.received[from as usize] = true;
        let turn = self.pair.read(from, message);
        if let Some(found) = turn.recognised {
            self.recognised[from as usize] = Some(found);
        }
        for frame in &turn.after {
            let verdict = self.canonical.check(Some(from), frame);
            self.last_result.left.extend(verdict.violations);
            // The other side's translation needs the request.
            self.pair.write(from.other(), frame);
        }
        // A failed or denied translation is canonical, but is not a repair of the message.
        let failed = [DialectEvent::Untranslatable, DialectEvent::Permission];
        let mut notes = turn.outcome.notes.iter();
        if notes.any(|note| failed.contains(&note.what)) {
            return;
        }
        let remedy = |fired: &FiredRule| {
            let rule = self.library.rule(&fired.dialect, &fired.rule);
            let why = rule.map(|rule| rule.why.clone()).unwrap_or_default();
            Remedy {
                rule: fired.to_string(),
                why,
            }
        };
        self.last_result.rules = turn.outcome.fired.iter().map(remedy).collect();
        self.last_result.reader = turn.dialect;
    }

    /// The rules that repair `violation` in the last message, in the order in which they apply;
    /// none when it remains.
    pub fn rules(&self, violation: &Violation) -> Vec<Remedy> {
        if violation.remains_in(&self.last_result.left) {
            return Vec::new();
        }
        if violation.pointer == "/jsonrpc" && violation.kind == ViolationKind::MissingMember {
            return vec![Remedy {
                rule: self.last_result.reader.clone(),
                why: "Messages that are read without `jsonrpc` are forwarded with it.".to_owned(),
            }];
        }
        self.last_result.rules.clone()
    }
}
