//! Black-box tests: the built program, its command line, its sockets and its files.
//!
//! They import nothing of the crate (`structure.rs` checks it), so they hold whatever changes
//! inside the program.

mod diagnostics;
mod http;
mod liveness;
mod regressions;
mod secrets;
mod shutdown;
mod support_ws;
mod tables;
