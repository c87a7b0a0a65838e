//! `--limit NAME=VALUE`: the limits of `jsonrpc::limits`, by name.

use std::sync::Arc;

use super::renamed;
use jsonrpc::limits::{LIMITS, Limit, size};
use jsonrpc::{Limits, did_you_mean};

/// Widest line of `--help`.
const WIDTH: usize = 98;

/// A limit and its new value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) limit: &'static Limit,
    pub(super) value: u64,
}

/// The names, defaults and meanings, for `--help`.
pub(super) fn help() -> String {
    let mut text = "Limits (--limit NAME=VALUE; sizes in bytes or with KiB, MiB, GiB; times \
                    with s or ms, or in seconds):"
        .to_owned();
    let defaults = Limits::default();
    let spelled: Vec<String> = LIMITS
        .iter()
        .map(|limit| format!("{}={}", limit.name, limit.text(limit.get(&defaults))))
        .collect();
    let column = spelled.iter().map(String::len).max().unwrap_or(0) + 4;
    for (limit, spelled) in LIMITS.iter().zip(&spelled) {
        text.push_str(&format!("\n  {spelled:width$}", width = column - 2));
        let lines = wrap(limit.about, WIDTH - column);
        text.push_str(&lines.join(&format!("\n{:column$}", "")));
    }
    text
}

/// Breaks a text into lines of at most `width` characters.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Parses `NAME=VALUE`.
pub(super) fn parse(text: &str) -> Result<Setting, String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("expected NAME=VALUE, such as connections=100")?;
    let names = LIMITS.iter().map(|limit| limit.name.as_str());
    let limit = Limit::named(name).ok_or_else(|| {
        let remedy = renamed::limit(name)
            .unwrap_or_else(|| did_you_mean(name, names, "`acp-relay --help` lists them"));
        format!("there is no limit called `{name}`; {remedy}")
    })?;
    let value = limit.read(value)?;
    Ok(Setting { limit, value })
}

/// These limits with some set.
pub(super) fn apply(limits: &Limits, settings: &[Setting]) -> Arc<Limits> {
    let mut limits = limits.clone();
    for Setting { limit, value } in settings {
        limit.set(&mut limits, *value);
    }
    Arc::new(limits)
}

/// Parses a number of bytes.
///
/// # Errors
/// What was expected.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    size(text).ok_or_else(|| "expected a number of bytes, such as 512MiB or 10GiB".to_owned())
}
