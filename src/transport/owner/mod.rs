//! Whose program a TCP socket of this machine belongs to.
//!
//! The kernel knows, as it does of Unix sockets, but has to be asked in another way: by the
//! addresses of both ends, which `socket` does. `diag` asks for the one socket; where that is not
//! to be had, `table` looks for it in the list of all. Both answer for this network namespace only,
//! and nothing where they are not sure. On other systems than Linux there is no answer without
//! unsafe code. Not here: what follows from it (see `guard`).

#[cfg(target_os = "linux")]
mod diag;
mod socket;
#[cfg(target_os = "linux")]
mod table;

pub use socket::listens_alone;
pub(super) use socket::of_socket;
