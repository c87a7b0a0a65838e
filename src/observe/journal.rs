//! Logs notes, with a limit for each kind.
//!
//! Message bodies are never logged; of a line that is not JSON, the beginning is. `counts` counts
//! the notes.

use super::{Sight, Tap};
use crate::conversation::{Happened, Note};

/// How many notes of one name a conversation logs; further ones are only counted.
const LOGGED: u64 = 10;

/// The observer that writes notes to the log.
#[derive(Debug, Default)]
pub struct Journal {
    seen: [u64; Note::NAMES.len()],
    /// Notes about dialects, by kind.
    happened: [u64; Happened::ALL.len()],
}

impl Tap for Journal {
    fn see(&mut self, sight: &Sight<'_>) {
        let Sight::Note(note) = sight else { return };
        let (seen, name) = match note {
            // One line for each translated message, at the level debug.
            Note::Translated { .. } => {
                tracing::debug!(note = note.name(), "{note}");
                return;
            }
            Note::Dialect { what, .. } => (&mut self.happened[*what as usize], what.name()),
            _ => (&mut self.seen[note.index()], note.name()),
        };
        *seen += 1;
        let line = match note {
            Note::Stray { excerpt, .. } if !excerpt.is_empty() => format!(": {excerpt}"),
            _ => String::new(),
        };
        if *seen > LOGGED || is_detail(note) {
            tracing::debug!(note = name, "{note}{line}");
            return;
        }
        let last = (*seen == LOGGED).then_some("; more of this kind are counted, not logged");
        let last = last.unwrap_or_default();
        if is_expected(note) {
            tracing::info!(note = name, "{note}{line}{last}");
        } else {
            tracing::warn!(note = name, "{note}{line}{last}");
        }
    }
}

/// Whether nothing was lost.
const fn is_detail(note: &Note) -> bool {
    let Note::Dialect { what, .. } = note else {
        return false;
    };
    matches!(
        what,
        Happened::Unmatched | Happened::UnknownMember | Happened::UnknownMethod
    )
}

/// Whether the note is part of normal operation.
const fn is_expected(note: &Note) -> bool {
    match note {
        Note::Ended { lost: false, .. }
        | Note::AgentExited { .. }
        | Note::Complaint { .. }
        | Note::RestoredId { .. }
        | Note::Recognised { .. }
        | Note::Adjusted { .. } => true,
        Note::Dialect { what, .. } => matches!(
            what,
            Happened::Answered | Happened::Swallowed | Happened::Held
        ),
        _ => false,
    }
}
