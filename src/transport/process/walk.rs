//! Finds the processes below one process, at a cost that depends on their number and not on the
//! number of all processes of the machine.
//!
//! Linux lists the children of every thread (`/proc/PID/task/TID/children`, if the kernel was built
//! so). A list is only right while no process in it exits, and a child may come to another parent
//! during the walk. But a walk can only miss a process that was there when it began if another one
//! that it did see, or a thread of it, ends meanwhile; and the next walk sees that. So a walk
//! counts when the one after it finds exactly the same, and is repeated until then. In a tree that
//! keeps changing, or is large, no walk counts, and the caller scans all processes instead (see
//! `tree`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, read_dir};
use std::io::{self, Read};

use super::tree::{Entry, lookup};

/// How many walks there are at most.
const WALKS: usize = 4;
/// A walk opens no more than one file for so many processes and threads of the machine, so that it
/// does not cost more than a scan, which opens one for each process.
const FILE_SHARE: usize = 8;
/// So many files it may always open.
const MIN_FILES: usize = 64;

/// The result of one walk.
#[derive(Debug, PartialEq, Eq)]
struct Walk {
    /// Processes, by their numbers.
    entries: BTreeMap<u32, Entry>,
    /// Their threads.
    threads: BTreeSet<u32>,
    /// Whether no process vanished during the walk.
    complete: bool,
}

/// A process' threads and children.
#[derive(Debug, PartialEq, Eq)]
struct Relatives {
    threads: Vec<u32>,
    children: Vec<u32>,
}

/// `root` and all below it; `None` when a walk cannot find them.
pub(super) fn below(root: u32) -> Option<BTreeMap<u32, Entry>> {
    let budget = budget();
    let walk = stable(|| Walk::run(root, budget), |walk| walk.complete)?;
    Some(walk.entries)
}

/// The numbers of the children of `parent`, living and dead; `None` as above.
pub(super) fn children(parent: u32) -> Option<Vec<u32>> {
    let relatives = stable(|| Relatives::read(parent).ok(), |_| true)?;
    Some(relatives.children)
}

/// The result that `scan` gives twice in a row, if it `counts`.
fn stable<T: PartialEq>(scan: impl Fn() -> Option<T>, counts: impl Fn(&T) -> bool) -> Option<T> {
    let mut before = scan()?;
    for _ in 1..WALKS {
        let again = scan()?;
        if again == before && counts(&again) {
            return Some(again);
        }
        before = again;
    }
    None
}

/// How many files a walk may open.
fn budget() -> usize {
    // As in "0.20 0.18 0.12 1/80 11206", proc(5).
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let threads = load.split(['/', ' ']).nth(4);
    let machine: usize = threads.and_then(|n| n.parse().ok()).unwrap_or(0);
    (machine / FILE_SHARE).max(MIN_FILES)
}

impl Walk {
    fn run(root: u32, budget: usize) -> Option<Self> {
        let mut walk = Self {
            entries: BTreeMap::from([(root, lookup(root)?)]),
            threads: BTreeSet::new(),
            complete: true,
        };
        let mut opened = 1;
        let mut todo = vec![root];
        while let Some(pid) = todo.pop() {
            let Ok(relatives) = Relatives::read(pid) else {
                if pid == root {
                    return None;
                }
                walk.complete = false;
                continue;
            };
            opened += 1 + relatives.threads.len() + relatives.children.len();
            if opened > budget {
                return None;
            }
            walk.threads.extend(relatives.threads);
            for child in relatives.children {
                match lookup(child) {
                    Some(entry) if entry.parent == pid => {
                        // If it was seen before, it has moved.
                        walk.complete &= walk.entries.insert(child, entry).is_none();
                        if entry.alive {
                            todo.push(child);
                        }
                    }
                    _ => walk.complete = false,
                }
            }
        }
        Some(walk)
    }
}

impl Relatives {
    fn read(pid: u32) -> io::Result<Self> {
        let mut relatives = Self {
            threads: Vec::new(),
            children: Vec::new(),
        };
        for name in read_dir(format!("/proc/{pid}/task"))? {
            let name = name?.file_name();
            let name = name.to_string_lossy();
            let mut list = String::new();
            File::open(format!("/proc/{pid}/task/{name}/children"))?.read_to_string(&mut list)?;
            relatives.threads.extend(name.parse::<u32>());
            let numbers = list.split_ascii_whitespace();
            (relatives.children).extend(numbers.filter_map(|number| number.parse::<u32>().ok()));
        }
        Ok(relatives)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::cell::Cell;
    use std::process::{Command, Stdio};

    use super::super::tree::ProcessTree;
    use super::*;

    #[test]
    fn walk_and_scan_find_the_same_descendants() {
        if !std::path::Path::new("/proc/thread-self/children").exists() {
            return;
        }
        let script = "sleep 1000 & setsid sleep 1000 & sh -c 'sleep 1000 & echo; wait' & wait";
        let mut root = Command::new("setsid")
            .args(["sh", "-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell starts");
        let mut line = [0];
        let stdout = root.stdout.as_mut().expect("stdout was asked for");
        stdout.read_exact(&mut line).expect("the tree grows");
        // `setsid` forks before it becomes `sleep`, or not.
        let (walked, counted) = loop {
            let walked = below(root.id()).expect("the tree rests");
            let tree = ProcessTree::scan().expect("there is /proc");
            let id = walked[&root.id()].id;
            let counted = tree.below([id]);
            if walked.len() == counted.len() && counted.len() >= 5 {
                break (walked, counted);
            }
        };
        assert!(walked.values().all(|entry| counted.contains(&entry.id)));
        let mut listed = children(root.id()).expect("the list rests");
        listed.sort_unstable();
        let parents = walked.values().filter(|e| e.parent == root.id());
        assert!(parents.map(|e| e.id.pid).eq(listed));

        super::super::tree::kill_tree(&[walked[&root.id()].id], None).expect("there is /proc");
        root.wait().expect("it is ours");
    }

    #[test]
    fn walk_stops_at_its_limit() {
        let me = std::process::id();
        assert_eq!(Walk::run(me, 1), None);
    }

    #[test]
    fn scan_is_stable_when_repeated() {
        for (looks, seen) in [
            ("aab", Some('a')),
            ("abb", Some('b')),
            ("abab", None),
            ("axxb", None),
            ("xxaa", Some('a')),
            ("a-", None),
        ] {
            let at = Cell::new(0);
            let scan = || {
                at.set(at.get() + 1);
                looks.chars().nth(at.get() - 1).filter(|&c| c != '-')
            };
            assert_eq!(stable(scan, |&c| c != 'x'), seen, "{looks}");
        }
    }
}
