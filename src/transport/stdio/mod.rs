//! The standard input and output of this process: `stdio:`.
//!
//! Nothing else in the program touches them. The runtime waits for pipes, threads wait for
//! everything else. stderr belongs to the log.

mod threads;
mod transport;

pub(super) use transport::{connect, listen};
