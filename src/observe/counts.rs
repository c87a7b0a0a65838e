//! Counts the messages and bytes of each way, the notes of each kind, and the effects of each rule.
//!
//! Every label is defined here or in a mapping table; none comes from a peer.

use std::fmt;

use super::{Event, Observer};
use crate::conversation::{FiredRule, Note};
use crate::jsonrpc::Side;

/// The counts of one conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    received: [Traffic; 2],
    sent: [Traffic; 2],
    notes: [u64; Note::NAMES.len()],
    rules: Vec<RuleCount>,
}

/// How often something happened in a dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCount {
    /// The side that uses it.
    pub side: Side,
    /// `translated`, or the event, as [`crate::conversation::DialectEvent`] names it.
    pub what: &'static str,
    /// The rule, as `table/rule`; the dialect alone if no rule was involved.
    pub rule: String,
    /// The number of messages it happened to.
    pub count: u64,
}

/// Messages and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages.
    pub frames: u64,
    /// Bytes of those messages, without their framing.
    pub bytes: u64,
}

/// The observer that counts.
#[derive(Debug, Default)]
pub struct MessageCounter(Counts);

impl Counts {
    /// What was received from `side`.
    #[must_use]
    pub const fn received(&self, side: Side) -> Traffic {
        self.received[side as usize]
    }

    /// What was sent to `side`.
    #[must_use]
    pub const fn sent(&self, side: Side) -> Traffic {
        self.sent[side as usize]
    }

    /// The notes that occurred, by name.
    pub fn notes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Note::NAMES
            .into_iter()
            .zip(self.notes)
            .filter(|(_, count)| *count > 0)
    }

    /// What happened in the sides' dialects, by rule.
    #[must_use]
    pub fn rules(&self) -> &[RuleCount] {
        &self.rules
    }

    /// Counts a note; also one about what happens after the conversation.
    pub fn add(&mut self, note: &Note) {
        self.notes[note.index()] += 1;
        self.add_dialect_note(note);
    }

    fn add_dialect_note(&mut self, note: &Note) {
        match note {
            Note::Translated { side, rules, .. } => {
                for rule in rules {
                    self.add_rule(*side, note.name(), rule);
                }
            }
            Note::Dialect {
                side,
                what,
                dialect,
                rule,
                ..
            } => self.add_rule(*side, what.name(), &rule.as_deref().unwrap_or(dialect)),
            _ => {}
        }
    }

    /// A list is searched, without a hash: a conversation uses some ten rules, and counting a known
    /// one allocates nothing.
    fn add_rule(&mut self, side: Side, what: &'static str, rule: &dyn Label) {
        let known = |tally: &&mut RuleCount| {
            tally.side == side && tally.what == what && rule.is(&tally.rule)
        };
        match self.rules.iter_mut().find(known) {
            Some(tally) => tally.count += 1,
            None => self.rules.push(RuleCount {
                side,
                what,
                rule: rule.to_string(),
                count: 1,
            }),
        }
    }

    /// How often the note with this name occurred.
    #[must_use]
    pub fn note(&self, name: &str) -> u64 {
        self.notes()
            .find_map(|(known, count)| (known == name).then_some(count))
            .unwrap_or(0)
    }
}

impl MessageCounter {
    /// What has been counted so far.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.0
    }
}

impl Traffic {
    const fn add(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }
}

impl Observer for MessageCounter {
    fn on_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Received(from, frame) => self.0.received[*from as usize].add(frame.len()),
            Event::Sent(to, frame) => self.0.sent[*to as usize].add(frame.len()),
            Event::Note(note) => self.0.add(note),
            _ => {}
        }
    }
}

/// What a [`RuleCount`] is counted by.
trait Label: fmt::Display {
    /// Whether `text` is the written form of this label.
    fn is(&self, text: &str) -> bool;
}

impl Label for FiredRule {
    fn is(&self, text: &str) -> bool {
        let rule = text.strip_prefix(&*self.dialect);
        rule.and_then(|rest| rest.strip_prefix('/')) == Some(&*self.rule)
    }
}

impl Label for &str {
    fn is(&self, text: &str) -> bool {
        *self == text
    }
}

impl fmt::Display for RuleCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            side,
            what,
            rule,
            count,
        } = self;
        write!(f, "{side} {what} {rule} {count}")
    }
}
