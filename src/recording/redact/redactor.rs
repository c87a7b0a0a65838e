//! The redaction of a recording: how much is kept, the hash key, the rules.
//!
//! See `walk` and `shapes` for how secrets are found.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use super::forms::Forms;
use super::hits::{HitKind, Hits};
use super::names::is_secret_method;
use super::pattern::PointerPattern;
use super::places::is_identifier;
use super::prefix_cache::PrefixCache;
use super::shapes::Shapes;
use super::streams::Streams;
use super::walk::walk;
use crate::recording::{MessageKind, Redaction};

/// The name and version of the built-in rules.
pub const RULES: &str = "default@8";

/// How much is kept; later modes keep less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Everything, including secrets.
    Full,
    /// Everything except secrets.
    #[default]
    Default,
    /// No text except that of the protocol: lengths and hashes instead.
    Structure,
    /// No bodies.
    Meta,
}

/// The state kept between the messages of one side, to find secrets in the next one.
#[derive(Debug, Default)]
pub struct RedactState {
    prefix_cache: PrefixCache,
    /// Texts that are sent in pieces.
    pub streams: Streams,
    /// Fields of answers that were requested as secrets.
    pub forms: Forms,
}

/// Replaces secrets.
pub struct Redactor {
    pub(super) mode: Mode,
    pub(super) shapes: Shapes,
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
    const ALL: [Self; 4] = [Self::Full, Self::Default, Self::Structure, Self::Meta];

    /// The mode with that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
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
            shapes: Shapes::new(),
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

    /// A message, which must be JSON, without its secrets; `None` when it has none. `method` is its
    /// method, or that of the request it answers.
    #[must_use]
    pub fn json(&self, text: &[u8], method: Option<&[u8]>) -> Option<Redacted> {
        self.json_cached(&mut PrefixCache::default(), text, method)
    }

    /// The same, using the cached beginning of the message before.
    #[must_use]
    pub fn json_cached(
        &self,
        cache: &mut PrefixCache,
        text: &[u8],
        method: Option<&[u8]>,
    ) -> Option<Redacted> {
        let needed = match self.mode {
            Mode::Full => return None,
            Mode::Default | Mode::Meta => self.prefilter(cache, text).is_none(),
            Mode::Structure => true,
        };
        self.redact_if(needed, text, method, &[])
    }

    /// The same of a message that may hold a piece of a text, of which `state` has the pieces
    /// before. `kind` is the kind of the message.
    #[must_use]
    pub fn json_streamed(
        &self,
        state: &mut RedactState,
        text: &[u8],
        kind: Option<MessageKind>,
        method: Option<&[u8]>,
    ) -> Option<Redacted> {
        if self.mode != Mode::Default {
            // The other modes keep no text at all, or all of it.
            return self.json_cached(&mut state.prefix_cache, text, method);
        }
        let fields = match kind {
            Some(MessageKind::Result) => state.forms.fields(method),
            _ => Vec::new(),
        };
        let clean_len = self.prefilter(&mut state.prefix_cache, text);
        let streams = &mut state.streams;
        let Some(mut clean) = streams.clean(self, text, kind, method, clean_len.unwrap_or(0))
        else {
            return self.redact_if(clean_len.is_none(), text, method, &fields);
        };
        let more = self.redact_if(true, &clean.text, method, &fields);
        if let Some(more) = more {
            clean.text = more.text;
            clean.hits.add(more.hits);
            let known = clean.places.len();
            for place in more.places {
                if !clean.places[..known].contains(&place) {
                    clean.places.push(place);
                }
            }
        }
        Some(clean)
    }

    /// The number of bytes before the first word that announces a secret; `None` when the message
    /// has to be walked.
    fn prefilter(&self, cache: &mut PrefixCache, text: &[u8]) -> Option<usize> {
        let known = self.patterns.is_empty();
        known.then(|| self.shapes.prefilter(text, cache))?.ok()
    }

    fn redact_if(
        &self,
        needed: bool,
        text: &[u8],
        method: Option<&[u8]>,
        fields: &[&str],
    ) -> Option<Redacted> {
        // The answer to `authenticate` does not contain the method.
        let authenticates = method.is_some_and(is_secret_method);
        (needed || authenticates || !fields.is_empty())
            .then(|| walk(self, text, authenticates, fields, 0))
            .flatten()
    }

    /// Other bytes without their secrets; `None` when they have none.
    #[must_use]
    pub fn text(&self, text: &[u8]) -> Option<Vec<u8>> {
        match self.mode {
            Mode::Full => None,
            Mode::Structure | Mode::Meta => Some(self.length_mark(text).into_bytes()),
            Mode::Default => self.plain_text(text),
        }
    }

    /// A text of the relay about a conversation, without secrets quoted in it. It is kept in all
    /// modes.
    #[must_use]
    pub fn own_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let clean = match self.mode {
            Mode::Full => None,
            _ => self.plain_text(text.as_bytes()),
        };
        clean.map_or(Cow::Borrowed(text), |clean| {
            Cow::Owned(String::from_utf8_lossy(&clean).into_owned())
        })
    }

    /// A text that is not a message without its secrets; `None` when it has none. JSON in it,
    /// complete or truncated, is judged by place, too: log lines, invalid messages.
    fn plain_text(&self, text: &[u8]) -> Option<Vec<u8>> {
        let begins = |text: &[u8]| {
            memchr::memchr_iter(b'{', text).find(|at| {
                let inside = text[at + 1..].trim_ascii_start();
                inside.starts_with(b"\"")
            })
        };
        let may_have = |text: &[u8]| {
            let begun = &mut PrefixCache::default();
            self.mode != Mode::Structure && self.shapes.prefilter(text, begun).is_err()
        };
        let clean = |text: &[u8]| {
            let at = begins(text).filter(|at| may_have(&text[*at..]))?;
            // The first element of a batch.
            let at = at - usize::from(text[..at].ends_with(b"["));
            let clean = walk(self, &text[at..], false, &[], 0)?;
            Some([&text[..at], &clean.text[..]].concat())
        };
        let whole = clean(text);
        // After truncated JSON, the next line may contain more.
        let lines = whole
            .as_deref()
            .unwrap_or(text)
            .split_inclusive(|byte| *byte == b'\n');
        let walked: Vec<u8> = match memchr::memchr(b'\n', text) {
            Some(_) => lines
                .flat_map(|line| clean(line).unwrap_or_else(|| line.to_vec()))
                .collect(),
            None => whole.unwrap_or_default(),
        };
        let walked = Some(walked).filter(|walked| !walked.is_empty() && walked != text);
        let known = walked.as_deref().unwrap_or(text);
        let found = self.shapes.find(known);
        if found.is_empty() {
            return walked;
        }
        Some(self.replace(known, &found))
    }

    /// A method without secrets, as in a body; in mode `structure`, a method that is not the
    /// protocol's is replaced.
    #[must_use]
    pub fn method_name<'a>(&self, method: &'a str) -> Cow<'a, str> {
        if self.mode == Mode::Structure && !is_identifier(method.as_bytes()) {
            return Cow::Owned(self.length_mark(method.as_bytes()));
        }
        self.own_text(method)
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
        let mut out = Vec::with_capacity(text.len());
        let mut at = 0;
        for secret in secrets {
            out.extend_from_slice(&text[at..secret.start]);
            out.extend_from_slice(self.mark(&text[secret.clone()]).as_bytes());
            at = secret.end;
        }
        out.extend_from_slice(&text[at..]);
        out
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

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}
