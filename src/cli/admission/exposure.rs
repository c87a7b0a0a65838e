//! Listeners that are too exposed: rejected, or warned about.

use super::AdmissionArgs;
use crate::transport::{Endpoint, HttpEndpoint, OpenError, OpenErrorKind};

/// Rejects a listener without authentication, and names the remedy.
pub(in crate::cli) fn check(endpoint: &Endpoint, args: &AdmissionArgs) -> Result<(), OpenError> {
    let refused = |what: &str, remedy: &str| {
        Err(OpenError {
            kind: OpenErrorKind::Forbidden,
            endpoint: endpoint.to_string(),
            what: what.to_owned(),
            remedy: Some(remedy.to_owned()),
        })
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
    if endpoint.is_loopback() {
        return None;
    }
    let in_clear = !matches!(endpoint, Endpoint::Http(HttpEndpoint { tls: true, .. }));
    if args.dangerously_no_auth {
        let what = "anyone who reaches it can run the agent (--dangerously-no-auth)";
        return Some(format!("{endpoint}: {what}"));
    }
    in_clear.then(|| {
        let what = "tokens can be read in transit (--dangerously-plaintext)";
        format!("{endpoint}: {what}")
    })
}
