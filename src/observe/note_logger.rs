//! Logs notes, with a limit for each kind. What is lost or made up between two versions of ACP is
//! logged once for each event and rule, for one rule may drop something with every message.
//!
//! Message bodies are never logged; of a line that is not JSON, the beginning is.

use std::collections::HashSet;

use super::counts::NoteCounts;
use super::{Event, Observer};
use conversation::{DialectEvent, Note, V2_DIALECT};

/// How many notes of one name a conversation logs; further ones are logged at the level debug.
const MAX_LOGGED: u64 = 10;

/// How many conversions between versions and reasons for denials a conversation logs, each once.
const MAX_ONCE: usize = 64;

/// The observer that writes notes to the log.
#[derive(Debug, Default)]
pub struct NoteLogger {
    notes: NoteCounts,
    /// Notes about dialects, by kind.
    dialect_notes: [u64; DialectEvent::ALL.len()],
    /// The conversions between versions, and the reasons for denials, that were logged.
    once: HashSet<(&'static str, String)>,
}

impl Observer for NoteLogger {
    fn on_event(&mut self, event: &Event<'_>) {
        let Event::Note(note) = event else { return };
        let (count, name) = match note {
            // One line for each translated message, at the level debug.
            Note::Translated { .. } => {
                tracing::debug!(note = note.name(), "{note}");
                return;
            }
            Note::Dialect { what, .. } => (&mut self.dialect_notes[*what as usize], what.name()),
            _ => (&mut self.notes.0[note.index()], note.name()),
        };
        *count += 1;
        if let Some(text) = once(note) {
            let is_new = self.once.len() < MAX_ONCE && self.once.insert((name, text.to_owned()));
            match (is_new, is_expected(note)) {
                (true, true) => tracing::info!(note = name, "{note}"),
                (true, false) => tracing::warn!(note = name, "{note}"),
                (false, _) => tracing::debug!(note = name, "{note}"),
            }
            return;
        }
        let excerpt = match note {
            Note::Stray { excerpt, .. } if !excerpt.is_empty() => format!(": {excerpt}"),
            _ => String::new(),
        };
        let most = match note {
            Note::Skipped { .. } | Note::Salvaged { .. } => 1,
            _ => MAX_LOGGED,
        };
        if *count > most || is_debug_only(note) {
            tracing::debug!(note = name, "{note}{excerpt}");
            return;
        }
        let notice = (*count == most).then_some("; more of this kind are logged at level debug");
        let notice = notice.unwrap_or_default();
        if is_expected(note) {
            tracing::info!(note = name, "{note}{excerpt}{notice}");
        } else {
            tracing::warn!(note = name, "{note}{excerpt}{notice}");
        }
    }
}

/// What tells a note from others of its name that are logged as well: the rule of a conversion between
/// versions, or the reason for a denial.
fn once(note: &Note) -> Option<&str> {
    match note {
        Note::Denied { why, .. } => Some(why),
        Note::Dialect {
            dialect,
            rule: Some(rule),
            ..
        } if dialect == V2_DIALECT => Some(rule),
        _ => None,
    }
}

/// Whether the note is logged at the level debug only: the message was forwarded unchanged.
const fn is_debug_only(note: &Note) -> bool {
    let Note::Dialect { what, .. } = note else {
        return false;
    };
    matches!(
        what,
        DialectEvent::Unmatched | DialectEvent::UnknownMember | DialectEvent::UnknownMethod
    )
}

/// Whether the note is part of normal operation.
const fn is_expected(note: &Note) -> bool {
    match note {
        Note::Ended { lost: false, .. }
        | Note::AgentExited { .. }
        | Note::ErrorWithoutId { .. }
        | Note::RestoredId { .. }
        | Note::Recognised { .. }
        | Note::Adjusted { .. }
        | Note::LinkStatus { .. }
        | Note::LateAnswer { .. }
        | Note::Heard { .. }
        | Note::SessionRestored
        | Note::RepeatedUpdate
        | Note::HeldUpdate => true,
        Note::Dialect { what, .. } => matches!(
            what,
            DialectEvent::Answered
                | DialectEvent::Emulated
                | DialectEvent::Swallowed
                | DialectEvent::Held
        ),
        _ => false,
    }
}
