//! The operating system's figures for this process, without the agents' processes.
//!
//! The `metrics-process` crate would add ten crates and count CPU time in whole seconds.

use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Memory, files and threads, by metric; `None` where the system has no figure.
pub(super) fn gauges() -> [(&'static str, Option<u64>); 4] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
    };
    let resident = field("VmRSS:").map(|kibibytes| kibibytes << 10);
    // The one with which they are counted is among them.
    let files = std::fs::read_dir("/proc/self/fd").map(|files| files.count().saturating_sub(1));
    [
        ("process_resident_memory_bytes", resident),
        ("process_open_fds", files.ok().map(|files| files as u64)),
        ("process_max_fds", getrlimit(Resource::Nofile).current),
        ("process_threads", field("Threads:")),
    ]
}

/// Seconds of CPU time.
#[expect(
    clippy::cast_precision_loss,
    reason = "of seconds, no nanosecond is missed"
)]
pub(super) fn cpu_seconds() -> f64 {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9
}
