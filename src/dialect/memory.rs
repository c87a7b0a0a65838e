//! What is remembered of a conversation, weighed by the memory that it takes, not by its length.
//!
//! The owner of all translations of a conversation weighs them now and then, and lets them forget
//! while they weigh too much.

use hashlink::LinkedHashMap;

/// What an entry of a map needs beside its key and its value, in bytes.
pub(super) const ENTRY: usize = 64;

/// What is remembered of one session.
pub(super) trait Remembered {
    /// The memory behind it, in bytes.
    fn weight(&self) -> usize;
    /// Forgets what later messages can be translated without, if less well.
    fn forget(&mut self);
}

/// Lets sessions forget, one after the other, until that has freed `excess` bytes, which it lowers
/// by what was freed. Returns how many had something to forget.
pub(super) fn forget<S: Remembered>(
    all: &mut LinkedHashMap<Box<str>, S>,
    excess: &mut usize,
) -> usize {
    let mut forgotten = 0;
    for session in all.values_mut() {
        if *excess == 0 {
            break;
        }
        let before = session.weight();
        session.forget();
        let freed = before.saturating_sub(session.weight());
        *excess = excess.saturating_sub(freed);
        forgotten += usize::from(freed > 0);
    }
    forgotten
}

/// The weight of sessions by their ids, which the sessions may contain, too.
pub(super) fn sessions<S: Remembered>(all: &LinkedHashMap<Box<str>, S>) -> usize {
    all.iter()
        .map(|(id, session)| ENTRY + size_of::<S>() + 3 * id.len() + session.weight())
        .sum()
}

/// The capacity of a text, if there is one.
pub(super) fn text(text: Option<&String>) -> usize {
    text.map_or(0, String::capacity)
}
