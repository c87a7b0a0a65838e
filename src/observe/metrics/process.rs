//! What the operating system says of this process, without the agents' processes.
//!
//! The `metrics-process` crate would add ten crates and count CPU time in whole seconds.

use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Memory, CPU time, files and threads; `None` where the system does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Process {
    pub(super) resident: Option<u64>,
    pub(super) cpu: f64,
    pub(super) open_files: Option<u64>,
    pub(super) max_files: Option<u64>,
    pub(super) threads: Option<u64>,
}

impl Process {
    pub(super) fn read() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        };
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let files = std::fs::read_dir("/proc/self/fd").map(Iterator::count);
        #[expect(
            clippy::cast_precision_loss,
            reason = "of seconds, no nanosecond is missed"
        )]
        let cpu = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
        Self {
            resident: field("VmRSS:").map(|kibibytes| kibibytes << 10),
            cpu,
            // The one with which they are counted is among them.
            open_files: files.ok().map(|count| count.saturating_sub(1) as u64),
            max_files: getrlimit(Resource::Nofile).current,
            threads: field("Threads:"),
        }
    }
}
