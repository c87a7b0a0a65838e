//! Exit codes, after `sysexits.h`, and the agent's own.

use std::process::ExitCode;

use super::stderr;
use crate::conversation::Cause;
use crate::jsonrpc::Exit;
use crate::proxy::{ConnectRefusal, End, StopSignals};
use crate::transport::{OpenError, OpenErrorKind};

/// All went well.
pub(super) const SUCCESS: u8 = 0;
/// The command line is invalid (`EX_USAGE`).
pub(super) const USAGE: u8 = 64;
/// A conversation violates the schema (`check`).
pub(super) const VIOLATIONS: u8 = 1;
/// A mapping table has faults (`EX_DATAERR`).
pub(super) const DATA: u8 = 65;
/// A file cannot be read (`EX_NOINPUT`).
pub(super) const NO_INPUT: u8 = 66;
/// A host's name does not resolve (`EX_NOHOST`).
pub(super) const NO_HOST: u8 = 68;
/// A peer, program or port is not available (`EX_UNAVAILABLE`).
pub(super) const UNAVAILABLE: u8 = 69;
/// The operating system reported an error (`EX_OSERR`).
pub(super) const SYSTEM: u8 = 71;
/// A socket file or a recording cannot be created (`EX_CANTCREAT`).
pub(super) const CANNOT_CREATE: u8 = 73;
/// Stopped early (`EX_TEMPFAIL`): before the agent was reached, or asked twice.
pub(super) const STOPPED: u8 = 75;
/// The peer does not speak the protocol (`EX_PROTOCOL`).
pub(super) const PROTOCOL: u8 = 76;
/// Not permitted (`EX_NOPERM`).
pub(super) const FORBIDDEN: u8 = 77;
/// A configuration file has faults (`EX_CONFIG`).
pub(super) const CONFIG: u8 = 78;

/// Prints an error in one line on stderr and returns the exit code.
pub(super) fn fail(code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    stderr::print(&format!("acp-relay: {error}"));
    ExitCode::from(code)
}

/// The same for an endpoint that could not be opened.
pub(super) fn open_failed(error: &OpenError) -> ExitCode {
    fail(of_open_error(error), error)
}

/// The code for an endpoint that could not be opened.
pub(super) fn of_open_error(error: &OpenError) -> u8 {
    match error.kind {
        OpenErrorKind::Usage => USAGE,
        OpenErrorKind::NoInput => NO_INPUT,
        OpenErrorKind::NoHost => NO_HOST,
        OpenErrorKind::Unavailable | OpenErrorKind::Overloaded | OpenErrorKind::Lost => UNAVAILABLE,
        OpenErrorKind::CannotCreate => CANNOT_CREATE,
        OpenErrorKind::Protocol => PROTOCOL,
        OpenErrorKind::Forbidden => FORBIDDEN,
        _ => SYSTEM,
    }
}

/// The code for a conversation on our stdio, which `stop` may have ended early: the agent's
/// own where it is known (128 + n for a signal, as in shells), otherwise whether the agent was
/// lost. An agent that ends with 0 before it answered a request does not speak the protocol. A
/// stdout that is open but accepts nothing is a failure, and so is a conversation that had to be
/// recorded and was not (`strict`), whatever its result.
pub(super) fn of_end(end: &End, stop: &StopSignals, strict: bool) -> ExitCode {
    if stop.forced.is_cancelled() {
        return ExitCode::from(STOPPED);
    }
    if strict && end.counts.note("unrecorded") > 0 {
        return ExitCode::from(CANNOT_CREATE);
    }
    if let Some(refused) = end.refused {
        return ExitCode::from(match refused {
            ConnectRefusal::Unavailable => UNAVAILABLE,
            ConnectRefusal::Forbidden => FORBIDDEN,
            ConnectRefusal::Protocol => PROTOCOL,
        });
    }
    if let Some(why) = &end.client_error {
        let fault = format!("the agent's output cannot be forwarded: {why}");
        return fail(SYSTEM, &fault);
    }
    ExitCode::from(match (end.exit, &end.cause) {
        (Some(Exit::Code(0)), _) if end.is_without_answer() => PROTOCOL,
        (Some(Exit::Code(code)), _) => u8::try_from(code & 0xff).unwrap_or(u8::MAX),
        (Some(Exit::Signal(signal)), _) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        (None, Cause::Violation(_)) => PROTOCOL,
        (None, Cause::AgentLeft) if end.lost || end.counts.note("answered_for_peer") > 0 => {
            UNAVAILABLE
        }
        (None, _) => SUCCESS,
    })
}
