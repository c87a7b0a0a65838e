//! Counts what passes: messages and bytes each way, and every kind of note.
//!
//! Not here: showing the figures to anybody.

use super::{Sight, Tap};
use crate::core::Note;
use crate::wire::Side;

/// The figures of one conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    heard: [Flow; 2],
    said: [Flow; 2],
    notes: [u64; Note::NAMES.len()],
}

/// Messages and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Messages.
    pub frames: u64,
    /// Bytes of those messages, without their framing.
    pub bytes: u64,
}

/// The tap that counts.
#[derive(Debug, Default)]
pub struct Meter(Counts);

impl Counts {
    /// What `side` said to us.
    #[must_use]
    pub const fn heard(&self, side: Side) -> Flow {
        self.heard[side as usize]
    }

    /// What we said to `side`.
    #[must_use]
    pub const fn said(&self, side: Side) -> Flow {
        self.said[side as usize]
    }

    /// The notes that occurred, by name.
    pub fn notes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Note::NAMES
            .into_iter()
            .zip(self.notes)
            .filter(|(_, count)| *count > 0)
    }

    /// How often the note called `name` occurred.
    #[must_use]
    pub fn note(&self, name: &str) -> u64 {
        self.notes()
            .find_map(|(known, count)| (known == name).then_some(count))
            .unwrap_or(0)
    }
}

impl Meter {
    /// What has been counted so far.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.0
    }
}

impl Flow {
    const fn add(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }
}

impl Tap for Meter {
    fn see(&mut self, sight: &Sight<'_>) {
        match sight {
            Sight::Heard(from, frame) => self.0.heard[*from as usize].add(frame.len()),
            Sight::Said(to, frame) => self.0.said[*to as usize].add(frame.len()),
            Sight::Note(note) => self.0.notes[note.index()] += 1,
        }
    }
}
