//! Makes the C library return the memory of large messages to the system once they are freed.
//!
//! # Why
//!
//! glibc takes large blocks from the system one by one and returns them, until the first has been
//! returned: from then on it keeps blocks of up to 32 MiB, in a heap for each thread. Clients that
//! attack a listener for ten seconds (`tests/peers/red_team.py`) make the relay grow by 266 MiB, with
//! a fixed threshold by 40. The threshold can be set only by an environment variable, or by a call
//! that is not safe Rust. So `serve` re-executes itself, in the same process, before it does anything
//! else; `connect` has one agent and starts at once. musl has no such heaps.
//!
//! `tikv-jemallocator` grows by 64 to 72 MiB, and starts in 7.0 ms instead of 5.2; `mimalloc` takes
//! 170 KiB for an idle WebSocket client instead of 32.

/// Re-executes the program where that helps. Returns where it does not help, or fails.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn limit_retention() {
    use std::env;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use transport::process::ALLOCATOR_VARS;

    /// Blocks of at least this size are returned at once. Smaller ones lie in heaps, where what a
    /// conversation keeps for long holds the memory that was freed below it.
    const LARGE: &str = "131072";

    let [ours, threshold] = ALLOCATOR_VARS;
    let mut names = [ours, threshold, "GLIBC_TUNABLES"].into_iter();
    if names.any(|name| env::var_os(name).is_some()) {
        return;
    }
    let Ok(program) = env::current_exe() else {
        return;
    };
    let mut words = env::args_os();
    let name = words.next().unwrap_or_default();
    let mut again = Command::new(program);
    again.arg0(name).args(words);
    again.env(ours, "again").env(threshold, LARGE);
    // `exec` returns only if it fails, and then nothing has changed.
    let _ = again.exec();
}

/// Does nothing on other systems.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) const fn limit_retention() {}
