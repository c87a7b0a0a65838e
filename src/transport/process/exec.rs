//! `exec:` and the command after `--`: a child process as a transport.
//!
//! It can only be connected to: a process that the relay starts is always the agent.

use std::ffi::OsString;

use super::program::check_allowed;
use super::{find_program, spawn};
use crate::transport::{Link, OpenError, Setup, stream};

/// Checks that the program could be started.
pub(in crate::transport) fn check(argv: &[OsString], setup: &Setup) -> Result<(), OpenError> {
    check_allowed(argv)?;
    find_program(argv, &setup.launch)
}

/// Starts the program.
pub(in crate::transport) async fn connect(
    argv: &[OsString],
    setup: &Setup,
) -> Result<Link, OpenError> {
    let child = spawn(argv, &setup.launch, &setup.limits).await?;
    let max = setup.limits.frame_from_child;
    let (rx, tx) = stream::halves(child.stdout, child.stdin, max, setup);
    Ok(Link {
        peer: child.peer,
        rx: Box::new(rx),
        tx: Box::new(tx),
        guard: Box::new(child.hold),
    })
}
