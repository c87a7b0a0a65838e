//! Has the C library give the memory of large messages back when they are gone.
//!
//! Not here: how much of messages may be in memory at a time (see `jsonrpc::Limits`).
//!
//! # Why
//!
//! glibc takes large blocks from the system one by one and gives them back, until the first has been
//! given back: from then on it keeps blocks of up to 32 MiB, in a heap for each thread. Clients
//! that send a few messages of 16 MiB, one after the other, leave some 100 MiB with the relay for
//! good; with a fixed bound it is a third of that, while they do it. The bound is set by a variable
//! of the environment alone, or by a call that is not safe Rust. So the program starts itself
//! again, in the same process, before it has begun anything. musl has no such heaps.

/// Starts the program again where that is of use. Returns where it is not, or cannot be done.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn give_back() {
    use std::env;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use crate::transport::process::ALLOCATOR;

    /// Blocks of so many bytes are given back at once.
    const LARGE: &str = "1048576";

    let [ours, threshold] = ALLOCATOR;
    let mut said = [ours, threshold, "GLIBC_TUNABLES"].into_iter();
    if said.any(|name| env::var_os(name).is_some()) {
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
    // It comes back only when it fails, and then all is as it was.
    let _ = again.exec();
}

/// Elsewhere there is nothing to do.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) const fn give_back() {}
