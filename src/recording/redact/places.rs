//! Decides which places in a message are secret, and which belong to the protocol.
//!
//! See `names` for suggestive names, `walk` for the replacement.

use std::ops::Range;
use std::sync::LazyLock;

use serde_json::Value;

use super::names::{
    is_certain, is_directory, is_group, is_secret_member, is_secret_method, is_secret_value,
    is_short_name, may_be_password, may_hold_secret, suggests_secret,
};
use super::random::{is_random, reads_as_words};
use super::redactor::HitKind;
use super::table::{List, words};
use super::tokens::{Token, Tokens};
use super::walk::{Level, Walk};
use crate::surrogates::parse_json;

/// Members whose short, plain text belongs to the protocol: kept in mode `structure`.
static PROTOCOL_MEMBERS: List = LazyLock::new(|| words(include_str!("tables/protocol.txt")));

/// The types of JSON Schema.
const SCHEMA_TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

impl Walk<'_> {
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
        if self.rule_of_place() == HitKind::Pointer {
            return false;
        }
        match level.name.as_str() {
            "methodId" => self.authenticates && self.levels.len() == self.member_depth + 1,
            "type" => SCHEMA_TYPES.iter().any(|word| word.as_bytes() == inner),
            "provider" | "kind" | "title" | "label" | "description" => level.by_name,
            _ => false,
        }
    }

    /// Whether a member with that name is secret.
    fn is_secret_name(&self, name: &str) -> bool {
        is_secret_member(name) || self.fields.contains(&name)
    }

    /// Whether the current value is secret because of its place.
    pub(super) fn is_secret_place(&self) -> bool {
        let Some(level) = self.levels.last() else {
            return false;
        };
        let named = || level.is_object && self.is_secret_name(&level.name);
        level.secret || level.option || named() || self.matches_pattern()
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
        let name = if level.is_object { &*level.name } else { "" };
        let place = match name {
            "env" | "headers" | "environment" => true,
            "params" | "result" => self.authenticates && self.levels.len() == self.member_depth,
            _ => false,
        };
        let named = self.is_secret_name(name);
        let pointed = self.matches_pattern();
        let own = level.is_at_value().then(|| self.levels.len() - 1);
        Level {
            secret: level.secret || place || named || pointed,
            by_name: !place && !pointed && (named && !level.secret || level.by_name),
            by_pointer: pointed,
            group: level.group || is_group(name),
            pair: own.or(level.pair),
            ..Level::default()
        }
    }

    /// Whether the string at `at` is a secret by the name of the current member. Escapes look
    /// random, so the decoded text is judged.
    pub(super) fn is_secret_text(&self, at: &Range<usize>) -> bool {
        let Some(level) = self.levels.last() else {
            return false;
        };
        let name = level.name.as_bytes();
        let is_telling = || suggests_secret(&level.name) || is_short_name(name);
        let is_secret_name = level.group || (level.is_object && is_telling());
        let may_hold = level.is_object && may_hold_secret(name);
        if !is_secret_name && !may_hold {
            return false;
        }
        let text = self.decode(at);
        let text = text.as_bytes();
        let looks_random = || is_random(text) || is_certain(name) && may_be_password(text);
        let is_directory = is_directory(&level.name, text);
        (is_secret_name && !is_directory && looks_random() && !reads_as_words(text))
            || (may_hold && is_secret_value(name, text))
    }

    /// Whether a string belongs to the protocol or is needed to follow it.
    pub(super) fn is_protocol(&self, at: &Range<usize>) -> bool {
        let inner = &self.text[at.start + 1..at.end - 1];
        let known = self.levels.last().is_some_and(|level| {
            let is_id = self.levels.len() == self.member_depth && level.name == "id";
            level.is_object && (is_id || PROTOCOL_MEMBERS.contains(&&*level.name))
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
