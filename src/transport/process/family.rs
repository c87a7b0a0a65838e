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
const REST: Duration = Duration::from_millis(100);
/// Pause between two checks whether they have stopped.
const BREATH: Duration = Duration::from_micros(200);

/// One process, told apart from a later one of the same number by its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kin {
    /// Its number.
    pub(super) pid: u32,
    /// When it started, in clock ticks since boot.
    pub(super) start: u64,
}

/// What `/proc` says of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its number and start time.
    pub(super) who: Kin,
    /// Its parent.
    pub(super) parent: u32,
    /// Its process group.
    pub(super) group: u32,
    /// Whether it still runs; else it waits to be reaped.
    pub(super) alive: bool,
    /// Whether its first thread has stopped or ended.
    rests: bool,
}

/// All processes of the machine at about one moment, or all below one.
#[derive(Debug, Default)]
pub(super) struct Census {
    entries: BTreeMap<u32, Entry>,
}

impl Kin {
    /// The process that has this number now.
    pub(super) fn of(pid: u32) -> Option<Self> {
        look_at(pid).map(|entry| entry.who)
    }

    /// Whether it has not exited.
    pub(super) fn is_alive(self) -> bool {
        look_at(self.pid).is_some_and(|entry| entry.who == self && entry.alive)
    }

    /// Signals this process, and no other that has its number by now.
    ///
    /// # Errors
    /// `SRCH` when it is gone, `PERM` when it changed its user.
    pub(super) fn signal(self, signal: Signal) -> Result<(), Errno> {
        let pid = number(self.pid).ok_or(Errno::SRCH)?;
        #[cfg(target_os = "linux")]
        match rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
            // The descriptor stands for one process for ever, so checking after opening is exact.
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

impl Census {
    /// Reads every process. Takes about ten microseconds for each, so not on a runtime thread.
    ///
    /// # Errors
    /// When `/proc` cannot be listed.
    pub(super) fn take() -> io::Result<Self> {
        let mut entries = BTreeMap::new();
        for name in std::fs::read_dir("/proc")? {
            let name = name?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A process that ended since the listing is not needed.
            if let Some(entry) = look_at(pid) {
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
    pub(super) fn within(top: Option<u32>) -> io::Result<Self> {
        match top.and_then(walk::below) {
            Some(entries) => Ok(Self { entries }),
            None => Self::take(),
        }
    }

    /// The living among `roots`, their process groups, and all descendants of those.
    pub(super) fn below(&self, roots: impl IntoIterator<Item = Kin>) -> BTreeSet<Kin> {
        self.descent(roots).into_iter().collect()
    }

    /// The same, parents before their children.
    fn descent(&self, roots: impl IntoIterator<Item = Kin>) -> Vec<Kin> {
        let mut todo: Vec<&Entry> = Vec::new();
        for root in roots {
            match self.entries.get(&root.pid) {
                // The number, and with it the group's, belongs to another process now.
                Some(entry) if entry.who != root => continue,
                _ => {}
            }
            let group = self.entries.values().filter(|e| e.group == root.pid);
            todo.extend(group.filter(|entry| entry.who != root));
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
            if entry.alive && seen.insert(entry.who) {
                found.push(entry.who);
                todo.extend(children.get(&entry.who.pid).into_iter().flatten());
            }
        }
        found
    }

    /// The children of `pid`, living and dead.
    pub(super) fn children(&self, pid: u32) -> impl Iterator<Item = &Entry> {
        self.entries.values().filter(move |e| e.parent == pid)
    }

    /// All processes.
    pub(super) fn all(&self) -> impl Iterator<Item = Kin> {
        self.entries.values().map(|entry| entry.who)
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
    let strange = |entry: &Entry| entry.parent == parent && !known.contains(&entry.who.pid);
    if let Some(numbers) = walk::children(parent) {
        let strangers = numbers.into_iter().filter(|pid| !known.contains(pid));
        return Ok(strangers.filter_map(look_at).filter(strange).collect());
    }
    let census = Census::take()?;
    Ok(census.children(parent).copied().filter(strange).collect())
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
pub(super) fn fell(roots: &[Kin], top: Option<u32>) -> io::Result<Vec<Kin>> {
    // Parents before their children.
    let mut held: Vec<Kin> = Vec::new();
    let mut outcome = Ok(());
    let mut patience = REST;
    for _ in 0..ROUNDS {
        let census = match Census::within(top) {
            Ok(census) => census,
            Err(error) => {
                outcome = Err(error);
                break;
            }
        };
        let mut new = census.descent(roots.iter().chain(&held).copied());
        new.retain(|kin| !held.contains(kin) && kin.signal(Signal::STOP).is_ok());
        if new.is_empty() {
            break;
        }
        held.extend(&new);
        patience = await_rest(new, patience);
    }
    held.reverse();
    held.retain(|kin| kin.signal(Signal::KILL).is_ok());
    outcome.map(|()| held)
}

/// Waits until each of `ids` has stopped or ended, no longer than `timeout`, and returns what is
/// left of that.
fn await_rest(mut kins: Vec<Kin>, patience: Duration) -> Duration {
    let begun = Instant::now();
    loop {
        kins.retain(|kin| !rests(kin.pid));
        let left = patience.saturating_sub(begun.elapsed());
        if kins.is_empty() || left.is_zero() {
            return left;
        }
        std::thread::sleep(BREATH);
    }
}

/// Whether no thread of a process runs any more.
fn rests(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return true;
    };
    let mut each = threads
        .flatten()
        .map(|thread| read(thread.path().join("stat")));
    each.all(|thread| thread.is_none_or(|entry| entry.rests))
}

/// The process number as the system calls take it.
pub(super) fn number(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Reads the entry of one process.
pub(super) fn look_at(pid: u32) -> Option<Entry> {
    read(format!("/proc/{pid}/stat"))
}

fn read(stat: impl AsRef<Path>) -> Option<Entry> {
    // One read gives all of it: at most 15 bytes of name and 51 numbers.
    let mut text = [0; 1536];
    let length = File::open(stat).ok()?.read(&mut text).ok()?;
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
    let over = matches!(*fields.first()?, "Z" | "X" | "x");
    // Counted from the state, which is field 3 in proc(5).
    let threads: u32 = fields.get(17)?.parse().ok()?;
    Some(Entry {
        who: Kin {
            pid: pid.trim().parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        },
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        // A process whose first thread alone has ended looks like a zombie, but runs.
        alive: !over || threads > 1,
        rests: over || matches!(fields[0], "T" | "t"),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A line of the table: number, parent, group, start, state.
    fn census(rows: &[(u32, u32, u32, u64, char)]) -> Census {
        let entries = rows.iter().map(|&(pid, parent, group, start, state)| {
            let line = format!(
                "{pid} (x) {state} {parent} {group} 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start} 9"
            );
            (pid, parse(line.as_bytes()).unwrap())
        });
        Census {
            entries: entries.collect(),
        }
    }

    fn below(census: &Census, pid: u32, start: u64) -> Vec<u32> {
        let found = census.below([Kin { pid, start }]);
        found.into_iter().map(|kin| kin.pid).collect()
    }

    #[test]
    fn the_tree_is_the_group_and_all_descendants() {
        let census = census(&[
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
        assert_eq!(below(&census, 20, 2), [20, 21, 30, 31, 40]);
    }

    #[test]
    fn parents_come_before_their_children() {
        let census = census(&[
            (10, 1, 10, 1, 'S'),
            // Started after numbers wrapped: in the group, below a process that has left it.
            (5, 30, 10, 4, 'S'),
            (30, 10, 30, 3, 'S'),
            (40, 10, 10, 2, 'S'),
        ]);
        let order = census.descent([Kin { pid: 10, start: 1 }]);
        let place = |pid| order.iter().position(|kin| kin.pid == pid).unwrap();
        assert_eq!(order.len(), 4);
        assert!(place(10) < place(30) && place(30) < place(5) && place(10) < place(40));
    }

    #[test]
    fn a_number_given_to_somebody_else_is_left_alone() {
        let census = census(&[(20, 1, 20, 99, 'S'), (21, 20, 20, 99, 'S')]);
        assert_eq!(below(&census, 20, 2), [0; 0]);
    }

    #[test]
    fn the_group_is_found_after_its_leader_was_reaped() {
        let census = census(&[(21, 1, 20, 3, 'S')]);
        assert_eq!(below(&census, 20, 2), [21]);
    }

    #[test]
    fn we_find_ourselves() {
        let me = std::process::id();
        let census = Census::take().unwrap();
        let entry = census.get(me).unwrap();
        assert_eq!(Kin::of(me), Some(entry.who));
        assert!(entry.alive);
    }

    proptest! {
        #[test]
        fn any_name_is_read_past(name in proptest::collection::vec(any::<u8>(), 0..16)) {
            let mut line = b"77 (".to_vec();
            line.extend(&name);
            line.extend(b") S 5 6 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 4242 1 2\n");
            let entry = parse(&line).unwrap();
            prop_assert_eq!(entry.who, Kin { pid: 77, start: 4242 });
            prop_assert_eq!((entry.parent, entry.group, entry.alive), (5, 6, true));
        }

        #[test]
        fn any_text_is_survived(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&text);
        }
    }
}
