//! The flags of admission.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;

use crate::auth::Agents;

/// Options of admission.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Authentication")]
pub(in crate::cli) struct AdmissionArgs {
    /// Require a token also from your own programs on this machine
    #[arg(long, conflicts_with_all = ["no_auth_loopback", "dangerously_no_auth"])]
    pub(in crate::cli) require_token: bool,
    /// A file with your own token, instead of the one in the state directory
    #[arg(
        long,
        value_name = "FILE",
        env = "ACP_RELAY_TOKEN_FILE",
        hide_env_values = true
    )]
    pub(in crate::cli) token_file: Option<PathBuf>,
    /// Admit every user of this machine who connects to a loopback listener
    #[arg(long)]
    pub(in crate::cli) no_auth_loopback: bool,
    /// Certificate authorities of client certificates, accepted instead of a token, PEM
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) tls_client_ca: Option<PathBuf>,
    /// Listen beyond this machine although anyone who reaches the port can then run the agent
    #[arg(long)]
    pub(in crate::cli) dangerously_no_auth: bool,
    /// Listen beyond this machine without TLS, although tokens can then be read in transit
    #[arg(long)]
    pub(in crate::cli) dangerously_plaintext: bool,
    /// The names accepted in certificates, and their agents; all names and all agents if `None`.
    /// Only a file sets it: without one there is one agent.
    #[arg(skip)]
    pub(in crate::cli) certificates: Option<BTreeMap<String, Agents>>,
}

impl AdmissionArgs {
    /// These options, with those of `file` where one is not given. A flag that requires a token is
    /// not undone by the file, and vice versa.
    pub(in crate::cli) fn with_defaults(&self, file: &Self) -> Self {
        let lenient = self.no_auth_loopback || self.dangerously_no_auth;
        Self {
            require_token: self.require_token || file.require_token && !lenient,
            token_file: self.token_file.clone().or_else(|| file.token_file.clone()),
            no_auth_loopback: self.no_auth_loopback || file.no_auth_loopback && !self.require_token,
            tls_client_ca: self.tls_client_ca.clone(),
            dangerously_no_auth: self.dangerously_no_auth
                || file.dangerously_no_auth && !self.require_token,
            dangerously_plaintext: self.dangerously_plaintext || file.dangerously_plaintext,
            certificates: file.certificates.clone(),
        }
    }
}
