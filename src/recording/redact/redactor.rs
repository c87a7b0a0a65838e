//! The redaction of a recording: how much is kept, the hash key, the places of the user.
//!
//! `messages` applies it; see `walk` and `scan` for how secrets are found.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use strum::{Display, EnumMessage, IntoStaticStr, VariantArray};

use jsonptr::{Pointer, Token};

use crate::Redaction;
use jsonrpc::{Choice as _, names};

/// The name and version of the built-in rules.
pub const RULES: &str = "default@9";

/// What is redacted; later modes keep less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Display, EnumMessage, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
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

names! {
    /// The kind of rule by which something was redacted.
    HitKind {
        /// Its place: variables and headers, authentication, a value after a suggestive name.
        Place = "place",
        /// A place that the user named.
        Pointer = "pointer",
        /// It has the shape of a secret.
        Shape = "shape",
        /// It is text, and the mode keeps none.
        Text = "text",
    }
}

/// The number of redactions by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits([u64; HitKind::ALL.len()]);

/// A place in messages that the user made secret, with everything below it: a JSON Pointer (RFC
/// 6901) such as `/params/_meta/acme/*`, in which `*` is any one step. Holds the decoded steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointerPattern(Vec<String>);

/// Replaces secrets.
pub struct Redactor {
    pub(super) mode: Mode,
    pub(super) patterns: Vec<PointerPattern>,
    key: [u8; 32],
}

/// A body without its secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redacted {
    /// The body.
    pub text: Vec<u8>,
    /// JSON Pointers of the replaced values.
    pub places: Vec<String>,
    /// The rules that applied, and how often.
    pub hits: Hits,
}

impl Hits {
    /// The number of redactions of each kind.
    pub fn by_kind(self) -> impl Iterator<Item = (HitKind, u64)> {
        HitKind::ALL.iter().copied().zip(self.0)
    }

    /// Counts one more.
    pub const fn add_one(&mut self, rule: HitKind) {
        self.0[rule as usize] += 1;
    }

    /// Adds other counts.
    pub fn add(&mut self, others: Self) {
        for (own, other) in self.0.iter_mut().zip(others.0) {
            *own += other;
        }
    }
}

impl From<HitKind> for Hits {
    fn from(rule: HitKind) -> Self {
        let mut hits = Self::default();
        hits.add_one(rule);
        hits
    }
}

impl PointerPattern {
    /// The steps of the path, decoded.
    #[must_use]
    pub fn steps(&self) -> &[String] {
        &self.0
    }

    /// Whether a JSON Pointer leads to this place or to something in it.
    #[must_use]
    pub fn contains(&self, pointer: &str) -> bool {
        let mut path = pointer.split('/').skip(1).map(Token::from_encoded);
        let fits = |own: &String, step: &Token<'_>| own == "*" || *own == step.decoded();
        let mut all = self.0.iter();
        all.all(|own| matches!(path.next(), Some(Ok(step)) if fits(own, &step)))
    }

    /// Whether `path` leads to this place.
    pub(super) fn matches(&self, path: &[&str]) -> bool {
        let fits = |(own, step): (&String, &&str)| own == "*" || own == step;
        path.len() == self.0.len() && self.0.iter().zip(path).all(fits)
    }
}

impl FromStr for PointerPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.starts_with('/') {
            return Err("a JSON Pointer begins with `/`, such as /params/_meta/*".to_owned());
        }
        let pointer = Pointer::parse(text)
            .map_err(|_| "in a JSON Pointer `~` is allowed only in `~0` and `~1`".to_owned())?;
        let steps = pointer.tokens().map(|step| step.decoded().into_owned());
        Ok(Self(steps.collect()))
    }
}

impl fmt::Display for PointerPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = self.0.iter();
        steps.try_for_each(|step| write!(f, "/{}", Token::new(step).encoded()))
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
        let rules = match self.mode {
            Mode::Full => "none",
            _ => RULES,
        };
        Redaction {
            mode: self.mode.name().to_owned(),
            rules: rules.to_owned(),
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
        let (mode, patterns) = (&self.mode, &self.patterns);
        write!(f, "Redactor({mode:?}, {patterns:?})")
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
