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
    #[arg(long, id = "auth.require-token")]
    #[arg(conflicts_with_all = ["auth.no-auth-loopback", "auth.dangerously-no-auth"])]
    pub(in crate::cli) require_token: bool,
    /// A file with your own token, instead of the one in the state directory
    #[arg(long, id = "auth.token-file", value_name = "FILE")]
    #[arg(env = "ACP_RELAY_TOKEN_FILE", hide_env_values = true)]
    pub(in crate::cli) token_file: Option<PathBuf>,
    /// Admit every user of this machine who connects to a loopback listener
    #[arg(long, id = "auth.no-auth-loopback")]
    pub(in crate::cli) no_auth_loopback: bool,
    /// Listen beyond this machine although anyone who reaches the port can then run the agent
    #[arg(long, id = "auth.dangerously-no-auth")]
    pub(in crate::cli) dangerously_no_auth: bool,
    /// Listen beyond this machine without TLS, although tokens can then be read in transit
    #[arg(long, id = "auth.dangerously-plaintext")]
    pub(in crate::cli) dangerously_plaintext: bool,
    /// The names accepted in certificates, and their agents; all names and all agents if `None`.
    /// Only a file sets it: without one there is one agent.
    #[arg(skip)]
    pub(in crate::cli) certificates: Option<BTreeMap<String, Agents>>,
}
