//! The processes below a process, by the parent links in `/proc` (Linux).

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::sync::LazyLock;

use rustix::process::{Pid, Signal};

/// Whether the kernel lists the children of a process: at a cost that does not depend on the other
/// processes of the machine.
static LISTS_CHILDREN: LazyLock<bool> =
    LazyLock::new(|| Path::new("/proc/thread-self/children").exists());

/// The entry of one process in `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its number.
    pub(super) pid: u32,
    /// When it started, in clock ticks since boot: later processes may have the same number.
    start: u64,
    parent: u32,
    /// Its process group.
    pub(super) group: u32,
    /// Whether it still runs; else it waits to be reaped.
    pub(super) alive: bool,
}

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

/// The parent of a process.
pub(super) fn parent(of: Pid) -> Option<u32> {
    lookup(of.as_raw_pid().unsigned_abs()).map(|entry| entry.parent)
}

/// The children of `parent`, living and dead.
pub(super) fn children(parent: u32) -> Vec<Entry> {
    let names = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten();
    let lists: Vec<String> = if *LISTS_CHILDREN {
        names(&format!("/proc/{parent}/task"))
            .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
            .collect()
    } else {
        let all = names("/proc").filter_map(|process| process.file_name().into_string().ok());
        all.collect()
    };
    let numbers = lists.iter().flat_map(|list| list.split_ascii_whitespace());
    numbers
        .filter_map(|number| lookup(number.parse().ok()?))
        .filter(|entry| entry.parent == parent)
        .collect()
}

impl Entry {
    /// Signals this process, and no other that has its number by now. It may be gone.
    pub(super) fn signal(self, signal: Signal) {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return;
        };
        // The descriptor stands for one process for ever, so checking after opening is exact.
        #[cfg(target_os = "linux")]
        let process = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty());
        if lookup(self.pid).is_none_or(|now| now.start != self.start) {
            return;
        }
        #[cfg(target_os = "linux")]
        if let Ok(process) = process {
            let _ = rustix::process::pidfd_send_signal(process, signal);
            return;
        }
        // Kernels before 5.3, and no descriptor left.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Reads the entry of one process.
fn lookup(pid: u32) -> Option<Entry> {
    // One read gives all of it: at most 15 bytes of name and 51 numbers.
    let mut text = [0; 1536];
    let mut file = File::open(format!("/proc/{pid}/stat")).ok()?;
    let length = file.read(&mut text).ok()?;
    parse(pid, &text[..length])
}

/// Reads a line of `/proc/PID/stat`, proc(5). The name stands in parentheses and may hold any
/// byte, also spaces, parentheses and line ends; nothing after it holds a parenthesis.
fn parse(pid: u32, stat: &[u8]) -> Option<Entry> {
    let close = memchr::memrchr(b')', stat)?;
    let rest = std::str::from_utf8(&stat[close + 1..]).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Counted from the state, which is field 3 in proc(5).
    let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
    let ended = matches!(*fields.first()?, "Z" | "X" | "x");
    Some(Entry {
        pid,
        start: number(19)?,
        parent: number(1)?.try_into().ok()?,
        group: number(2)?.try_into().ok()?,
        // A process whose first thread alone has ended looks like a zombie, but runs.
        alive: !ended || number(17)? > 1,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_name_and_any_text_are_read(name in proptest::collection::vec(any::<u8>(), 0..99)) {
            let _ = parse(1, &name);
            let mut line = b"77 (".to_vec();
            line.extend(&name);
            line.extend(b") S 5 6 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 4242 1 2\n");
            let expected = Entry { pid: 77, start: 4242, parent: 5, group: 6, alive: true };
            prop_assert_eq!(parse(77, &line), Some(expected));
        }
    }
}
