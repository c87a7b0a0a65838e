//! Finds the user who owns a TCP socket of this machine.
//!
//! Unlike for Unix sockets, the kernel has to be queried by the addresses of both ends, which
//! `socket` does. `diag` queries the one socket; if that is not available, `table` searches the
//! list of all. Both cover this network namespace only, and return nothing where the result is
//! uncertain. On systems other than Linux there is no answer without unsafe code.

#[cfg(target_os = "linux")]
mod diag;
mod socket;
#[cfg(target_os = "linux")]
mod table;

pub use socket::is_only_listener;
pub(super) use socket::of_socket;
