//! Why ssh has not led to a relay, and what to do.

use crate::published::IS_PUBLISHED;
use crate::{Endpoint, Exit, OpenError, OpenErrorKind, SshEndpoint};

pub(super) const INSTALL: &str = match IS_PUBLISHED {
    true => "`uv tool install acp-relay`, `npm i -g acp-relay` or `cargo install acp-relay`",
    false => "a package made by `.release/build`, or `cargo install --locked --path .` in a clone",
};
/// What ssh prints when a connection is lost.
const LOST: [&str; 4] = [
    "Connection reset by",
    "kex_exchange_identification",
    "closed by remote host",
    "Broken pipe",
];
/// What a loader prints when a program was built for another C library.
const LOADER: [&str; 2] = ["GLIBC_", "rror loading shared librar"];

/// What to do when ssh does not log in.
pub(super) fn advice(at: &SshEndpoint) -> String {
    let port = at.port.map(|port| format!("-p {port} "));
    let user = at.user.as_ref().map(|user| format!("{user}@"));
    let (port, user) = (port.unwrap_or_default(), user.unwrap_or_default());
    let host = &at.host;
    format!("make `ssh {port}{user}{host} true` work in a terminal, without a question")
}

/// No acp-relay works there.
pub(super) fn missing(to: &Endpoint, what: String) -> OpenError {
    let remedy = format!(
        "`acp-relay try {to}` in a terminal copies it there; or install it there: {INSTALL}"
    );
    OpenError::new(OpenErrorKind::Missing, to, what).with_remedy(remedy)
}

/// ssh has not logged in.
pub(super) fn ssh_failed(to: &Endpoint, at: &SshEndpoint, stderr: &str, what: &str) -> OpenError {
    use OpenErrorKind::{Forbidden, Lost, NoHost, Unavailable};
    let is = |words: &[&str]| words.iter().any(|word| stderr.contains(word));
    let kind = if is(&["Could not resolve hostname"]) {
        NoHost
    } else if is(&["Permission denied", "verification failed"]) {
        Forbidden
    } else if is(&LOST) {
        Lost
    } else {
        Unavailable
    };
    OpenError::new(kind, to, format!("{what}; {}", advice(at)))
}

pub(super) fn not_started(to: &Endpoint, error: OpenError) -> OpenError {
    let what = match error.kind {
        OpenErrorKind::Unavailable => {
            "ssh is not installed on this machine; install the client of OpenSSH".to_owned()
        }
        _ => error.what,
    };
    OpenError {
        endpoint: to.to_string(),
        what,
        ..error
    }
}

/// Why ssh has ended before there was a connection. `stderr` is the end of its stderr, and of that
/// of the program there.
pub(super) fn failed(to: &Endpoint, at: &SshEndpoint, exit: Exit, stderr: &str) -> OpenError {
    use OpenErrorKind::{CannotCreate, Forbidden, Protocol, System, Unavailable};
    let host = &at.host;
    let mut lines = stderr.lines().filter(|line| !line.trim().is_empty());
    let last = lines.next_back().map_or("it says nothing", str::trim);
    let mut reports = stderr.lines().rev();
    let report = reports.find_map(|line| line.trim_end().strip_prefix("acp-relay: "));
    let (kind, what) = match (exit, report) {
        (Exit::Code(64), None) if stderr.contains("over-ssh") => {
            return missing(to, format!("the acp-relay on {host} is too old for ssh://"));
        }
        // Of the system that starts programs, and of its loader, which writes the program's name first.
        (Exit::Code(126), _) => return missing(to, format!("acp-relay does not run on {host}")),
        (Exit::Code(1 | 127), _) if LOADER.iter().any(|word| stderr.contains(word)) => {
            return missing(to, format!("acp-relay does not run on {host}"));
        }
        (Exit::Code(127), _) => {
            return missing(to, format!("acp-relay is not installed on {host}"));
        }
        (Exit::Code(255), None) => {
            return ssh_failed(to, at, stderr, &format!("ssh failed: {last}"));
        }
        (Exit::Code(code), Some(report)) => {
            let kind = match code {
                71 => System,
                73 => CannotCreate,
                76 => Protocol,
                77 => Forbidden,
                _ => Unavailable,
            };
            (kind, format!("acp-relay on {host}: {report}"))
        }
        _ => (
            Unavailable,
            format!("ssh ended with {exit} and no acp-relay on {host}: {last}"),
        ),
    };
    OpenError::new(kind, to, what)
}
