//! Walks a message and replaces values in secret places or with the shape of a secret.
//!
//! Only values are replaced, within their quotes; everything around them keeps its bytes. JSON that
//! is encoded as a string in JSON (tool calls and results, configurations) is walked like a message
//! and encoded again; in JSON embedded in other text only shapes are found. See `shapes` and
//! `places` for the rules.

use std::collections::HashSet;
use std::ops::Range;

use super::arguments;
use super::escapes::after_escape;
use super::hits::{HitKind, Hits};
use super::level::Level;
use super::named_secrets::{is_secret_setting, is_secret_value, may_hold_secret};
use super::names::suggests_secret;
use super::places::{Place, is_setting, is_value};
use super::redactor::{Mode, Redacted, Redactor, splice};
use super::shapes;
use crate::jsonrpc::{Limits, is_json};
use crate::recording::tokens::{Token, Tokens};

/// The number of nested strings in which JSON is searched.
const MAX_DEPTH: usize = 2;

/// A byte order mark that some programs write before a text.
const BOM: &str = "\u{feff}";

/// A value to be replaced.
struct Replacement {
    at: Range<usize>,
    with: Vec<u8>,
    pointer: String,
    hits: Hits,
}

/// The state of a walk.
struct Walk<'a> {
    redactor: &'a Redactor,
    place: Place<'a>,
    /// Values replaced as a whole, whatever was found in them, because a name beside them suggests
    /// a secret.
    deferred: Vec<(Range<usize>, String)>,
    /// The number of strings in which the text is nested.
    depth: usize,
}

/// A message, or a text nested in `depth` strings, without its secrets; `None` when it has none.
pub(super) fn walk(
    redactor: &Redactor,
    text: &[u8],
    authenticates: bool,
    fields: &[&str],
    depth: usize,
) -> Option<Redacted> {
    let place = Place {
        text,
        levels: Vec::new(),
        patterns: &redactor.patterns,
        authenticates,
        member_depth: 1 + usize::from(text.trim_ascii_start().starts_with(b"[")),
        fields,
    };
    let mut walk = Walk {
        redactor,
        place,
        deferred: Vec::new(),
        depth,
    };
    // The members of an object have no fixed order, so names are collected before values are
    // judged.
    let found = walk.find();
    if found.is_empty() {
        return None;
    }
    let mut redacted = Redacted {
        text: Vec::new(),
        places: Vec::new(),
        hits: Hits::default(),
    };
    let mut seen = HashSet::new();
    let edits = found.into_iter().map(|found| {
        redacted.hits.add(found.hits);
        if seen.insert(found.pointer.clone()) {
            redacted.places.push(found.pointer);
        }
        (found.at, found.with)
    });
    let text = splice(text, edits);
    Some(Redacted { text, ..redacted })
}

/// Whether a string, including its quotes, may be JSON with members.
fn may_be_json(string: &[u8]) -> bool {
    let inner = string.strip_prefix(b"\"").unwrap_or(string);
    let inner = inner.strip_prefix(BOM.as_bytes()).unwrap_or(inner);
    let has = |quote: &[u8]| memchr::memmem::find(inner, quote).is_some();
    // It may begin with escaped line breaks and spaces, and quotes have two escapes.
    matches!(inner.trim_ascii_start().first(), Some(b'{' | b'[' | b'\\'))
        && (has(b"\\\"") || has(b"\\u0022"))
}

/// The encoded text without its secrets, and the rules that applied; `None` when it has none, is
/// not JSON, or is nested too deeply.
fn walk_nested(
    redactor: &Redactor,
    text: &str,
    fields: &[&str],
    depth: usize,
) -> Option<(Vec<u8>, Hits)> {
    let json = text.strip_prefix(BOM).unwrap_or(text);
    let is_json = depth < MAX_DEPTH
        && json.trim_start().starts_with(['{', '['])
        && is_json(json.as_bytes(), &Limits::default());
    let clean = is_json.then(|| walk(redactor, json.as_bytes(), false, fields, depth + 1))??;
    let bom = &text[..text.len() - json.len()];
    let whole = format!("{bom}{}", String::from_utf8(clean.text).ok()?);
    Some((serde_json::to_vec(&whole).ok()?, clean.hits))
}

impl Walk<'_> {
    /// The replacements, in order.
    fn find(&mut self) -> Vec<Replacement> {
        let mut found: Vec<Replacement> = Vec::new();
        self.place.authenticates |= self.place.is_authentication();
        for token in Tokens::new(self.place.text) {
            match token {
                Token::Object | Token::Array => {
                    self.place.levels.push(Level {
                        is_object: token == Token::Object,
                        ..self.place.enter()
                    });
                }
                Token::End => {
                    if let Some(level) = self.place.levels.pop() {
                        self.close_level(level);
                    }
                    self.advance(false);
                }
                Token::Key(at) => {
                    let mut name = self.place.decode(&at);
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
                    if let Some(level) = self.place.levels.last_mut() {
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
                    let option = self.place.is_option(&at);
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
        while let Some(level) = self.place.levels.pop() {
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

    /// The replacement of the string at `at`, if it needs one, and its rule.
    fn string(&mut self, at: &Range<usize>) -> Option<(Vec<u8>, Hits)> {
        let inner = &self.place.text[at.start + 1..at.end - 1];
        let is_name = self
            .place
            .levels
            .last()
            .is_some_and(|level| level.is_at_member("name"));
        let is_id = self.place.levels.last().is_some_and(Level::is_at_id);
        if is_name || is_id {
            // A label for people, such as `Gemini API key`, does not name a variable.
            let name = self.place.decode(at);
            let suggests = suggests_secret(&name) || may_hold_secret(name.as_bytes());
            let suggests = suggests && !name.contains(' ');
            if let Some(level) = self.place.levels.last_mut() {
                match is_name {
                    true => level.secret_name = suggests.then_some(name),
                    false => level.option_id |= is_secret_setting(&name),
                }
            }
        }
        self.keep_value(at);
        // The names in a list of variables or headers are kept.
        let listed = self.place.levels.len() > 1
            && !self.place.levels[self.place.levels.len() - 2].is_object;
        if at.len() > 2
            && !(is_name && listed)
            && self.place.is_secret_place()
            && !self.place.is_description(inner)
        {
            return Some((
                self.mark_whole(at),
                Hits::single(self.place.rule_of_place()),
            ));
        }
        // Escapes look random, so the decoded text is judged.
        let level = self.place.levels.last();
        if level.is_some_and(|level| level.is_secret_text(|| self.place.decode(at))) {
            return Some((self.mark_whole(at), Hits::single(HitKind::Place)));
        }
        if self.redactor.mode == Mode::Structure && !self.place.is_protocol(at) {
            let mark = format!("\"{}\"", self.redactor.length_mark(inner));
            return Some((mark.into_bytes(), Hits::single(HitKind::Text)));
        }
        self.nested(at)
            .or_else(|| Some((self.replace_shapes(at)?, Hits::single(HitKind::Shape))))
    }

    /// The replacement of a scalar, if it is a number and needs one.
    fn number(&mut self, at: &Range<usize>) -> Option<Replacement> {
        if self.place.text[at.start] != b'-' && !self.place.text[at.start].is_ascii_digit() {
            return None;
        }
        self.keep_value(at);
        let digits = &self.place.text[at.clone()];
        let is_value =
            |level: &Level| level.is_object && is_secret_value(level.name.as_bytes(), digits);
        let is_one = self.place.levels.len() > 1 && self.place.is_secret_place()
            || digits.len() > 3 && self.place.levels.last().is_some_and(is_value);
        is_one.then(|| Replacement {
            at: at.clone(),
            with: self.mark_whole(at),
            pointer: self.pointer(false),
            hits: Hits::single(self.place.rule_of_place()),
        })
    }

    /// Remembers a string or number in the `value` of an object, because a name may follow it.
    fn keep_value(&mut self, at: &Range<usize>) {
        let Some(level) = self.place.levels.last() else {
            return;
        };
        let own = level.is_at_value().then(|| self.place.levels.len() - 1);
        if let Some(pair) = own.or(level.pair) {
            let place = self.pointer(false);
            self.place.levels[pair].values.push((at.clone(), place));
        }
    }

    /// Remembers a word of a command line.
    fn keep_word(&mut self, at: &Range<usize>) {
        let word = |walk: &Self| (at.clone(), walk.pointer(false));
        match &self.place.levels[..] {
            [.., own] if own.is_object && arguments::is_command_member(&own.name) => {
                let word = word(self);
                self.place.levels.last_mut().expect("one is open").program = vec![word];
            }
            [.., over, own]
                if !own.is_object && over.is_object && arguments::is_command_member(&over.name) =>
            {
                let (word, over) = (word(self), self.place.levels.len() - 2);
                self.place.levels[over].words.push(word);
            }
            _ => {}
        }
    }

    /// Judges what stood in the `value` of an object that has ended by the name beside it, and the
    /// command line that was in it.
    fn close_level(&mut self, mut level: Level) {
        if !level.words.is_empty() {
            let line = [level.program.split_off(0), level.words.split_off(0)].concat();
            let secrets = arguments::secrets(self.place.text, &line);
            self.deferred.extend(secrets.into_iter().cloned());
        }
        match (level.secret_name, level.pair) {
            (Some(name), _) => {
                let values = level.values.into_iter();
                self.deferred
                    .extend(values.filter(|(at, _)| is_value(&name, &self.place.text[at.clone()])));
            }
            // A session setting (`session/set_config_option`) may be a secret or a choice.
            (None, _) if level.option_id => {
                let text = self.place.text;
                let values = level.values.into_iter();
                self.deferred
                    .extend(values.filter(|(at, _)| is_setting(&text[at.clone()])));
            }
            // A name further out may suggest a secret.
            (None, Some(pair)) => self.place.levels[pair].values.extend(level.values),
            (None, None) => {}
        }
    }

    /// The string with the secrets in its JSON replaced, if it is JSON.
    fn nested(&self, at: &Range<usize>) -> Option<(Vec<u8>, Hits)> {
        if !may_be_json(&self.place.text[at.clone()]) {
            return None;
        }
        let (text, whole) = self.place.text_of(at);
        let (clean, hits) = walk_nested(self.redactor, &text, self.place.fields, self.depth)?;
        Some((if whole { clean } else { self.mark_whole(at) }, hits))
    }

    /// The string with its secrets of a known shape replaced.
    fn replace_shapes(&self, at: &Range<usize>) -> Option<Vec<u8>> {
        let whole = &self.place.text[at.clone()];
        // Escaped ASCII: `\u0073k-…`.
        if memchr::memmem::find(whole, b"\\u00").is_some() {
            let (plain, exact) = self.place.text_of(at);
            let found = shapes::find(plain.as_bytes());
            if !found.is_empty() {
                // The rest is encoded anew, if possible.
                let clean = self.redactor.replace(plain.as_bytes(), &found);
                let clean = String::from_utf8(clean).ok().filter(|_| exact);
                let clean = clean.and_then(|clean| serde_json::to_vec(&clean).ok());
                return Some(clean.unwrap_or_else(|| self.mark_whole(at)));
            }
        }
        let found = shapes::find(whole);
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
        let whole = &self.place.text[at.clone()];
        let inner = match whole.first() {
            Some(b'"') => &whole[1..whole.len() - 1],
            _ => whole,
        };
        format!("\"{}\"", self.redactor.mark(inner)).into_bytes()
    }

    fn advance(&mut self, option: bool) {
        if let Some(level) = self.place.levels.last_mut() {
            level.index += 1;
            level.option = option;
        }
    }

    /// The JSON Pointer of the current value; or of a member there whose name is the secret.
    fn pointer(&self, secret_name: bool) -> String {
        let known =
            self.place.levels.len() - usize::from(secret_name && !self.place.levels.is_empty());
        let steps = self.place.levels.iter().take(known).map(Level::step);
        let name = secret_name.then(|| "/*".to_owned());
        steps
            .map(|step| format!("/{}", jsonptr::Token::new(step).encoded()))
            .chain(name)
            .collect()
    }
}
