//! The flags of admission, and the listeners that are too exposed for them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;

use auth::Agents;
use transport::{Endpoint, HttpEndpoint, OpenError, OpenErrorKind};

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

/// Rejects a listener without authentication, and names the remedy.
pub(in crate::cli) fn check(endpoint: &Endpoint, args: &AdmissionArgs) -> Result<(), OpenError> {
    let refused = |what: &str, remedy: &str| {
        Err(OpenError::new(OpenErrorKind::Forbidden, endpoint, what).with_remedy(remedy))
    };
    if endpoint.is_loopback() {
        if args.require_token && matches!(endpoint, Endpoint::Tcp { .. }) {
            return refused(
                "a byte stream has no token, and --require-token requires one",
                "Listen on ws:// or http:// instead",
            );
        }
        return Ok(());
    }
    // Without authentication there is no token to protect in transit.
    if args.dangerously_no_auth {
        return Ok(());
    }
    match endpoint {
        Endpoint::Http(HttpEndpoint { tls: true, .. }) => Ok(()),
        Endpoint::Http(_) if args.dangerously_plaintext => Ok(()),
        Endpoint::Http(_) => refused(
            "this address can be reached from other machines, and without TLS others on the network \
             can read the token and then run the agent",
            "Listen on wss:// or https:// with --tls-cert and --tls-key, or on 127.0.0.1 and reach \
             it through ssh; or accept the risk with --dangerously-plaintext, or disable \
             authentication with --dangerously-no-auth",
        ),
        _ => refused(
            "this address can be reached from other machines, and anyone who reaches it can run the \
             agent, because a byte stream has no token",
            "Listen on wss://, or on 127.0.0.1 or a Unix socket and reach it through ssh, or \
             accept the risk with --dangerously-no-auth",
        ),
    }
}

/// The warning about a dangerous listener that was explicitly allowed.
pub(super) fn warning(endpoint: &Endpoint, args: &AdmissionArgs) -> Option<String> {
    let in_clear = !matches!(endpoint, Endpoint::Http(HttpEndpoint { tls: true, .. }));
    let what = if endpoint.is_loopback() {
        return None;
    } else if args.dangerously_no_auth {
        "anyone who reaches it can run the agent (--dangerously-no-auth)"
    } else if in_clear {
        "tokens can be read in transit (--dangerously-plaintext)"
    } else {
        return None;
    };
    Some(format!("{endpoint}: {what}"))
}
