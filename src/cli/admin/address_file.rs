//! Announces the admin listener of a running relay to commands of the same user: a file with its
//! address, named after the process id.

use std::io;

use super::address::AdminAddress;
use crate::cli::announcement::Announcement;

/// The folder of the files.
const FOLDER: &str = "admin";

/// Announces the address of this process's listener.
pub(super) fn create(place: &AdminAddress) -> io::Result<Announcement> {
    let name = std::process::id().to_string();
    Announcement::create(FOLDER, &name, &format!("{place}\n"))
}

/// The admin listeners of this user's relays, with process ids.
pub(super) fn find() -> Vec<(u32, AdminAddress)> {
    let announced = Announcement::all(FOLDER).into_iter();
    let read = |(name, text): (String, String)| {
        let address = text.trim_end().parse().ok()?;
        Some((name.parse().ok()?, address))
    };
    let mut found: Vec<_> = announced.filter_map(read).collect();
    found.sort_by_key(|(process, _)| *process);
    found
}
