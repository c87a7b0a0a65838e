//! The processes below a process, by the parent links in `/proc` (Linux).

use std::fs;
use std::io;

use super::entry::{Entry, lookup};

/// All living processes below `top`, parents before their children; none where there is no `/proc`.
/// A process that comes, ends or loses its parent meanwhile may be missing.
pub(super) fn below(top: u32) -> Vec<Entry> {
    let mut found = children(top);
    let mut next = 0;
    while let Some(entry) = found.get(next) {
        found.extend(children(entry.pid));
        next += 1;
    }
    found.retain(|entry| entry.alive);
    found
}

/// The children of `parent`, living and dead.
pub(super) fn children(parent: u32) -> Vec<Entry> {
    let mut found = listed_children(parent).unwrap_or_else(|_| scan());
    found.retain(|entry| entry.parent == parent);
    found
}

/// The children of all threads of `parent`, by the lists that Linux keeps: at a cost that does not
/// depend on the other processes of the machine.
///
/// # Errors
/// When the kernel has no such lists.
fn listed_children(parent: u32) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    // Without threads it has ended.
    for thread in fs::read_dir(format!("/proc/{parent}/task"))
        .into_iter()
        .flatten()
    {
        let thread = thread?.path();
        match fs::read_to_string(thread.join("children")) {
            Ok(list) => {
                let numbers = list.split_ascii_whitespace().filter_map(|n| n.parse().ok());
                found.extend(numbers.filter_map(lookup));
            }
            Err(error) if thread.exists() => return Err(error),
            Err(_) => {}
        }
    }
    Ok(found)
}

/// All processes of the machine.
fn scan() -> Vec<Entry> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    names
        .filter_map(|name| lookup(name.file_name().to_str()?.parse().ok()?))
        .collect()
}
