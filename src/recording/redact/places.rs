//! Decides which places in a message are secret, and which belong to the protocol.
//!
//! See `names` for suggestive names, `walk` for the replacement.

use std::ops::Range;
use std::sync::LazyLock;

use serde_json::Value;

use super::hits::HitKind;
use super::level::Level;
use super::named_secrets::{is_key_like, is_secret_value};
use super::names::{
    is_count, is_directory, is_group, is_secret_member, is_secret_method, suggests_secret,
};
use super::pattern::PointerPattern;
use super::random::is_random;
use super::table::{List, words};
use crate::recording::surrogates::parse_json;
use crate::recording::tokens::{Token, Tokens};

/// Members whose short, plain text belongs to the protocol: kept in mode `structure`.
static PROTOCOL_MEMBERS: List = LazyLock::new(|| words(include_str!("tables/protocol.txt")));

/// The types of JSON Schema.
const SCHEMA_TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// Minimum digits of a number that a suggestive name beside it makes a secret.
const MIN_DIGITS: usize = 6;

/// The current place of a walk.
pub(super) struct Place<'a> {
    pub(super) text: &'a [u8],
    pub(super) levels: Vec<Level>,
    /// Places that the user made secret.
    pub(super) patterns: &'a [PointerPattern],
    /// The message is an authentication request, or answers one.
    pub(super) authenticates: bool,
    /// The depth of the members of a message: more than one in a batch.
    pub(super) member_depth: usize,
    /// Fields of an answer that were requested as secrets.
    pub(super) fields: &'a [&'a str],
}

impl Place<'_> {
    /// Whether a method of the message, or of one of a batch, is a secret one. If a message has two
    /// methods, either counts.
    pub(super) fn is_authentication(&self) -> bool {
        let has = |word: &[u8]| memchr::memmem::find(self.text, word).is_some();
        if !has(b"uthenticate") && !has(b"\\u00") {
            return false;
        }
        let mut tokens = Tokens::new(self.text);
        let mut named = false;
        while let Some(token) = tokens.next() {
            match token {
                _ if tokens.depth() != self.member_depth => {}
                Token::Key(at) => named = self.decode(&at) == "method",
                Token::String(at) if named && is_secret_method(self.decode(&at).as_bytes()) => {
                    return true;
                }
                _ => {}
            }
        }
        false
    }

    /// Whether a string in a secret place is descriptive and not the secret: the method of
    /// `authenticate`, a type of JSON Schema, the provider that needs the key.
    pub(super) fn is_description(&self, inner: &[u8]) -> bool {
        let Some(level) = self.levels.last().filter(|level| level.is_object) else {
            return false;
        };
        if self.matches_pattern() || self.levels.iter().any(|level| level.by_pointer) {
            return false;
        }
        match level.name.as_str() {
            "methodId" => self.authenticates && self.levels.len() == self.member_depth + 1,
            "type" => SCHEMA_TYPES.iter().any(|word| word.as_bytes() == inner),
            "provider" | "kind" | "title" | "label" | "description" => level.by_name,
            _ => false,
        }
    }

    /// Whether the current value is secret because of its place.
    pub(super) fn is_secret_place(&self) -> bool {
        let Some(level) = self.levels.last() else {
            return false;
        };
        level.secret
            || level.option
            || (level.is_object
                && (is_secret_member(&level.name) || self.fields.contains(&&*level.name)))
            || self.matches_pattern()
    }

    /// The rule that makes the current place secret.
    pub(super) fn rule_of_place(&self) -> HitKind {
        match self.matches_pattern() || self.levels.iter().any(|level| level.by_pointer) {
            true => HitKind::Pointer,
            false => HitKind::Place,
        }
    }

    /// The level of the container that begins here: whether it is secret as a whole, and why.
    pub(super) fn enter(&self) -> Level {
        let Some(level) = self.levels.last() else {
            return Level::default();
        };
        let name = if level.is_object {
            level.name.as_str()
        } else {
            ""
        };
        let place = match name {
            "env" | "headers" | "environment" => true,
            "params" | "result" => self.authenticates && self.levels.len() == self.member_depth,
            _ => false,
        };
        let named = is_secret_member(name) || self.fields.contains(&name);
        let pointed = self.matches_pattern();
        Level {
            secret: level.secret || place || named || pointed,
            by_name: !place && !pointed && (named && !level.secret || level.by_name),
            by_pointer: pointed,
            group: level.group || is_group(name),
            pair: match level.is_at_value() {
                true => Some(self.levels.len() - 1),
                false => level.pair,
            },
            ..Level::default()
        }
    }

    pub(super) fn matches_pattern(&self) -> bool {
        if self.patterns.is_empty() {
            return false;
        }
        let steps: Vec<String> = self.levels.iter().map(Level::step).collect();
        self.patterns
            .iter()
            .any(|pattern| pattern.matches(steps.iter().map(String::as_str)))
    }

    /// Whether a string belongs to the protocol or is needed to follow it.
    pub(super) fn is_protocol(&self, at: &Range<usize>) -> bool {
        let inner = &self.text[at.start + 1..at.end - 1];
        let known = self.levels.last().is_some_and(|level| {
            level.is_object
                && (PROTOCOL_MEMBERS.contains(&level.name.as_str())
                    || (self.levels.len() == self.member_depth && level.name == "id"))
        });
        known && is_identifier(inner)
    }

    /// Whether a string is an option such as `--api-key`, before its value.
    pub(super) fn is_option(&self, at: &Range<usize>) -> bool {
        let inner = &self.text[at.start + 1..at.end - 1];
        inner.starts_with(b"-")
            && !inner.contains(&b'=')
            && self.levels.last().is_some_and(|level| !level.is_object)
            && std::str::from_utf8(inner).is_ok_and(suggests_secret)
    }

    /// The decoded text of the string at `at`.
    pub(super) fn decode(&self, at: &Range<usize>) -> String {
        self.text_of(at).0
    }

    /// The same, and whether it is complete: lone surrogates cannot be decoded.
    pub(super) fn text_of(&self, at: &Range<usize>) -> (String, bool) {
        let whole = &self.text[at.clone()];
        let inner = whole.get(1..whole.len() - 1).unwrap_or_default();
        if memchr::memchr(b'\\', inner).is_none() {
            return (String::from_utf8_lossy(inner).into_owned(), true);
        }
        if let Ok(text) = serde_json::from_slice(whole) {
            return (text, true);
        }
        let text = match parse_json(whole) {
            Some(Value::String(text)) => text,
            _ => String::from_utf8_lossy(inner).into_owned(),
        };
        (text, false)
    }
}

/// Whether a text may be an identifier of the protocol.
pub(super) fn is_identifier(text: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_/.-".contains(byte);
    text.len() <= 48 && text.iter().all(plain) && !is_random(text)
}

/// Whether a string, including its quotes, or a number is the secret that a name beside it denotes.
pub(super) fn is_value(name: &str, whole: &[u8]) -> bool {
    let text = unquoted(whole);
    if !suggests_secret(name) {
        return is_secret_value(name.as_bytes(), text.unwrap_or(whole));
    }
    match text {
        Some(inner) => {
            let counted = inner.len() < MIN_DIGITS && inner.iter().all(u8::is_ascii_digit);
            !(is_directory(name, inner) || (counted && is_count(name)))
        }
        None => whole.len() >= MIN_DIGITS && !is_count(name),
    }
}

/// Whether the value of a secret session setting, including its quotes, is a secret and not a
/// choice among words.
pub(super) fn is_setting(whole: &[u8]) -> bool {
    unquoted(whole).is_some_and(is_key_like)
}

/// The contents of a string, without its quotes.
fn unquoted(whole: &[u8]) -> Option<&[u8]> {
    whole.strip_prefix(b"\"")?.strip_suffix(b"\"")
}
