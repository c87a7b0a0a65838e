//! The options of remote agents: TLS, and the headers and tokens sent to their servers.
//!
//! A token is never an argument, because every user of a machine can read those.

use std::env;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use rustix::fs::StatVfsMountFlags;

use super::endpoints::is_tls;
use super::state;
use crate::transport::{Endpoint, Pin, Setup};

/// The environment variable that holds a bearer token.
const BEARER: &str = "ACP_RELAY_BEARER";
/// Longest file with a token, in bytes.
const MAX_TOKEN: u64 = 16 << 10;

/// Options of remote agents.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Remote agents")]
pub(super) struct RemoteArgs {
    /// Certificates to trust for https:// and wss:// agents instead of the system's, PEM
    #[arg(id = "agents.tls-ca", long = "tls-ca", value_name = "FILE")]
    pub(super) tls_ca: Option<PathBuf>,
    /// The SHA-256 of the agent's certificate or of its public key, in hexadecimal or Base64;
    /// trusted whatever its issuer
    #[arg(id = "agents.pin-sha256", long = "pin-sha256", value_name = "HASH")]
    #[arg(conflicts_with = "agents.tls-ca")]
    pub(super) pin_sha256: Option<Pin>,
    /// A header for every HTTP request to the agent; may be given several times
    #[arg(id = "agents.headers", long = "header", value_name = "NAME: VALUE")]
    pub(super) headers: Vec<String>,
    /// A file of such headers, one per line, for secret ones such as an API key
    #[arg(id = "agents.header-file", long = "header-file", value_name = "FILE")]
    pub(super) header_file: Option<PathBuf>,
    /// A file with the bearer token for the agent; without it, the agent of the command line gets
    /// that of the variable ACP_RELAY_BEARER
    #[arg(id = "agents.bearer-file", long = "bearer-file", value_name = "FILE")]
    pub(super) bearer_file: Option<PathBuf>,
    /// Use HTTP/2 with http:// agents without negotiation; over TLS it is negotiated
    #[arg(id = "agents.http2-prior-knowledge", long = "http2-prior-knowledge")]
    pub(super) http2_prior_knowledge: bool,
}

impl RemoteArgs {
    /// Configures links to agents; without a file, the token is that of the environment.
    ///
    /// # Errors
    /// The options are inconsistent, or a file cannot be used.
    pub(super) fn apply(&self, setup: &mut Setup) -> Result<(), String> {
        self.set_up(setup)?;
        let token = env::var_os(BEARER).filter(|token| !token.is_empty());
        if let Some(token) = token.filter(|_| self.bearer_file.is_none()) {
            let token = token
                .to_str()
                .ok_or_else(|| format!("{BEARER} is not text"))?;
            let is_set = setup.request_headers.set_bearer(token);
            is_set.map_err(|fault| format!("{BEARER}: {fault}"))?;
        }
        Ok(())
    }

    /// Rejects options that do not apply to the agent. The token in the environment may be for
    /// another one.
    pub(super) fn check(&self, agent: &Endpoint) -> Result<(), String> {
        for (option, is_given) in [
            ("tls-ca", self.tls_ca.is_some()),
            ("pin-sha256", self.pin_sha256.is_some()),
            ("header", !self.headers.is_empty()),
            ("header-file", self.header_file.is_some()),
            ("bearer-file", self.bearer_file.is_some()),
            ("http2-prior-knowledge", self.http2_prior_knowledge),
        ] {
            if is_given {
                check_suits(option, agent)?;
            }
        }
        Ok(())
    }

    /// The same as `apply`, without the environment: its token is only for the agent on the command
    /// line.
    pub(super) fn set_up(&self, setup: &mut Setup) -> Result<(), String> {
        setup.tls.ca = self.tls_ca.clone();
        setup.tls.pin = self.pin_sha256;
        let headers = &mut setup.request_headers;
        headers.http2 = self.http2_prior_knowledge;
        for line in &self.headers {
            let added = headers.add(line);
            added.map_err(|fault| format!("--header: {fault}"))?;
        }
        if let Some(path) = &self.header_file {
            for line in read_secrets("--header-file", path)?.lines() {
                let added = headers.add(line);
                added.map_err(|fault| format!("--header-file: {}: {fault}", path.display()))?;
            }
        }
        if let Some(path) = &self.bearer_file {
            let is_set = headers.set_bearer(&read_secrets("--bearer-file", path)?);
            is_set.map_err(|fault| format!("--bearer-file: {}: {fault}", path.display()))?;
        }
        Ok(())
    }
}

/// Reads a small file of secrets that an option names. The target of a symbolic link is checked,
/// but not secrets mounted in a container; a pipe (`<(pass show far)`) is private.
fn read_secrets(option: &str, path: &Path) -> Result<String, String> {
    let shown = path.display();
    let unreadable = |fault| format!("{option}: {shown} cannot be read ({fault})");
    let file = File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    let read_only = || {
        let mount = rustix::fs::fstatvfs(&file);
        mount.is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::RDONLY))
    };
    if about.is_file() && !(is_mounted_secret(about.uid(), about.mode()) && read_only()) {
        let way_out = format!("; if that is not possible, use a pipe: <(cat {shown})");
        state::check_secret(path, &about).map_err(|fault| format!("{option}: {fault}{way_out}"))?;
    }
    let mut text = String::new();
    let read = file.take(MAX_TOKEN + 1).read_to_string(&mut text);
    if read.map_err(unreadable)? as u64 > MAX_TOKEN {
        return Err(format!("{option}: {shown} is too long for a token"));
    }
    Ok(text)
}

/// Whether a file on a read-only mount is a container's secret, readable by all in the container:
/// owned by root and not writable by others. Its user can neither change nor fix the permissions.
const fn is_mounted_secret(owner: u32, mode: u32) -> bool {
    owner == 0 && mode & 0o022 == 0
}

/// The agents that an option is for, unless it suits the one at `at`.
pub(super) fn unsuited(option: &str, at: &Endpoint) -> Option<&'static str> {
    let (suits, is_for) = match option {
        "args" | "cwd" | "env" | "inherit-env" => {
            (matches!(at, Endpoint::Exec(_)), "agents that we start")
        }
        "tls-ca" | "pin-sha256" => (is_tls(at), "agents behind TLS (https://, wss://)"),
        "header" | "headers" | "header-file" | "bearer-file" => (
            matches!(at, Endpoint::Http(_)),
            "agents behind HTTP (http://, https://, ws://, wss://)",
        ),
        "http2-prior-knowledge" => (
            matches!(at, Endpoint::Http(_)) && !is_tls(at),
            "agents behind HTTP in clear (http://)",
        ),
        "framing" | "agent-framing" => (
            at.is_byte_stream(),
            "agents on byte streams (tcp://, unix:, commands)",
        ),
        _ => return None,
    };
    (!suits).then_some(is_for)
}

/// Rejects an option of the command line that does not suit the agent.
pub(super) fn check_suits(option: &str, agent: &Endpoint) -> Result<(), String> {
    let is_for = unsuited(option, agent);
    is_for.map_or(Ok(()), |is_for| {
        Err(format!(
            "--{option} is for {is_for}, and the agent is {agent}"
        ))
    })
}

/// Warns of a token that is sent unencrypted.
pub(super) fn warn_in_clear(agent: &Endpoint, setup: &Setup) {
    let has_token = setup.request_headers.headers.contains_key("authorization");
    if has_token && !is_tls(agent) && !agent.is_loopback() {
        tracing::warn!(%agent, "the token for the agent is sent unencrypted; use https:// or wss://");
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn header_file_has_one_header_per_line() {
        let dir = tempfile::tempdir().expect("a folder can be made");
        let path = dir.path().join("headers");
        let set_up = |text: &str| {
            fs::write(&path, text).expect("a file can be written");
            fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("it is ours");
            let args = RemoteArgs {
                header_file: Some(path.clone()),
                ..RemoteArgs::default()
            };
            let mut setup = Setup::default();
            args.set_up(&mut setup)
                .map(|()| setup.request_headers.headers)
        };
        let headers = set_up("X-Api-Key: k\nx-team: a\n").expect("they are headers");
        assert_eq!(
            headers.get("x-api-key").map(|value| value.as_bytes()),
            Some(&b"k"[..])
        );
        assert_eq!(headers.len(), 2);
        let fault = set_up("X-Api-Key k\n").expect_err("it is none");
        assert!(
            fault.starts_with("--header-file: ") && !fault.contains("Api-Key k"),
            "{fault}"
        );
    }

    #[test]
    fn mounted_secret_must_be_owned_by_root_and_not_writable() {
        for (owner, mode, good) in [
            (0, 0o100_444, true),
            (0, 0o100_644, true),
            (0, 0o100_440, true),
            (0, 0o100_666, false),
            (0, 0o100_464, false),
            (1000, 0o100_444, false),
        ] {
            assert_eq!(is_mounted_secret(owner, mode), good, "{owner} {mode:o}");
        }
    }

    #[test]
    fn secret_readable_by_others_is_refused() {
        let dir = tempfile::tempdir().expect("a folder can be made");
        let (path, link) = (dir.path().join("token"), dir.path().join("link"));
        fs::write(&path, "secret").expect("a file can be written");
        symlink(&path, &link).expect("a link can be made");
        for (mode, good) in [(0o600, true), (0o400, true), (0o644, false), (0o640, false)] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
            for path in [&path, &link] {
                let read = read_secrets("--bearer-file", path);
                assert_eq!(read.is_ok(), good, "{mode:o} {read:?}");
            }
        }
        let fault = read_secrets("--bearer-file", &path).expect_err("others can read it");
        assert!(
            fault.starts_with("--bearer-file: ") && fault.contains("chmod go-rwx"),
            "{fault}"
        );
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("it is ours");
        fs::write(&path, "x".repeat(20_000)).expect("a file can be written");
        assert!(
            read_secrets("--bearer-file", &path)
                .expect_err("long")
                .contains("too long")
        );
    }
}
