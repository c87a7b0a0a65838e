//! The redaction of a recording: how much is kept, the hash key, the rules.
//!
//! `messages` applies it; see `walk` and `shapes` for how secrets are found.

use std::fmt;
use std::ops::Range;

use clap::ValueEnum;

use super::hits::{HitKind, Hits};
use super::pattern::PointerPattern;
use crate::recording::Redaction;

/// The name and version of the built-in rules.
pub const RULES: &str = "default@8";

/// What is redacted; later modes keep less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Mode {
    /// Nothing: secrets are recorded
    Full,
    /// Secrets
    #[default]
    Default,
    /// All text; lengths and hashes are kept
    Structure,
    /// All bodies
    Meta,
}

/// Replaces secrets.
pub struct Redactor {
    pub(super) mode: Mode,
    pub(super) patterns: Vec<PointerPattern>,
    key: [u8; 32],
}

/// A body without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redacted {
    /// The body.
    pub text: Vec<u8>,
    /// JSON Pointers of the replaced values.
    pub places: Vec<String>,
    /// The rules that applied, and how often.
    pub hits: Hits,
}

impl Mode {
    /// The mode with that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::from_str(name, false).ok()
    }

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Default => "default",
            Self::Structure => "structure",
            Self::Meta => "meta",
        }
    }
}

impl Redactor {
    /// Replaces what `mode` requires, and values at one of `patterns` (except in mode `full`).
    /// `key` is the key of the hashes: with it, guesses of a secret can be verified.
    #[must_use]
    pub fn new(mode: Mode, patterns: Vec<PointerPattern>, key: [u8; 32]) -> Self {
        Self {
            mode,
            patterns,
            key,
        }
    }

    /// How much is kept.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The description for the header of a recording.
    #[must_use]
    pub fn describe(&self) -> Redaction {
        let key = blake3::derive_key("acp-relay recording: the key's name", &self.key);
        Redaction {
            mode: self.mode.name().to_owned(),
            rules: match self.mode {
                Mode::Full => "none".to_owned(),
                _ => RULES.to_owned(),
            },
            key: hex(&key[..4]),
        }
    }

    /// The rule by which [`Redactor::text`] and [`Redactor::own_text`] redact.
    #[must_use]
    pub const fn text_rule(&self) -> HitKind {
        match self.mode {
            Mode::Full | Mode::Default => HitKind::Shape,
            Mode::Structure | Mode::Meta => HitKind::Text,
        }
    }

    /// The replacement of a secret.
    pub(super) fn mark(&self, secret: &[u8]) -> String {
        format!("‹redacted:{}›", self.hash(secret))
    }

    /// The replacement of a text in mode `structure`.
    pub(super) fn length_mark(&self, text: &[u8]) -> String {
        format!("‹{} bytes:{}›", text.len(), self.hash(text))
    }

    /// The text with the secrets in it replaced.
    pub(super) fn replace(&self, text: &[u8], secrets: &[Range<usize>]) -> Vec<u8> {
        let marks = secrets.iter().map(|secret| {
            let mark = self.mark(&text[secret.clone()]);
            (secret.clone(), mark.into_bytes())
        });
        splice(text, marks)
    }

    fn hash(&self, text: &[u8]) -> String {
        hex(&blake3::keyed_hash(&self.key, text).as_bytes()[..3])
    }
}

impl fmt::Debug for Redactor {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("mode", &self.mode)
            .field("patterns", &self.patterns)
            .finish_non_exhaustive()
    }
}

/// The text with other bytes in these places, which are in order.
pub(super) fn splice(
    text: &[u8],
    edits: impl IntoIterator<Item = (Range<usize>, Vec<u8>)>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut done = 0;
    for (at, with) in edits {
        out.extend_from_slice(&text[done..at.start]);
        out.extend_from_slice(&with);
        done = at.end;
    }
    out.extend_from_slice(&text[done..]);
    out
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}
