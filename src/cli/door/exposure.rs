//! Listeners that are too open: refused, or warned of.

use super::DoorArgs;
use crate::transport::{Endpoint, OpenError, OpenErrorKind, Web};

/// Refuses a listener that nothing guards, and says what would guard it.
pub(in crate::cli) fn check(endpoint: &Endpoint, args: &DoorArgs) -> Result<(), OpenError> {
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
                "a byte stream shows no token, and --require-token wants one",
                "Listen on ws:// or http:// instead",
            );
        }
        return Ok(());
    }
    // A listener that lets everybody in has no token to hide from those on the way.
    if args.dangerously_no_auth {
        return Ok(());
    }
    match endpoint {
        Endpoint::Web(Web { tls: true, .. }) => Ok(()),
        Endpoint::Web(_) if args.dangerously_plaintext => Ok(()),
        Endpoint::Web(_) => refused(
            "this address can be reached from other machines, and without TLS whoever is on the \
             way reads the token and can then run the agent",
            "Listen on wss:// or https:// with --tls-cert and --tls-key, or on 127.0.0.1 and reach \
             it through ssh; or accept the risk with --dangerously-plaintext, or let anybody in \
             with --dangerously-no-auth",
        ),
        _ => refused(
            "this address can be reached from other machines, and whoever reaches it can run the \
             agent, because a byte stream shows no token",
            "Listen on wss://, or on 127.0.0.1 or a Unix socket and reach it through ssh, or \
             accept the risk with --dangerously-no-auth",
        ),
    }
}

/// What is dangerous about a listener that was asked for all the same.
pub(super) fn warning(endpoint: &Endpoint, args: &DoorArgs) -> Option<String> {
    if endpoint.is_loopback() {
        return None;
    }
    let in_clear = !matches!(endpoint, Endpoint::Web(Web { tls: true, .. }));
    if args.dangerously_no_auth {
        let what = "whoever reaches it can run the agent (--dangerously-no-auth)";
        return Some(format!("{endpoint}: {what}"));
    }
    in_clear.then(|| {
        let what = "tokens can be read on their way (--dangerously-plaintext)";
        format!("{endpoint}: {what}")
    })
}
