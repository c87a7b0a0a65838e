//! What was found in lines with something else and may still become messages.

use std::time::Instant;

/// What waits.
#[derive(Debug, Default)]
pub(super) struct Salvage {
    /// An object that the end of a line has cut, by side: its lines so far, and until when the others
    /// are waited for.
    pub(super) cut: [Option<(Vec<u8>, Instant)>; 2],
    /// Such an object is being given up, and its lines are taken as they are.
    pub(super) gives_up: bool,
    /// When the answers in other text are due, which are kept with their requests, and their weights.
    pub(super) offers: Vec<(Instant, usize)>,
}

impl Salvage {
    /// When something is to be done.
    pub(super) fn due(&self) -> Option<Instant> {
        let cut = self.cut.iter().flatten().map(|(_, until)| *until);
        self.offers.iter().map(|(due, _)| *due).chain(cut).min()
    }
}
