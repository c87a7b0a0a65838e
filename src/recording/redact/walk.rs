//! Walks a message and replaces values in secret places or with the shape of a secret.
//!
//! Only values are replaced, within their quotes; everything around them keeps its bytes. See
//! `shapes` and `places` for the rules.

use std::collections::HashSet;
use std::ops::Range;

use super::arguments;
use super::escapes::{after_escape, replace_halves};
use super::hits::{HitKind, Hits};
use super::level::Level;
use super::named_secrets::{is_secret_setting, is_secret_value, may_hold_secret};
use super::names::suggests_secret;
use super::nested;
use super::pattern::escape_step;
use super::places::{is_setting, is_value};
use super::redactor::{Mode, Redacted, Redactor};
use crate::jsonrpc::{Limits, is_json};
use crate::recording::tokens::{Token, Tokens};

/// A value to be replaced.
struct Replacement {
    at: Range<usize>,
    with: Vec<u8>,
    pointer: String,
    hits: Hits,
}

/// The state of a walk.
pub(super) struct Walk<'a> {
    pub(super) redactor: &'a Redactor,
    pub(super) text: &'a [u8],
    pub(super) levels: Vec<Level>,
    out: Vec<u8>,
    /// The number of bytes of `text` that are copied to `out`.
    done: usize,
    pointers: Vec<String>,
    /// The same pointers as a set.
    seen: HashSet<String>,
    /// Values replaced as a whole, whatever was found in them, because a name beside them suggests
    /// a secret.
    deferred: Vec<(Range<usize>, String)>,
    /// The message is an authentication request, or answers one.
    pub(super) authenticates: bool,
    /// The depth of the members of a message: more than one in a batch.
    pub(super) member_depth: usize,
    /// The number of strings in which the text is nested.
    depth: usize,
    /// Fields of an answer that were requested as secrets.
    pub(super) fields: &'a [&'a str],
}

/// A message, or a text nested in `depth` strings, without its secrets; `None` when it has none.
pub(super) fn walk(
    redactor: &Redactor,
    text: &[u8],
    authenticates: bool,
    fields: &[&str],
    depth: usize,
) -> Option<Redacted> {
    let mut walk = Walk {
        redactor,
        text,
        levels: Vec::new(),
        out: Vec::new(),
        done: 0,
        pointers: Vec::new(),
        seen: HashSet::new(),
        deferred: Vec::new(),
        authenticates,
        member_depth: 1 + usize::from(text.trim_ascii_start().starts_with(b"[")),
        depth,
        fields,
    };
    // The members of an object have no fixed order, so names are collected before values are
    // judged.
    let secrets = walk.find();
    let mut hits = Hits::default();
    for found in secrets {
        hits.add(found.hits);
        walk.replace(found.at, &found.with, found.pointer);
    }
    if walk.done == 0 {
        return None;
    }
    walk.out.extend_from_slice(&text[walk.done..]);
    Some(Redacted {
        text: walk.out,
        places: walk.pointers,
        hits,
    })
}

impl Walk<'_> {
    /// The replacements, in order.
    fn find(&mut self) -> Vec<Replacement> {
        let mut found: Vec<Replacement> = Vec::new();
        self.authenticates |= self.is_authentication();
        for token in Tokens::new(self.text) {
            match token {
                Token::Object | Token::Array => {
                    self.levels.push(Level {
                        is_object: token == Token::Object,
                        ..self.enter()
                    });
                }
                Token::End => {
                    if let Some(level) = self.levels.pop() {
                        self.close_level(level);
                    }
                    self.advance(false);
                }
                Token::Key(at) => {
                    let mut name = self.decode(&at);
                    // A member's name may be a secret, too, and would then appear in the pointer.
                    if let Some(with) = self.replace_shapes(&at) {
                        name = String::from_utf8_lossy(&with[1..with.len() - 1]).into_owned();
                        found.push(Replacement {
                            at,
                            with,
                            pointer: self.pointer(true),
                            hits: Hits::single(HitKind::Shape),
                        });
                    }
                    if let Some(level) = self.levels.last_mut() {
                        level.name = name;
                    }
                }
                Token::String(at) => {
                    if let Some((with, hits)) = self.string(&at) {
                        found.push(Replacement {
                            at: at.clone(),
                            with,
                            pointer: self.pointer(false),
                            hits,
                        });
                    }
                    let option = self.is_option(&at);
                    self.keep_word(&at);
                    self.advance(option);
                }
                Token::Scalar(at) => {
                    found.extend(self.number(&at));
                    self.advance(false);
                }
            }
        }
        // Containers of truncated JSON are still open.
        while let Some(level) = self.levels.pop() {
            self.close_level(level);
        }
        let mut more = Vec::new();
        for (at, place) in std::mem::take(&mut self.deferred) {
            let whole = Replacement {
                with: self.mark_whole(&at),
                at,
                pointer: place,
                hits: Hits::single(HitKind::Place),
            };
            match found.binary_search_by_key(&whole.at.start, |known| known.at.start) {
                Ok(known) if found[known].with == whole.with => {}
                Ok(known) => found[known] = whole,
                Err(_) => more.push(whole),
            }
        }
        found.append(&mut more);
        found.sort_by_key(|found| found.at.start);
        found
    }

    fn replace(&mut self, at: Range<usize>, with: &[u8], pointer: String) {
        self.out.extend_from_slice(&self.text[self.done..at.start]);
        self.out.extend_from_slice(with);
        self.done = at.end;
        if self.seen.insert(pointer.clone()) {
            self.pointers.push(pointer);
        }
    }

    /// The replacement of the string at `at`, if it needs one, and its rule.
    fn string(&mut self, at: &Range<usize>) -> Option<(Vec<u8>, Hits)> {
        let inner = &self.text[at.start + 1..at.end - 1];
        let is_name = self
            .levels
            .last()
            .is_some_and(|level| level.is_at_member("name"));
        let is_id = self.levels.last().is_some_and(Level::is_at_id);
        if is_name || is_id {
            // A label for people, such as `Gemini API key`, does not name a variable.
            let name = self.decode(at);
            let suggests = suggests_secret(&name) || may_hold_secret(name.as_bytes());
            let suggests = suggests && !name.contains(' ');
            if let Some(level) = self.levels.last_mut() {
                match is_name {
                    true => level.secret_name = suggests.then_some(name),
                    false => level.option_id |= is_secret_setting(&name),
                }
            }
        }
        self.keep_value(at);
        // The names in a list of variables or headers are kept.
        let listed = self.levels.len() > 1 && !self.levels[self.levels.len() - 2].is_object;
        if at.len() > 2
            && !(is_name && listed)
            && self.is_secret_place()
            && !self.is_description(inner)
        {
            return Some((self.mark_whole(at), Hits::single(self.rule_of_place())));
        }
        // Escapes look random, so the decoded text is judged.
        let level = self.levels.last();
        if level.is_some_and(|level| level.is_secret_text(|| self.decode(at))) {
            return Some((self.mark_whole(at), Hits::single(HitKind::Place)));
        }
        if self.redactor.mode == Mode::Structure && !self.is_protocol(at) {
            let mark = format!("\"{}\"", self.redactor.length_mark(inner));
            return Some((mark.into_bytes(), Hits::single(HitKind::Text)));
        }
        self.nested(at)
            .or_else(|| Some((self.replace_shapes(at)?, Hits::single(HitKind::Shape))))
    }

    /// The replacement of a scalar, if it is a number and needs one.
    fn number(&mut self, at: &Range<usize>) -> Option<Replacement> {
        if self.text[at.start] != b'-' && !self.text[at.start].is_ascii_digit() {
            return None;
        }
        self.keep_value(at);
        let digits = &self.text[at.clone()];
        let is_value =
            |level: &Level| level.is_object && is_secret_value(level.name.as_bytes(), digits);
        let is_one = self.levels.len() > 1 && self.is_secret_place()
            || digits.len() > 3 && self.levels.last().is_some_and(is_value);
        is_one.then(|| Replacement {
            at: at.clone(),
            with: self.mark_whole(at),
            pointer: self.pointer(false),
            hits: Hits::single(self.rule_of_place()),
        })
    }

    /// Remembers a string or number in the `value` of an object, because a name may follow it.
    fn keep_value(&mut self, at: &Range<usize>) {
        let Some(level) = self.levels.last() else {
            return;
        };
        let own = level.is_at_value().then(|| self.levels.len() - 1);
        if let Some(pair) = own.or(level.pair) {
            let place = self.pointer(false);
            self.levels[pair].values.push((at.clone(), place));
        }
    }

    /// Remembers a word of a command line.
    fn keep_word(&mut self, at: &Range<usize>) {
        let word = |walk: &Self| (at.clone(), walk.pointer(false));
        match &self.levels[..] {
            [.., own] if own.is_object && arguments::is_command_member(&own.name) => {
                let word = word(self);
                self.levels.last_mut().expect("one is open").program = vec![word];
            }
            [.., over, own]
                if !own.is_object && over.is_object && arguments::is_command_member(&over.name) =>
            {
                let (word, over) = (word(self), self.levels.len() - 2);
                self.levels[over].words.push(word);
            }
            _ => {}
        }
    }

    /// Judges what stood in the `value` of an object that has ended by the name beside it, and the
    /// command line that was in it.
    fn close_level(&mut self, mut level: Level) {
        if !level.words.is_empty() {
            let line = [level.program.split_off(0), level.words.split_off(0)].concat();
            let secrets = arguments::secrets(&self.redactor.shapes, self.text, &line);
            self.deferred.extend(secrets.into_iter().cloned());
        }
        match (level.secret_name, level.pair) {
            (Some(name), _) => {
                let values = level.values.into_iter();
                self.deferred
                    .extend(values.filter(|(at, _)| is_value(&name, &self.text[at.clone()])));
            }
            // A session setting (`session/set_config_option`) may be a secret or a choice.
            (None, _) if level.option_id => {
                let text = self.text;
                let values = level.values.into_iter();
                self.deferred
                    .extend(values.filter(|(at, _)| is_setting(&text[at.clone()])));
            }
            // A name further out may suggest a secret.
            (None, Some(pair)) => self.levels[pair].values.extend(level.values),
            (None, None) => {}
        }
    }

    /// The string with the secrets in its JSON replaced, if it is JSON.
    fn nested(&self, at: &Range<usize>) -> Option<(Vec<u8>, Hits)> {
        if !nested::may_be_json(&self.text[at.clone()]) {
            return None;
        }
        let (text, whole) = self.text_of(at);
        let (clean, hits) = nested::clean(self.redactor, &text, self.fields, self.depth)?;
        Some((if whole { clean } else { self.mark_whole(at) }, hits))
    }

    /// The string with its secrets of a known shape replaced.
    fn replace_shapes(&self, at: &Range<usize>) -> Option<Vec<u8>> {
        let whole = &self.text[at.clone()];
        // Escaped ASCII: `\u0073k-…`.
        if memchr::memmem::find(whole, b"\\u00").is_some() {
            let (plain, exact) = self.text_of(at);
            let found = self.redactor.shapes.find(plain.as_bytes());
            if !found.is_empty() {
                // The rest is encoded anew, if possible.
                let clean = self.redactor.replace(plain.as_bytes(), &found);
                let clean = String::from_utf8(clean).ok().filter(|_| exact);
                let clean = clean.and_then(|clean| serde_json::to_vec(&clean).ok());
                return Some(clean.unwrap_or_else(|| self.mark_whole(at)));
            }
        }
        let found = self.redactor.shapes.find(whole);
        if found.is_empty() {
            return None;
        }
        let inner = |secret: Range<usize>| secret.start..secret.end.min(whole.len() - 1);
        let inside = |secret| after_escape(whole, inner(secret));
        let found: Vec<_> = found.into_iter().map(inside).collect();
        let clean = self.redactor.replace(whole, &found);
        let is_string = is_json(&clean, &Limits::default());
        Some(if is_string {
            clean
        } else {
            self.mark_whole(at)
        })
    }

    /// The replacement of a string or a number as a whole.
    fn mark_whole(&self, at: &Range<usize>) -> Vec<u8> {
        let whole = &self.text[at.clone()];
        let inner = match whole.first() {
            Some(b'"') => &whole[1..whole.len() - 1],
            _ => whole,
        };
        format!("\"{}\"", self.redactor.mark(inner)).into_bytes()
    }

    fn advance(&mut self, option: bool) {
        if let Some(level) = self.levels.last_mut() {
            level.index += 1;
            level.option = option;
        }
    }

    /// The decoded text of the string at `at`.
    pub(super) fn decode(&self, at: &Range<usize>) -> String {
        self.text_of(at).0
    }

    /// The same, and whether it is complete: lone surrogates cannot be decoded.
    fn text_of(&self, at: &Range<usize>) -> (String, bool) {
        let whole = &self.text[at.clone()];
        let inner = whole.get(1..whole.len() - 1).unwrap_or_default();
        if memchr::memchr(b'\\', inner).is_none() {
            return (String::from_utf8_lossy(inner).into_owned(), true);
        }
        if let Ok(text) = serde_json::from_slice(whole) {
            return (text, true);
        }
        let text = serde_json::from_slice(&replace_halves(whole));
        let text = text.unwrap_or_else(|_| String::from_utf8_lossy(inner).into_owned());
        (text, false)
    }

    /// The JSON Pointer of the current value; or of a member there whose name is the secret.
    fn pointer(&self, secret_name: bool) -> String {
        let known = self.levels.len() - usize::from(secret_name && !self.levels.is_empty());
        let steps = self.levels.iter().take(known).map(Level::step);
        let name = secret_name.then(|| "/*".to_owned());
        steps
            .map(|step| format!("/{}", escape_step(&step)))
            .chain(name)
            .collect()
    }
}
