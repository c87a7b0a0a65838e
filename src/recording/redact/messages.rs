//! Redacts messages and other texts with the rules of a [`Redactor`].

use std::borrow::Cow;

use super::forms::Forms;
use super::names::is_secret_method;
use super::places::is_identifier;
use super::redactor::{Mode, Redacted, Redactor};
use super::scan;
use super::streams::Streams;
use super::walk::walk;
use crate::Payload;
use jsonrpc::{Kind, Side};

/// The state kept between the messages of one side, to find secrets in the next one.
#[derive(Debug, Default)]
pub struct RedactState {
    /// Texts that are sent in pieces.
    pub streams: Streams,
    /// Fields of answers that were requested as secrets.
    pub forms: Forms,
}

/// The states of all sides of a conversation: by the edge at which a message is seen, and by the
/// direction, the received ones first.
#[derive(Debug, Default)]
pub struct RedactFlows([[RedactState; 2]; 2]);

impl RedactFlows {
    /// The state for the messages to `to` at `edge`.
    pub const fn lane(&mut self, edge: Side, to: Side) -> &mut RedactState {
        &mut self.0[edge as usize][(edge as usize == to as usize) as usize]
    }

    /// Handles the answer to a request with that method.
    pub fn answered(&mut self, method: &[u8], session: Option<&[u8]>) {
        for lane in self.0.iter_mut().flatten() {
            lane.streams.answered(method, session);
        }
    }

    /// Remembers the fields for secrets that a request has.
    pub fn add_request(&mut self, method: &[u8], text: &[u8]) {
        for lane in self.0.iter_mut().flatten() {
            lane.forms.add_request(method, text);
        }
    }
}

impl Redactor {
    /// A message, which must be JSON, without its secrets; `None` when it has none. `method` is its
    /// method, or that of the request it answers.
    #[must_use]
    pub fn json(&self, text: &[u8], method: Option<&[u8]>) -> Option<Redacted> {
        let needed = match self.mode {
            Mode::Full => return None,
            Mode::Default | Mode::Meta => self.prefilter(text, 0).is_none(),
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
        kind: Option<Kind>,
        method: Option<&[u8]>,
    ) -> Option<Redacted> {
        if self.mode != Mode::Default {
            // The other modes keep no text at all, or all of it.
            return self.json(text, method);
        }
        let fields = match kind {
            Some(Kind::Result) => state.forms.fields(method),
            _ => Vec::new(),
        };
        let streams = &mut state.streams;
        let clean_len = self.prefilter(text, streams.clean_prefix(text));
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
    /// has to be walked. No word begins before `from`.
    fn prefilter(&self, text: &[u8], from: usize) -> Option<usize> {
        let known = self.patterns.is_empty();
        known.then(|| scan::prefilter(text, from))?
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

    /// A payload that is not JSON without its secrets, and whether it had any.
    #[must_use]
    pub fn payload(&self, body: &Payload) -> (Payload, bool) {
        let Some(bytes) = body.bytes() else {
            return (body.clone(), false);
        };
        match (self.mode, self.text(bytes)) {
            (Mode::Meta, _) => (Payload::Omitted(bytes.len() as u64), false),
            (_, Some(clean)) => (Payload::of_text(clean.into()), true),
            (_, None) => (body.clone(), false),
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
        if text.is_empty() {
            return None;
        }
        let begins = |text: &[u8]| {
            memchr::memchr_iter(b'{', text).find(|at| {
                let inside = text[at + 1..].trim_ascii_start();
                inside.starts_with(b"\"")
            })
        };
        let may_have =
            |text: &[u8]| self.mode != Mode::Structure && scan::prefilter(text, 0).is_none();
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
        let found = scan::find(known);
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
