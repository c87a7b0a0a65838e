//! Finds the processes below a process, and signals exactly those.
//!
//! A process group is not enough: agents leave daemons in sessions of their own, and a signal to a
//! bare number may hit another process that got the number meanwhile. So on Linux descendants are
//! found by the parent links in `/proc`, and a process is its number *and* its start time. Below one
//! process they are found by the lists of children that Linux keeps, at a cost that does not depend
//! on the other processes of the machine. Where there is no `/proc`, [`ProcessTree::scan`] fails and callers are left with the group. `reaper`
//! and `watchdog` decide when to signal which process.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::process_id::{Entry, ProcessId, lookup, read};

/// How often new children are looked for while their parents are being stopped. Each round can only
/// find what was forked before the round before; three are rarely needed.
const ROUNDS: usize = 8;
/// How often the lists of children are read at most, until two readings in a row are the same.
const READINGS: usize = 4;
/// How long to wait for stopped processes, in all. A process that waits for a device, or for a
/// child that has yet to run its program, does not stop before that.
const STOP_TIMEOUT: Duration = Duration::from_millis(100);
/// Pause between two checks whether they have stopped.
const STOP_POLL: Duration = Duration::from_micros(200);

/// All processes of the machine at about one moment, or all below one.
#[derive(Debug, Default)]
pub(super) struct ProcessTree {
    entries: BTreeMap<u32, Entry>,
}

impl ProcessTree {
    /// Reads every process. Takes about ten microseconds for each, so not on a runtime thread.
    ///
    /// # Errors
    /// When `/proc` cannot be listed.
    pub(super) fn scan() -> io::Result<Self> {
        let mut entries = BTreeMap::new();
        for name in fs::read_dir("/proc")? {
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

    /// Reads `top` and all below it, or every process where the tree keeps changing or the kernel
    /// has no lists of children; every process, too, when there is no `top`.
    ///
    /// # Errors
    /// When `/proc` cannot be listed.
    pub(super) fn scan_below(top: Option<u32>) -> io::Result<Self> {
        match top.and_then(|top| stable(|| entries_below(top))) {
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
    if let Some(numbers) = stable(|| child_numbers(parent).ok()) {
        let new = numbers.into_iter().filter(|pid| !known.contains(pid));
        return Ok(new.filter_map(lookup).filter(is_new).collect());
    }
    let tree = ProcessTree::scan()?;
    Ok(tree.children(parent).copied().filter(is_new).collect())
}

/// The result that `read` gives twice in a row. A list of children is only right while no process in
/// it exits, and a child may come to another parent meanwhile; the next reading shows either.
fn stable<T: PartialEq>(read: impl Fn() -> Option<T>) -> Option<T> {
    let mut before = read()?;
    for _ in 1..READINGS {
        let again = read()?;
        if again == before {
            return Some(again);
        }
        before = again;
    }
    None
}

/// `root` and all below it, by the lists of children.
fn entries_below(root: u32) -> Option<BTreeMap<u32, Entry>> {
    let mut entries = BTreeMap::from([(root, lookup(root)?)]);
    let mut todo = vec![root];
    while let Some(pid) = todo.pop() {
        let children = match child_numbers(pid) {
            Ok(children) => children,
            // A process that has ended has no children any more.
            Err(_) if lookup(pid).is_none_or(|entry| !entry.alive) => continue,
            // One of its threads has ended.
            Err(_) => return None,
        };
        for entry in children.into_iter().filter_map(lookup) {
            if entry.parent == pid && entries.insert(entry.id.pid, entry).is_none() {
                todo.push(entry.id.pid);
            }
        }
    }
    Some(entries)
}

/// The numbers of the children of all threads of `parent`, living and dead.
fn child_numbers(parent: u32) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for thread in fs::read_dir(format!("/proc/{parent}/task"))? {
        let list = fs::read_to_string(thread?.path().join("children"))?;
        numbers.extend(
            list.split_ascii_whitespace()
                .filter_map(|n| n.parse::<u32>().ok()),
        );
    }
    Ok(numbers)
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
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return true;
    };
    let mut each = threads
        .flatten()
        .map(|thread| read(thread.path().join("stat")));
    each.all(|thread| thread.is_none_or(|entry| entry.stopped))
}

#[cfg(test)]
mod tests {
    use super::super::process_id::parse;
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

    #[cfg(target_os = "linux")]
    #[test]
    fn lists_of_children_and_a_scan_show_the_same_tree() {
        use std::io::Read as _;
        use std::process::{Command, Stdio};

        if !std::path::Path::new("/proc/thread-self/children").exists() {
            return;
        }
        let script = "sleep 1000 & setsid sleep 1000 & sh -c 'sleep 1000 & echo; wait' & wait";
        let mut root = Command::new("setsid")
            .args(["sh", "-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell starts");
        let stdout = root.stdout.as_mut().expect("stdout was asked for");
        stdout.read_exact(&mut [0]).expect("the tree grows");
        // `setsid` forks before it becomes `sleep`, or not.
        let id = loop {
            let listed = stable(|| entries_below(root.id())).expect("the tree rests");
            let id = listed[&root.id()].id;
            let scanned = ProcessTree::scan().expect("there is /proc").below([id]);
            if scanned.len() >= 5 && listed.values().map(|e| e.id).eq(scanned) {
                break id;
            }
        };
        kill_tree(&[id], None).expect("there is /proc");
        root.wait().expect("it is ours");
    }
}
