//! Processes seen from outside: their identity, their relations, and whether they have ended.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longest time anything here may take. Nothing waits for it to pass.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// A file in which an agent records the ids of its processes.
pub(crate) struct Notes(pub(crate) tempfile::TempDir);

impl Notes {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("notes")
    }

    /// The arguments that run `script` with the file as `$1`.
    pub(crate) fn script(&self, script: &str) -> Vec<OsString> {
        let mut argv = words(&["sh", "-c", script, "sh"]);
        argv.push(self.path().into_os_string());
        argv
    }

    /// Waits until that many processes are noted.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Proc> {
        let mut found = Vec::new();
        wait_until("the agent has noted its processes", || {
            let text = std::fs::read_to_string(self.path()).unwrap_or_default();
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            let pids = whole.lines().map(|line| line.parse().unwrap());
            found = pids
                .map(|pid| Proc::of(pid).expect("it has not ended"))
                .collect();
            found.len() >= count
        });
        found
    }
}

/// A process, distinguished from later ones with its id.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Proc {
    pub(crate) pid: u32,
    pub(crate) start: u64,
}

impl Proc {
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let start = stat(pid)?[19].parse().unwrap();
        Some(Self { pid, start })
    }

    fn stat(&self) -> Option<Vec<String>> {
        stat(self.pid).filter(|stat| stat[19] == self.start.to_string())
    }

    /// Not running; maybe a zombie.
    pub(crate) fn is_gone(&self) -> bool {
        self.stat()
            .is_none_or(|stat| stat[0] == "Z" || stat[0] == "X")
    }

    pub(crate) fn is_reaped(&self) -> bool {
        self.stat().is_none()
    }

    pub(crate) fn parent(&self) -> u32 {
        self.stat().map_or(0, |stat| stat[1].parse().unwrap())
    }

    pub(crate) fn group(&self) -> u32 {
        self.stat().map_or(0, |stat| stat[2].parse().unwrap())
    }

    pub(crate) fn session(&self) -> u32 {
        self.stat().map_or(0, |stat| stat[3].parse().unwrap())
    }

    pub(crate) fn kill(&self, signal: Signal) {
        if !self.is_gone() {
            let pid = Pid::from_raw(self.pid.try_into().unwrap()).unwrap();
            kill_process(pid, signal).unwrap();
        }
    }

    pub(crate) fn is_watchdog(&self) -> bool {
        self.words().iter().any(|word| word == "__watchdog")
    }

    /// Its command line; empty for a zombie.
    pub(crate) fn words(&self) -> Vec<String> {
        let words = std::fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let words = words.split(|&byte| byte == 0);
        words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    }

    /// The targets of its descriptors.
    pub(crate) fn descriptors(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(format!("/proc/{}/fd", self.pid)).unwrap();
        let links = entries.map(|entry| std::fs::read_link(entry.unwrap().path()));
        links.filter_map(Result::ok).collect()
    }

    /// Whether the signal has arrived and was not handled.
    pub(crate) fn is_pending(&self, signal: u32) -> bool {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let mask = text.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
        u64::from_str_radix(mask.unwrap().trim(), 16).unwrap() & (1 << (signal - 1)) != 0
    }
}

/// The fields of proc(5)'s `stat` from the state on.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

pub(crate) fn all() -> Vec<Proc> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name());
    names
        .filter_map(|name| Proc::of(name.to_str()?.parse().ok()?))
        .collect()
}

pub(crate) fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < DEADLINE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
