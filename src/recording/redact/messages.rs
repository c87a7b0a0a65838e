//! Redacts messages and other texts with the rules of a [`Redactor`].

use std::borrow::Cow;

use super::forms::Forms;
use super::names::is_secret_method;
use super::places::is_identifier;
use super::prefix_cache::PrefixCache;
use super::redactor::{Mode, Redacted, Redactor};
use super::streams::Streams;
use super::walk::walk;
use crate::recording::MessageKind;

/// The state kept between the messages of one side, to find secrets in the next one.
#[derive(Debug, Default)]
pub struct RedactState {
    prefix_cache: PrefixCache,
    /// Texts that are sent in pieces.
    pub streams: Streams,
    /// Fields of answers that were requested as secrets.
    pub forms: Forms,
}

impl Redactor {
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
        self.walk_if(needed, text, method, &[])
    }

    /// The same of a message that may hold a piece of a text, of which `state` knows the pieces
    /// before.
    /// `kind` is the kind of the message.
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
            return self.walk_if(clean_len.is_none(), text, method, &fields);
        };
        let more = self.walk_if(true, &clean.text, method, &fields);
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
    /// has
    /// to be walked.
    fn prefilter(&self, cache: &mut PrefixCache, text: &[u8]) -> Option<usize> {
        let known = self.patterns.is_empty();
        known.then(|| self.shapes.prefilter(text, cache))?.ok()
    }

    fn walk_if(
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
    /// complete
    /// or truncated, is judged by place, too: log lines, invalid messages.
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
}
