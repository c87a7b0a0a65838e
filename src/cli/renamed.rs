//! Old names of flags, limits, keys and values: each is an error that gives the new name.
//!
//! The flag parser, the limit parser and the configuration reader look here before they search for
//! similar names.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// An old name and the new one.
type Names = &'static [(&'static str, &'static str)];

/// Flags, without their dashes, and keys of the configuration file.
const FLAGS: Names = &[
    ("elsewhere", "other-machine"),
    ("patience", "response-timeout"),
    ("unasked", "default-permission"),
];

/// Limits, on the command line and in `[limits]`.
const LIMITS: Names = &[
    ("agent-connect-kept", "agent-connect-kept-runs"),
    ("http-stall", "http-write-timeout"),
    ("http-strangers", "http-unknown-sessions"),
    ("http-unopened", "http-stream-open"),
    ("kept-for-return", "reconnect-bytes"),
    ("last-words", "close-grace"),
    ("of-principal", "per-principal"),
    ("offences", "oversized-messages"),
    ("recheck", "credential-check"),
    ("return-grace", "reconnect-grace"),
    ("return-turn", "reconnect-turn"),
    ("silence", "tcp-user-timeout"),
    ("spawns", "agent-starts"),
    ("stderr-kept", "stderr-bytes"),
    ("strangers", "unauthenticated-sockets"),
    ("strays", "invalid-messages"),
];

/// Values of `--at`.
const VALUES: Names = &[("heard", "received")];

/// Says what an old limit is called now.
pub(super) fn limit(name: &str) -> Option<String> {
    Some(format!("`{name}` is now `{}`", new_name(LIMITS, name)?))
}

/// The new name of an old key of the configuration file.
pub(super) fn key(name: &str) -> Option<&'static str> {
    new_name(FLAGS, name).or_else(|| new_name(LIMITS, name))
}

/// Replaces the suggestions of an error about an old flag or value by the new name; `false` if the
/// error is about something else.
pub(super) fn explain(error: &mut clap::Error) -> bool {
    let text = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let arg = text(ContextKind::InvalidArg);
    let (old, dashes) = match error.kind() {
        ErrorKind::UnknownArgument => (arg.split('=').next().unwrap_or_default().to_owned(), "--"),
        ErrorKind::InvalidValue if arg.starts_with("--at ") => {
            (text(ContextKind::InvalidValue), "")
        }
        _ => return false,
    };
    let names = if dashes.is_empty() { VALUES } else { FLAGS };
    let Some(new) = old
        .strip_prefix(dashes)
        .and_then(|old| new_name(names, old))
    else {
        return false;
    };
    for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedValue] {
        error.remove(kind);
    }
    let hint = format!("`{old}` is now `{dashes}{new}`");
    error.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(vec![hint.into()]),
    );
    true
}

fn new_name(names: Names, old: &str) -> Option<&'static str> {
    let found = names.iter().find(|(name, _)| *name == old);
    found.map(|(_, new)| *new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_are_replaced() {
        for (old, new) in LIMITS {
            assert!(jsonrpc::limits::Limit::named(new).is_some(), "{new}");
            let error = super::super::limits::parse(&format!("{old}=1")).expect_err(old);
            assert!(
                error.ends_with(&format!("`{old}` is now `{new}`")),
                "{error}"
            );
        }
    }
}
