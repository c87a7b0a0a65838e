//! The mark by which the processes of an agent are recognized.
//!
//! A daemon has left its session, closed its files and lost its parent; what is left are properties
//! that the kernel passes from process to process and that programs do not change. The soft limit
//! on file locks (`RLIMIT_LOCKS`) is one: inherited by `fork`, kept by `exec`, shown in
//! `/proc/PID/limits`, and without any effect since Linux 2.4.25, see getrlimit(2). So while an
//! agent is being started, the relay's own limit is a number that identifies this relay and this
//! agent, and all descendants of the agent have it from their first moment.
//!
//! It is a name and no fence: a program that sets the limit is unmarked. (`sudo` may do that.)
//! Where the limit cannot be set there are no marks. `reaper` and `watchdog` handle unmarked
//! processes.

use std::fs::File;
use std::io::Read;

use super::tree::ProcessId;
#[cfg(target_os = "linux")]
pub(super) use linux::MarkGuard;

/// Bits of the agent's number. A later agent of the same mark would be 16 million starts away.
const TICKET: u32 = 24;
/// Bits of the relay's process number: Linux has no larger ones (`PID_MAX_LIMIT`).
const PID: u32 = 22;
/// Bits of the relay's start time.
const START: u32 = 16;

/// The mark of the processes of one agent of one relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark(u64);

/// Marks are not supported.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(super) enum MarkGuard {}

impl Mark {
    /// The mark of the agent `ticket` of `relay`.
    pub(super) const fn new(relay: ProcessId, ticket: u64) -> Self {
        // The uppermost bit avoids numbers that may have been set as a limit.
        let relay_part = 1 << START | low_bits(relay.start, START);
        Self(
            (relay_part << PID | low_bits(relay.pid as u64, PID)) << TICKET
                | low_bits(ticket, TICKET),
        )
    }

    /// The mark of a process; `None` when it has none, or is gone.
    pub(super) fn of(pid: u32) -> Option<Self> {
        // About 1300 bytes, in one read.
        let mut text = [0; 4096];
        let length = File::open(format!("/proc/{pid}/limits"))
            .ok()?
            .read(&mut text)
            .ok()?;
        parse(&text[..length])
    }

    /// Whether it marks an agent of `relay`.
    pub(super) const fn is_from(self, relay: ProcessId) -> bool {
        self.0 >> TICKET == Self::new(relay, 0).0 >> TICKET
    }

    /// Marks the processes that this process starts from now on, until the guard is dropped; other
    /// callers wait for that. `None` when marking is not possible.
    pub(super) fn apply(self) -> Option<MarkGuard> {
        #[cfg(target_os = "linux")]
        return MarkGuard::new(self.0);
        #[cfg(not(target_os = "linux"))]
        return None;
    }
}

const fn low_bits(number: u64, bits: u32) -> u64 {
    number & ((1 << bits) - 1)
}

/// Reads `/proc/PID/limits`, proc(5).
fn parse(limits: &[u8]) -> Option<Mark> {
    let line = std::str::from_utf8(limits)
        .ok()?
        .lines()
        .find_map(|line| line.strip_prefix("Max file locks "))?;
    // "unlimited" is no number.
    let soft: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    (soft >> (START + PID + TICKET) == 1).then_some(Mark(soft))
}

#[cfg(target_os = "linux")]
mod linux {
    use parking_lot::{Mutex, MutexGuard};

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// The limit belongs to the whole process, so one start is marked at a time.
    static LOCK: Mutex<()> = Mutex::new(());

    /// While it exists, processes that this process starts are marked.
    #[derive(Debug)]
    pub(in super::super) struct MarkGuard {
        before: Rlimit,
        _lock: MutexGuard<'static, ()>,
    }

    impl MarkGuard {
        pub(super) fn new(mark: u64) -> Option<Self> {
            let lock = LOCK.lock();
            let before = getrlimit(Resource::Locks);
            let marked = Rlimit {
                current: Some(mark),
                maximum: before.maximum,
            };
            setrlimit(Resource::Locks, marked).ok()?;
            Some(Self {
                before,
                _lock: lock,
            })
        }
    }

    impl Drop for MarkGuard {
        fn drop(&mut self) {
            let before = Rlimit {
                current: self.before.current,
                maximum: self.before.maximum,
            };
            // It was so before, and the maximum was not lowered: this does not fail.
            let _ = setrlimit(Resource::Locks, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits(soft: &str) -> String {
        format!(
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max open files            20000                20000                files     \n\
             Max file locks            {soft:<20} unlimited            locks     \n\
             Max pending signals       96365                96365                signals   \n"
        )
    }

    #[test]
    fn invalid_marks_are_ignored() {
        for soft in ["unlimited", "0", "1024", "4611686018427387903", "x", ""] {
            assert_eq!(parse(limits(soft).as_bytes()), None, "{soft}");
        }
        assert_eq!(parse(b""), None);
    }

    proptest! {
        #[test]
        fn mark_is_parsed_with_relay_and_agent(
            pid in 1_u32..1 << 22, start: u64, ticket in 0_u64..1 << 24,
            other in (1_u32..1 << 22, 0_u64..1 << 16),
        ) {
            let relay = ProcessId { pid, start };
            let mark = Mark::new(relay, ticket);
            prop_assert_eq!(parse(limits(&mark.0.to_string()).as_bytes()), Some(mark));
            prop_assert!(mark.is_from(relay));
            prop_assert!(Mark::new(relay, ticket ^ 1) != mark);
            let other = ProcessId { pid: other.0, start: other.1 };
            let same = other.pid == pid && other.start == start % (1 << 16);
            prop_assert_eq!(mark.is_from(other), same);
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&text);
        }
    }
}
