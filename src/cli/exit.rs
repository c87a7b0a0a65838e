//! Exit codes, after `sysexits.h`, and the agent's own.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::stderr;
use conversation::Cause;
use jsonrpc::{Exit, Side, printable, truncated};
use proxy::{ConnectRefusal, End, StopSignals};
use transport::{CHECK_TOKEN, Endpoint, OpenError, OpenErrorKind};

/// How much of an agent's address or command is printed, in characters.
const MAX_ADDRESS: usize = 200;

/// Whether the log is JSON.
static IS_JSON: AtomicBool = AtomicBool::new(false);

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
/// A fault of the relay itself (`EX_SOFTWARE`).
pub(super) const SOFTWARE: u8 = 70;
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
    let line = match IS_JSON.load(Ordering::Relaxed) {
        true => json!({"level": "ERROR", "message": error.to_string()}).to_string(),
        false => format!("acp-relay: {error}"),
    };
    stderr::print(&line);
    ExitCode::from(code)
}

/// From now on, errors are printed as the lines of a JSON log.
pub(super) fn print_json() {
    IS_JSON.store(true, Ordering::Relaxed);
}

/// Prints why the process ends at once.
pub(super) fn report_panic(why: &str) {
    let _ = fail(SOFTWARE, &why);
    stderr::flush();
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
        OpenErrorKind::Unavailable
        | OpenErrorKind::Overloaded
        | OpenErrorKind::Missing
        | OpenErrorKind::Lost => UNAVAILABLE,
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
///
/// If the code says that the agent has failed, the reason is printed, with the address of `agent` if
/// that is given: many editors show the last line of stderr alone.
pub(super) fn of_end(
    end: &End,
    stop: &StopSignals,
    strict: bool,
    agent: Option<&Endpoint>,
) -> ExitCode {
    if stop.forced.is_cancelled() {
        return ExitCode::from(STOPPED);
    }
    if end.cause == Cause::Panicked {
        let fault = "a fault of this relay has ended the conversation; please report it";
        return fail(SOFTWARE, &fault);
    }
    if strict && end.counts.note("unrecorded") > 0 {
        return ExitCode::from(CANNOT_CREATE);
    }
    if let Some(why) = &end.client_error {
        let fault = format!("the agent's output cannot be forwarded: {why}");
        return fail(SYSTEM, &fault);
    }
    let code = of_agent(end);
    match agent.filter(|_| code != SUCCESS && end.cause != Cause::Stopped) {
        Some(agent) => fail(code, &last_line(end, agent)),
        None => ExitCode::from(code),
    }
}

/// What has happened to the agent, where, and what to do.
fn last_line(end: &End, agent: &Endpoint) -> String {
    let address = truncated(&printable(agent.to_string().as_bytes()), MAX_ADDRESS);
    let what = match &end.agent_error {
        // The text of the server is the whole reason.
        Some(why) if end.refused.is_some() => why.trim_start_matches("it broke off: "),
        Some(why) => why,
        None => "it has ended the connection before it answered a request",
    };
    let remedy = match (end.refused, agent, end.exit) {
        (Some(ConnectRefusal::Forbidden), ..) if what.contains(CHECK_TOKEN) => {
            return format!("{address}: {what}");
        }
        (Some(ConnectRefusal::Forbidden), ..) => CHECK_TOKEN,
        (Some(ConnectRefusal::Protocol), ..) => "Check the address and its path; /acp is usual",
        (Some(ConnectRefusal::Unavailable), ..) => "Try again later",
        (_, Endpoint::Exec(_), Some(Exit::Code(0))) => {
            "Check its arguments: many agents need one, such as `acp`"
        }
        (_, Endpoint::Exec(_), _) => "Run `acp-relay try` with the same command to see more",
        (_, _, Some(_)) => "Its machine has the reason, in the log of the relay or of the agent",
        _ if !end.answered => "Check that an ACP agent listens there, and how it is reached",
        _ => "Check that its machine is reached and that it runs there, and start again",
    };
    format!("{address}: {what}. {remedy}")
}

fn of_agent(end: &End) -> u8 {
    if let Some(refused) = end.refused {
        return match refused {
            ConnectRefusal::Unavailable => UNAVAILABLE,
            ConnectRefusal::Forbidden => FORBIDDEN,
            ConnectRefusal::Protocol => PROTOCOL,
        };
    }
    let [client, agent] = [Side::Client, Side::Agent].map(|side| end.counts.received(side).frames);
    let is_cut =
        end.lost || end.counts.note("answered_for_peer") > 0 || (client == 0 && agent == 0);
    match (end.exit, &end.cause) {
        (Some(Exit::Code(0)), _) if end.is_without_answer() => PROTOCOL,
        (Some(Exit::Code(code)), _) => u8::try_from(code & 0xff).unwrap_or(u8::MAX),
        (Some(Exit::Signal(signal)), _) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        (None, Cause::Violation(_)) => PROTOCOL,
        (None, Cause::AgentLeft) if is_cut => UNAVAILABLE,
        (None, _) => SUCCESS,
    }
}
