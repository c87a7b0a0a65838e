//! `exec:` and the command after `--`: a child process as a transport.
//!
//! It can only be connected to: a process that the relay starts is always the agent.

use super::program::check_allowed;
use super::{find_program, spawn};
use crate::transport::{
    ConnectFuture, Endpoint, Link, ListenFuture, OpenError, OpenErrorKind, Setup, Transport, stream,
};

/// The transport behind `exec:`.
#[derive(Debug)]
pub(in crate::transport) struct Exec;

impl Transport for Exec {
    fn schemes(&self) -> &'static [&'static str] {
        &["exec"]
    }

    fn check(&self, to: &Endpoint, setup: &Setup) -> Result<(), OpenError> {
        let Endpoint::Exec(argv) = to else {
            return Err(OpenError::wrong_scheme(to));
        };
        check_allowed(argv)?;
        find_program(argv, &setup.launch)
    }

    fn connect<'a>(&'a self, to: &'a Endpoint, setup: &'a Setup) -> ConnectFuture<'a> {
        Box::pin(async move {
            let Endpoint::Exec(argv) = to else {
                return Err(OpenError::wrong_scheme(to));
            };
            let child = spawn(argv, &setup.launch, &setup.limits).await?;
            let (rx, tx) = stream::halves(
                child.stdout,
                child.stdin,
                setup.limits.frame_from_child,
                setup,
            );
            Ok(Link {
                peer: child.peer,
                rx: Box::new(rx),
                tx: Box::new(tx),
                guard: Box::new(child.hold),
            })
        })
    }

    fn listen<'a>(&'a self, at: &'a Endpoint, _setup: &'a Setup) -> ListenFuture<'a> {
        Box::pin(async move {
            let error = OpenError::new(
                OpenErrorKind::Usage,
                at,
                "a process that the relay starts cannot be listened on",
            );
            Err(error.with_remedy(
                "Name the agent's command after `--`, and listen on stdio:, tcp:, unix: or ws:",
            ))
        })
    }
}
