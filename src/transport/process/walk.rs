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

use super::family::{Entry, look_at};

/// How many walks there are at most.
const WALKS: usize = 4;
/// A walk opens no more than one file for so many processes and threads of the machine, so that it
/// does not cost more than a scan, which opens one for each process.
const SHARE: usize = 8;
/// So many files it may always open.
const LEAST: usize = 64;

/// The result of one walk.
#[derive(Debug, PartialEq, Eq)]
struct Walk {
    /// Processes, by their numbers.
    entries: BTreeMap<u32, Entry>,
    /// Their threads.
    threads: BTreeSet<u32>,
    /// Whether no process vanished during the walk.
    whole: bool,
}

/// A process' threads and children.
#[derive(Debug, PartialEq, Eq)]
struct Family {
    threads: Vec<u32>,
    children: Vec<u32>,
}

/// `root` and all below it; `None` when a walk cannot find them.
pub(super) fn below(root: u32) -> Option<BTreeMap<u32, Entry>> {
    let budget = budget();
    let walk = settled(|| Walk::take(root, budget), |walk| walk.whole)?;
    Some(walk.entries)
}

/// The numbers of the children of `parent`, living and dead; `None` as above.
pub(super) fn children(parent: u32) -> Option<Vec<u32>> {
    let family = settled(|| Family::of(parent).ok(), |_| true)?;
    Some(family.children)
}

/// The result that `scan` gives twice in a row, if it `counts`.
fn settled<T: PartialEq>(look: impl Fn() -> Option<T>, counts: impl Fn(&T) -> bool) -> Option<T> {
    let mut before = look()?;
    for _ in 1..WALKS {
        let again = look()?;
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
    (machine / SHARE).max(LEAST)
}

impl Walk {
    fn take(root: u32, budget: usize) -> Option<Self> {
        let mut walk = Self {
            entries: BTreeMap::from([(root, look_at(root)?)]),
            threads: BTreeSet::new(),
            whole: true,
        };
        let mut opened = 1;
        let mut todo = vec![root];
        while let Some(pid) = todo.pop() {
            let Ok(family) = Family::of(pid) else {
                if pid == root {
                    return None;
                }
                walk.whole = false;
                continue;
            };
            opened += 1 + family.threads.len() + family.children.len();
            if opened > budget {
                return None;
            }
            walk.threads.extend(family.threads);
            for child in family.children {
                match look_at(child) {
                    Some(entry) if entry.parent == pid => {
                        // If it was seen before, it has moved.
                        walk.whole &= walk.entries.insert(child, entry).is_none();
                        if entry.alive {
                            todo.push(child);
                        }
                    }
                    _ => walk.whole = false,
                }
            }
        }
        Some(walk)
    }
}

impl Family {
    fn of(pid: u32) -> io::Result<Self> {
        let mut family = Self {
            threads: Vec::new(),
            children: Vec::new(),
        };
        for name in read_dir(format!("/proc/{pid}/task"))? {
            let name = name?.file_name();
            let name = name.to_string_lossy();
            let mut list = String::new();
            File::open(format!("/proc/{pid}/task/{name}/children"))?.read_to_string(&mut list)?;
            family.threads.extend(name.parse::<u32>());
            let numbers = list.split_ascii_whitespace();
            (family.children).extend(numbers.filter_map(|number| number.parse::<u32>().ok()));
        }
        Ok(family)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::cell::Cell;
    use std::process::{Command, Stdio};

    use super::super::family::Census;
    use super::*;

    #[test]
    fn a_walk_and_a_census_see_the_same_below_a_process() {
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
        let said = root.stdout.as_mut().expect("stdout was asked for");
        said.read_exact(&mut line).expect("the tree grows");
        // `setsid` forks before it becomes `sleep`, or not.
        let (walked, counted) = loop {
            let walked = below(root.id()).expect("the tree rests");
            let census = Census::take().expect("there is /proc");
            let kin = walked[&root.id()].who;
            let counted = census.below([kin]);
            if walked.len() == counted.len() && counted.len() >= 5 {
                break (walked, counted);
            }
        };
        assert!(walked.values().all(|entry| counted.contains(&entry.who)));
        let mut listed = children(root.id()).expect("the list rests");
        listed.sort_unstable();
        let parents = walked.values().filter(|e| e.parent == root.id());
        assert!(parents.map(|e| e.who.pid).eq(listed));

        super::super::family::fell(&[walked[&root.id()].who], None).expect("there is /proc");
        root.wait().expect("it is ours");
    }

    #[test]
    fn what_is_larger_than_a_census_is_not_walked() {
        let me = std::process::id();
        assert_eq!(Walk::take(me, 1), None);
    }

    #[test]
    fn a_look_counts_when_the_next_one_is_the_same() {
        for (looks, seen) in [
            ("aab", Some('a')),
            ("abb", Some('b')),
            ("abab", None),
            ("axxb", None),
            ("xxaa", Some('a')),
            ("a-", None),
        ] {
            let at = Cell::new(0);
            let look = || {
                at.set(at.get() + 1);
                looks.chars().nth(at.get() - 1).filter(|&c| c != '-')
            };
            assert_eq!(settled(look, |&c| c != 'x'), seen, "{looks}");
        }
    }
}
