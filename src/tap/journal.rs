//! Writes notes to the log, but never more of one kind than a person would read.
//!
//! Message bodies are never logged. Not here: what is counted (see `meter`).

use super::{Sight, Tap};
use crate::core::Note;

/// How many notes of one name are logged before a conversation only counts them.
const LOGGED: u64 = 10;

/// The tap that logs.
#[derive(Debug, Default)]
pub struct Journal {
    seen: [u64; Note::NAMES.len()],
}

impl Tap for Journal {
    fn see(&mut self, sight: &Sight<'_>) {
        let Sight::Note(note) = sight else { return };
        let seen = &mut self.seen[note.index()];
        *seen += 1;
        if *seen > LOGGED {
            tracing::debug!(note = note.name(), "{note}");
            return;
        }
        match note {
            Note::Ended { .. }
            | Note::AgentExited { .. }
            | Note::Complaint { .. }
            | Note::RestoredId { .. } => {
                tracing::info!(note = note.name(), "{note}");
            }
            _ => tracing::warn!(note = note.name(), "{note}"),
        }
        if *seen == LOGGED {
            tracing::warn!(
                note = note.name(),
                "further notes of this kind are counted, not logged"
            );
        }
    }
}
