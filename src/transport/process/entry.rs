//! The entry of one process in `/proc`.

use std::fs::File;
use std::io::Read as _;

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

/// The entry of one process in `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its number.
    pub(super) pid: u32,
    /// When it started, in clock ticks since boot: later processes may have the same number.
    start: u64,
    /// Its parent.
    pub(super) parent: u32,
    /// Its process group.
    pub(super) group: u32,
    /// Whether it still runs; else it waits to be reaped.
    pub(super) alive: bool,
}

impl Entry {
    /// Signals this process, and no other that has its number by now.
    ///
    /// # Errors
    /// `SRCH` when it is gone, `PERM` when it changed its user.
    pub(super) fn signal(self, signal: Signal) -> Result<(), Errno> {
        let pid = (i32::try_from(self.pid).ok().and_then(Pid::from_raw)).ok_or(Errno::SRCH)?;
        #[cfg(target_os = "linux")]
        match rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
            // The descriptor stands for one process for ever, so checking after opening is exact.
            Ok(fd) if self.is_current() => {
                return rustix::process::pidfd_send_signal(&fd, signal);
            }
            Ok(_) => return Err(Errno::SRCH),
            // Kernels before 5.3, and no descriptor left.
            Err(Errno::NOSYS | Errno::MFILE | Errno::NFILE) => {}
            Err(errno) => return Err(errno),
        }
        if !self.is_current() {
            return Err(Errno::SRCH);
        }
        rustix::process::kill_process(pid, signal)
    }

    /// Whether its number is still its own.
    fn is_current(self) -> bool {
        lookup(self.pid).is_some_and(|now| now.start == self.start)
    }
}

/// Reads the entry of one process.
pub(super) fn lookup(pid: u32) -> Option<Entry> {
    // One read gives all of it: at most 15 bytes of name and 51 numbers.
    let mut text = [0; 1536];
    let length = File::open(format!("/proc/{pid}/stat"))
        .ok()?
        .read(&mut text)
        .ok()?;
    parse(&text[..length])
}

/// Reads a line of `/proc/PID/stat`, proc(5). The name stands in parentheses and may hold any
/// byte, also spaces, parentheses and line ends; nothing after it holds a parenthesis.
fn parse(stat: &[u8]) -> Option<Entry> {
    let open = stat.iter().position(|&byte| byte == b'(')?;
    let close = stat.iter().rposition(|&byte| byte == b')')?;
    let pid = std::str::from_utf8(&stat[..open]).ok()?;
    let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let ended = matches!(*fields.first()?, "Z" | "X" | "x");
    // Counted from the state, which is field 3 in proc(5).
    let threads: u32 = fields.get(17)?.parse().ok()?;
    Some(Entry {
        pid: pid.trim().parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        // A process whose first thread alone has ended looks like a zombie, but runs.
        alive: !ended || threads > 1,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_name_is_read_past(name in proptest::collection::vec(any::<u8>(), 0..16)) {
            let mut line = b"77 (".to_vec();
            line.extend(&name);
            line.extend(b") S 5 6 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 4242 1 2\n");
            let entry = parse(&line).unwrap();
            prop_assert_eq!((entry.pid, entry.start), (77, 4242));
            prop_assert_eq!((entry.parent, entry.group, entry.alive), (5, 6, true));
        }

        #[test]
        fn any_text_is_survived(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&text);
        }
    }
}
