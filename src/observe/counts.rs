//! Counts the messages and bytes of each way, the notes of each kind, and the effects of each rule.
//!
//! Every label is defined here or in a mapping table; none comes from a peer.

use std::fmt;

use super::{Event, Observer};
use conversation::Note;
use jsonrpc::Side;

/// The counts of one conversation; the observer that counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    received: [Traffic; 2],
    sent: [Traffic; 2],
    notes: NoteCounts,
    rules: RuleCounts,
}

/// A count for each kind of note, by [`Note::index`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NoteCounts(pub(super) [u64; Note::NAMES.len()]);

/// What happened in the sides' dialects. Searched, not hashed: a conversation uses some ten rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RuleCounts(pub(super) Vec<RuleCount>);

/// How often something happened in a dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCount {
    /// The side that uses it.
    pub side: Side,
    /// `translated`, or the event, as [`conversation::DialectEvent`] names it.
    pub what: &'static str,
    /// The dialect, or the table of the rule that translated.
    pub dialect: String,
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

impl Default for NoteCounts {
    fn default() -> Self {
        Self([0; Note::NAMES.len()])
    }
}

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
        let all = Note::NAMES.into_iter().zip(self.notes.0);
        all.filter(|(_, count)| *count > 0)
    }

    /// What happened in the sides' dialects, by rule.
    #[must_use]
    pub fn rules(&self) -> &[RuleCount] {
        &self.rules.0
    }

    /// Counts a note; also one about what happens after the conversation.
    pub fn add(&mut self, note: &Note) {
        self.notes.0[note.index()] += 1;
        self.rules.add(note);
    }

    /// How often the note with this name occurred.
    #[must_use]
    pub fn note(&self, name: &str) -> u64 {
        let mut notes = self.notes().filter(|(known, _)| *known == name);
        notes.next().map_or(0, |(_, count)| count)
    }
}

impl RuleCounts {
    /// Counts a note, if it is about a dialect.
    pub(super) fn add(&mut self, note: &Note) {
        match note {
            Note::Translated { side, rules, .. } => {
                for rule in rules {
                    self.add_one(*side, note.name(), &rule.dialect, rule.to_string());
                }
            }
            Note::Dialect {
                side,
                what,
                dialect,
                rule,
                ..
            } => {
                let rule = rule.as_ref().unwrap_or(dialect).clone();
                self.add_one(*side, what.name(), dialect, rule);
            }
            _ => {}
        }
    }

    fn add_one(&mut self, side: Side, what: &'static str, dialect: &str, rule: String) {
        let same = |one: &&mut RuleCount| {
            one.side == side && one.what == what && one.rule == rule && one.dialect == dialect
        };
        match self.0.iter_mut().find(same) {
            Some(known) => known.count += 1,
            None => self.0.push(RuleCount {
                side,
                what,
                dialect: dialect.to_owned(),
                rule,
                count: 1,
            }),
        }
    }
}

impl Traffic {
    const fn add(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }
}

impl Observer for Counts {
    #[inline]
    fn on_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Received(from, frame) => self.received[*from as usize].add(frame.len()),
            Event::Sent(to, frame) => self.sent[*to as usize].add(frame.len()),
            Event::Note(note) => self.add(note),
            _ => {}
        }
    }
}

impl fmt::Display for RuleCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (side, what, rule, count) = (self.side, self.what, &self.rule, self.count);
        write!(f, "{side} {what} {rule} {count}")
    }
}
