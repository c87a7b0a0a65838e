//! Finds the processes below a process, and signals exactly those.
//!
//! A process group is not enough: agents leave daemons in sessions of their own, and a signal to a
//! bare number may hit another process that got the number meanwhile. So on Linux descendants are
//! found by the parent links in `/proc`, and a process is its number *and* its start time. Where
//! there is no `/proc`, [`ProcessTree::scan`] fails and callers are left with the group. `reaper`
//! and `watchdog` decide when to signal which process.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::walk;

/// How often new children are looked for while their parents are being stopped. Each round can only
/// find what was forked before the round before; three are rarely needed.
const ROUNDS: usize = 8;
/// How long to wait for stopped processes, in all. A process that waits for a device, or for a
/// child that has yet to run its program, does not stop before that.
const STOP_TIMEOUT: Duration = Duration::from_millis(100);
/// Pause between two checks whether they have stopped.
const STOP_POLL: Duration = Duration::from_micros(200);

/// One process, distinguished from a later one with the same number by its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProcessId {
    /// Its number.
    pub(super) pid: u32,
    /// When it started, in clock ticks since boot.
    pub(super) start: u64,
}

/// What `/proc` reports of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its number and start time.
    pub(super) id: ProcessId,
    /// Its parent.
    pub(super) parent: u32,
    /// Its process group.
    pub(super) group: u32,
    /// Whether it still runs; else it waits to be reaped.
    pub(super) alive: bool,
    /// Whether its first thread has stopped or ended.
    stopped: bool,
}

/// All processes of the machine at about one moment, or all below one.
#[derive(Debug, Default)]
pub(super) struct ProcessTree {
    entries: BTreeMap<u32, Entry>,
}

impl ProcessId {
    /// The process that has this number now.
    pub(super) fn of(pid: u32) -> Option<Self> {
        lookup(pid).map(|entry| entry.id)
    }

    /// Whether it has not exited.
    pub(super) fn is_alive(self) -> bool {
        lookup(self.pid).is_some_and(|entry| entry.id == self && entry.alive)
    }

    /// Signals this process, and no other that has its number by now.
    ///
    /// # Errors
    /// `SRCH` when it is gone, `PERM` when it changed its user.
    pub(super) fn signal(self, signal: Signal) -> Result<(), Errno> {
        let pid = to_pid(self.pid).ok_or(Errno::SRCH)?;
        #[cfg(target_os = "linux")]
        match rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
            // The descriptor refers to one process for ever, so checking after opening is exact.
            Ok(fd) if Self::of(self.pid) == Some(self) => {
                return rustix::process::pidfd_send_signal(&fd, signal);
            }
            Ok(_) => return Err(Errno::SRCH),
            // Kernels before 5.3, and no descriptor left.
            Err(Errno::NOSYS | Errno::MFILE | Errno::NFILE) => {}
            Err(errno) => return Err(errno),
        }
        if Self::of(self.pid) != Some(self) {
            return Err(Errno::SRCH);
        }
        rustix::process::kill_process(pid, signal)
    }
}

impl ProcessTree {
    /// Reads every process. Takes about ten microseconds for each, so not on a runtime thread.
    ///
    /// # Errors
    /// When `/proc` cannot be listed.
    pub(super) fn scan() -> io::Result<Self> {
        let mut entries = BTreeMap::new();
        for name in std::fs::read_dir("/proc")? {
            let name = name?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A process that ended since the listing is not needed.
            if let Some(entry) = lookup(pid) {
                entries.insert(pid, entry);
            }
        }
        Ok(Self { entries })
    }

    /// Reads `top` and all below it, or every process where the former is not possible or not
    /// cheaper; every process, too, when there is no `top`.
    ///
    /// # Errors
    /// When `/proc` cannot be listed.
    pub(super) fn scan_below(top: Option<u32>) -> io::Result<Self> {
        match top.and_then(walk::below) {
            Some(entries) => Ok(Self { entries }),
            None => Self::scan(),
        }
    }

    /// The living among `roots`, their process groups, and all descendants of those.
    pub(super) fn below(&self, roots: impl IntoIterator<Item = ProcessId>) -> BTreeSet<ProcessId> {
        self.descendants(roots).into_iter().collect()
    }

    /// The same, parents before their children.
    fn descendants(&self, roots: impl IntoIterator<Item = ProcessId>) -> Vec<ProcessId> {
        let mut todo: Vec<&Entry> = Vec::new();
        for root in roots {
            match self.entries.get(&root.pid) {
                // The number, and with it the group's, belongs to another process now.
                Some(entry) if entry.id != root => continue,
                _ => {}
            }
            let group = self.entries.values().filter(|e| e.group == root.pid);
            todo.extend(group.filter(|entry| entry.id != root));
            // The last is taken first: most of its group descends from it.
            todo.extend(self.entries.get(&root.pid));
        }
        if todo.is_empty() {
            return Vec::new();
        }
        let mut children: BTreeMap<u32, Vec<&Entry>> = BTreeMap::new();
        for entry in self.entries.values() {
            children.entry(entry.parent).or_default().push(entry);
        }
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        while let Some(entry) = todo.pop() {
            if entry.alive && seen.insert(entry.id) {
                found.push(entry.id);
                todo.extend(children.get(&entry.id.pid).into_iter().flatten());
            }
        }
        found
    }

    /// The children of `pid`, living and dead.
    pub(super) fn children(&self, pid: u32) -> impl Iterator<Item = &Entry> {
        self.entries.values().filter(move |e| e.parent == pid)
    }

    /// All processes.
    pub(super) fn all(&self) -> impl Iterator<Item = ProcessId> {
        self.entries.values().map(|entry| entry.id)
    }

    /// One process.
    pub(super) fn get(&self, pid: u32) -> Option<&Entry> {
        self.entries.get(&pid)
    }
}

/// The children of `parent`, living and dead, except those in `known`.
///
/// # Errors
/// When `/proc` cannot be listed.
pub(super) fn children(parent: u32, known: &BTreeSet<u32>) -> io::Result<Vec<Entry>> {
    let is_new = |entry: &Entry| entry.parent == parent && !known.contains(&entry.id.pid);
    if let Some(numbers) = walk::children(parent) {
        let new = numbers.into_iter().filter(|pid| !known.contains(pid));
        return Ok(new.filter_map(lookup).filter(is_new).collect());
    }
    let tree = ProcessTree::scan()?;
    Ok(tree.children(parent).copied().filter(is_new).collect())
}

/// Kills `roots` and all below them, and returns the processes it signalled. All of them are below
/// `top`, if there is one.
///
/// They are stopped first, and looked for again until there is no new one: a stopped process
/// neither forks nor, by ending, hands its children to another parent where they are not found. But
/// it stops only after it has returned from the kernel, and a fork that has begun is finished
/// before; so the next search begins when all have stopped. They are killed from the leaves up,
/// because the system continues a stopped group when the parent that it had outside of it ends,
/// setpgid(2).
///
/// # Errors
/// When `/proc` cannot be listed; what was found until then is killed all the same.
pub(super) fn kill_tree(roots: &[ProcessId], top: Option<u32>) -> io::Result<Vec<ProcessId>> {
    // Parents before their children.
    let mut stopped: Vec<ProcessId> = Vec::new();
    let mut outcome = Ok(());
    let mut timeout = STOP_TIMEOUT;
    for _ in 0..ROUNDS {
        let tree = match ProcessTree::scan_below(top) {
            Ok(tree) => tree,
            Err(error) => {
                outcome = Err(error);
                break;
            }
        };
        let mut new = tree.descendants(roots.iter().chain(&stopped).copied());
        new.retain(|id| !stopped.contains(id) && id.signal(Signal::STOP).is_ok());
        if new.is_empty() {
            break;
        }
        stopped.extend(&new);
        timeout = await_stopped(new, timeout);
    }
    stopped.reverse();
    stopped.retain(|id| id.signal(Signal::KILL).is_ok());
    outcome.map(|()| stopped)
}

/// Waits until each of `ids` has stopped or ended, no longer than `timeout`, and returns what is
/// left of that.
fn await_stopped(mut ids: Vec<ProcessId>, timeout: Duration) -> Duration {
    let begun = Instant::now();
    loop {
        ids.retain(|id| !is_stopped(id.pid));
        let left = timeout.saturating_sub(begun.elapsed());
        if ids.is_empty() || left.is_zero() {
            return left;
        }
        std::thread::sleep(STOP_POLL);
    }
}

/// Whether no thread of a process runs any more.
fn is_stopped(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return true;
    };
    let mut each = threads
        .flatten()
        .map(|thread| read(thread.path().join("stat")));
    each.all(|thread| thread.is_none_or(|entry| entry.stopped))
}

/// The process number as the system calls take it.
pub(super) fn to_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Reads the entry of one process.
pub(super) fn lookup(pid: u32) -> Option<Entry> {
    read(format!("/proc/{pid}/stat"))
}

fn read(stat: impl AsRef<Path>) -> Option<Entry> {
    // One read gives all of it: at most 15 bytes of name and 51 numbers.
    let mut text = [0; 1536];
    let length = File::open(stat).ok()?.read(&mut text).ok()?;
    parse(&text[..length])
}

/// Reads a line of `/proc/PID/stat`, proc(5). The name is in parentheses and may hold any
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
        id: ProcessId {
            pid: pid.trim().parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        },
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        // A process whose first thread alone has ended looks like a zombie, but runs.
        alive: !ended || threads > 1,
        stopped: ended || matches!(fields[0], "T" | "t"),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A line of the table: number, parent, group, start, state.
    fn tree(rows: &[(u32, u32, u32, u64, char)]) -> ProcessTree {
        let entries = rows.iter().map(|&(pid, parent, group, start, state)| {
            let line = format!(
                "{pid} (x) {state} {parent} {group} 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start} 9"
            );
            (pid, parse(line.as_bytes()).unwrap())
        });
        ProcessTree {
            entries: entries.collect(),
        }
    }

    fn below(tree: &ProcessTree, pid: u32, start: u64) -> Vec<u32> {
        let found = tree.below([ProcessId { pid, start }]);
        found.into_iter().map(|id| id.pid).collect()
    }

    #[test]
    fn tree_has_the_group_and_all_descendants() {
        let tree = tree(&[
            (10, 1, 10, 1, 'S'),
            (20, 10, 20, 2, 'S'),
            (21, 20, 20, 3, 'S'),
            // In a session of its own, and its child.
            (30, 21, 30, 4, 'R'),
            (31, 30, 30, 5, 'S'),
            // Its parent has ended, but it stayed in the group.
            (40, 10, 20, 6, 'S'),
            // A zombie is not signalled.
            (41, 20, 20, 7, 'Z'),
            // Not related.
            (50, 10, 50, 8, 'S'),
        ]);
        assert_eq!(below(&tree, 20, 2), [20, 21, 30, 31, 40]);
    }

    #[test]
    fn parents_come_before_their_children() {
        let tree = tree(&[
            (10, 1, 10, 1, 'S'),
            // Started after numbers wrapped: in the group, below a process that has left it.
            (5, 30, 10, 4, 'S'),
            (30, 10, 30, 3, 'S'),
            (40, 10, 10, 2, 'S'),
        ]);
        let order = tree.descendants([ProcessId { pid: 10, start: 1 }]);
        let place = |pid| order.iter().position(|id| id.pid == pid).unwrap();
        assert_eq!(order.len(), 4);
        assert!(place(10) < place(30) && place(30) < place(5) && place(10) < place(40));
    }

    #[test]
    fn reused_pid_is_not_a_descendant() {
        let tree = tree(&[(20, 1, 20, 99, 'S'), (21, 20, 20, 99, 'S')]);
        assert_eq!(below(&tree, 20, 2), [0; 0]);
    }

    #[test]
    fn group_is_found_after_its_leader_was_reaped() {
        let tree = tree(&[(21, 1, 20, 3, 'S')]);
        assert_eq!(below(&tree, 20, 2), [21]);
    }

    #[test]
    fn own_process_is_found() {
        let me = std::process::id();
        let tree = ProcessTree::scan().unwrap();
        let entry = tree.get(me).unwrap();
        assert_eq!(ProcessId::of(me), Some(entry.id));
        assert!(entry.alive);
    }

    proptest! {
        #[test]
        fn process_name_may_hold_any_bytes(name in proptest::collection::vec(any::<u8>(), 0..16)) {
            let mut line = b"77 (".to_vec();
            line.extend(&name);
            line.extend(b") S 5 6 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 4242 1 2\n");
            let entry = parse(&line).unwrap();
            prop_assert_eq!(entry.id, ProcessId { pid: 77, start: 4242 });
            prop_assert_eq!((entry.parent, entry.group, entry.alive), (5, 6, true));
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&text);
        }
    }
}
