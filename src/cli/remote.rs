//! The options of remote agents: TLS, and the headers and tokens sent to their servers.
//!
//! A token is never an argument, because every user of a machine can read those.

use std::env;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use hyper::header::AUTHORIZATION;
use rustix::fs::StatVfsMountFlags;

use super::bounded;
use super::state;
use transport::{Endpoint, Pin, Setup};

/// The environment variable that holds a bearer token.
const BEARER: &str = "ACP_RELAY_BEARER";
/// Longest file with a token, in bytes.
const MAX_TOKEN: u64 = 16 << 10;

/// Options of remote agents.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Remote agents")]
pub(super) struct RemoteArgs {
    /// Certificates to trust for https:// and wss:// agents instead of the system's, PEM
    #[arg(long, id = "agents.tls-ca", value_name = "FILE")]
    pub(super) tls_ca: Option<PathBuf>,
    /// The SHA-256 of the agent's certificate or of its public key, in hexadecimal or Base64;
    /// trusted whatever its issuer
    #[arg(long, id = "agents.pin-sha256", value_name = "HASH")]
    #[arg(conflicts_with = "agents.tls-ca")]
    pub(super) pin_sha256: Option<Pin>,
    /// A header for every HTTP request to the agent; may be given several times
    #[arg(id = "agents.headers", long = "header", value_name = "NAME: VALUE")]
    pub(super) headers: Vec<String>,
    /// A file of such headers, one per line, for secret ones such as an API key
    #[arg(long, id = "agents.header-file", value_name = "FILE")]
    pub(super) header_file: Option<PathBuf>,
    /// A file with the bearer token for the agent; without it, the agent of the command line gets
    /// that of the variable ACP_RELAY_BEARER
    #[arg(long, id = "agents.bearer-file", value_name = "FILE")]
    pub(super) bearer_file: Option<PathBuf>,
    /// Use HTTP/2 with http:// agents without negotiation; over TLS it is negotiated
    #[arg(long, id = "agents.http2-prior-knowledge")]
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
            let is_set = setup.request_headers.set_bearer(&token.to_string_lossy());
            is_set.map_err(|fault| format!("{BEARER}: {fault}"))?;
        }
        Ok(())
    }

    /// Rejects options that do not apply to the agent. The token in the environment may be for
    /// another one.
    pub(super) fn check(&self, agent: &Endpoint) -> Result<(), String> {
        let options = [
            ("tls-ca", self.tls_ca.is_some()),
            ("pin-sha256", self.pin_sha256.is_some()),
            ("header", !self.headers.is_empty()),
            ("header-file", self.header_file.is_some()),
            ("bearer-file", self.bearer_file.is_some()),
            ("http2-prior-knowledge", self.http2_prior_knowledge),
        ];
        let mut given = options.iter().filter(|(_, is_given)| *is_given);
        given.try_for_each(|(option, _)| check_suits(option, agent))
    }

    /// The same as `apply`, without the environment: its token is only for the agent on the command
    /// line.
    pub(super) fn set_up(&self, setup: &mut Setup) -> Result<(), String> {
        setup.tls.ca = self.tls_ca.clone();
        setup.tls.pin = self.pin_sha256;
        let headers = &mut setup.request_headers;
        headers.http2 = self.http2_prior_knowledge;
        for line in &self.headers {
            headers
                .add(line)
                .map_err(|fault| format!("--header: {fault}"))?;
        }
        if let Some(path) = &self.header_file {
            let lines = read_secrets("--header-file", path)?;
            let added = lines.lines().try_for_each(|line| headers.add(line));
            added.map_err(|fault| format!("--header-file: {}: {fault}", path.display()))?;
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
pub(super) fn read_secrets(option: &str, path: &Path) -> Result<String, String> {
    let shown = path.display();
    let unreadable = |fault| format!("{option}: {shown} cannot be read ({fault})");
    let file = File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    let read_only = || {
        let mount = rustix::fs::fstatvfs(&file);
        mount.is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::RDONLY))
    };
    // A secret of a container, whose user can neither change nor fix the permissions.
    let is_mounted = about.uid() == 0 && about.mode() & 0o022 == 0 && read_only();
    if about.is_file() && !is_mounted {
        let way_out = format!("; if that is not possible, use a pipe: <(cat {shown})");
        state::check_secret(path, &about).map_err(|fault| format!("{option}: {fault}{way_out}"))?;
    }
    bounded::read_text(file, MAX_TOKEN).map_err(unreadable)
}

/// The agents that an option is for, unless it suits the one at `at`.
pub(super) fn unsuited(option: &str, at: &Endpoint) -> Option<&'static str> {
    let (suits, is_for) = match option {
        "args" | "check-folder" | "cwd" | "env" | "inherit-env" => {
            (matches!(at, Endpoint::Exec(_)), "agents that we start")
        }
        "tls-ca" | "pin-sha256" => (at.is_tls(), "agents behind TLS (https://, wss://)"),
        "header" | "headers" | "header-file" | "bearer-file" => (
            matches!(at, Endpoint::Http(_)),
            "agents behind HTTP (http://, https://, ws://, wss://)",
        ),
        "http2-prior-knowledge" => (
            matches!(at, Endpoint::Http(_)) && !at.is_tls(),
            "agents behind HTTP in clear (http://)",
        ),
        "framing" | "agent-framing" => (
            at.is_byte_stream(),
            "agents on byte streams (tcp://, unix:, ssh://, commands)",
        ),
        _ => return None,
    };
    (!suits).then_some(is_for)
}

/// Rejects an option of the command line that does not suit the agent.
pub(super) fn check_suits(option: &str, agent: &Endpoint) -> Result<(), String> {
    match unsuited(option, agent) {
        Some(is_for) => Err(format!(
            "--{option} is for {is_for}, and the agent is {agent}"
        )),
        None => Ok(()),
    }
}

/// Warns of a token that is sent unencrypted.
pub(super) fn warn_in_clear(agent: &Endpoint, setup: &Setup) {
    let has_token = setup.request_headers.headers.contains_key(AUTHORIZATION);
    if has_token && !agent.is_tls() && !agent.is_loopback() {
        tracing::warn!(%agent, "the token for the agent is sent unencrypted; use https:// or wss://");
    }
}
