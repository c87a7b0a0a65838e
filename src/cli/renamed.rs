//! Old names of flags, limits, keys and values: each is an error that gives the new name.
//!
//! The flag parser, the limit parser and the configuration reader look here before they search for
//! similar names.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// An old name and the new one.
type Names = &'static [(&'static str, &'static str)];

/// Flags, with their dashes.
const FLAGS: Names = &[
    ("--elsewhere", "--other-machine"),
    ("--patience", "--response-timeout"),
    ("--unasked", "--default-permission"),
];

/// Keys of the configuration file.
const KEYS: Names = &[("unasked", "default-permission")];

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
    new_name(LIMITS, name).map(|new| hint(name, new))
}

/// The new name of an old key of the configuration file.
pub(super) fn key(name: &str) -> Option<&'static str> {
    new_name(KEYS, name).or_else(|| new_name(LIMITS, name))
}

/// Replaces the suggestions of an error about an old flag or value by the new name; `false` if the
/// error is about something else.
pub(super) fn explain(error: &mut clap::Error) -> bool {
    let text = |kind| error.get(kind).map(ToString::to_string);
    let arg = text(ContextKind::InvalidArg).unwrap_or_default();
    let (names, old) = match error.kind() {
        ErrorKind::UnknownArgument => (FLAGS, arg.split('=').next().unwrap_or_default().to_owned()),
        ErrorKind::InvalidValue if arg.starts_with("--at ") => {
            (VALUES, text(ContextKind::InvalidValue).unwrap_or_default())
        }
        _ => return false,
    };
    let Some(new) = new_name(names, &old) else {
        return false;
    };
    for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedValue] {
        error.remove(kind);
    }
    let hints = ContextValue::StyledStrs(vec![hint(&old, new).into()]);
    error.insert(ContextKind::Suggested, hints);
    true
}

fn new_name(names: Names, old: &str) -> Option<&'static str> {
    let found = names.iter().find(|(name, _)| *name == old);
    found.map(|(_, new)| *new)
}

fn hint(old: &str, new: &str) -> String {
    format!("`{old}` is now `{new}`")
}

#[cfg(test)]
mod tests {
    use super::super::{config, limits};
    use super::*;
    use crate::jsonrpc::limits::Limit;

    #[test]
    fn old_names_are_replaced() {
        for (old, new) in LIMITS {
            assert!(Limit::named(new).is_some(), "{new}");
            let error = limits::parse(&format!("{old}=1")).expect_err(old);
            let remedy = format!("`{old}` is now `{new}`");
            assert!(error.ends_with(&remedy), "{error}");
        }
        for (old, new) in KEYS {
            let example = config::example();
            assert!(example.contains(&format!("\n#{new} = ")), "{new}");
            assert!(!example.contains(&format!("\n#{old} = ")), "{old}");
        }
    }
}
