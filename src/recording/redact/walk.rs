//! Walks a message and replaces values in secret places or with the shape of a secret.
//!
//! Only values are replaced, within their quotes; everything around them keeps its bytes. JSON that
//! is encoded as a string in JSON (tool calls and results, configurations) is walked like a message
//! and encoded again; in JSON embedded in other text only shapes are found. See `scan` and `places`
//! for the rules.

use std::collections::HashSet;
use std::ops::Range;

use super::commands::{self, Word, is_command_member};
use super::escapes::after_escape;
use super::names::{
    is_secret_setting, is_secret_value, is_setting, is_value, may_hold_secret, suggests_secret,
};
use super::redactor::{HitKind, Hits, Mode, Redacted, Redactor, splice};
use super::scan;
use super::tokens::{Token, Tokens};
use jsonrpc::{Limits, is_json};

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
pub(super) struct Walk<'a> {
    redactor: &'a Redactor,
    pub(super) text: &'a [u8],
    /// The open containers.
    pub(super) levels: Vec<Level>,
    /// The message is an authentication request, or answers one.
    pub(super) authenticates: bool,
    /// The depth of the members of a message: more than one in a batch.
    pub(super) member_depth: usize,
    /// Fields of an answer that were requested as secrets.
    pub(super) fields: &'a [&'a str],
    /// Values replaced as a whole, whatever was found in them, because a name beside them suggests
    /// a secret.
    deferred: Vec<Word>,
    /// The number of strings in which the text is nested.
    depth: usize,
}

/// An open container.
#[derive(Default)]
pub(super) struct Level {
    pub(super) is_object: bool,
    /// Everything in it is secret.
    pub(super) secret: bool,
    /// It is secret only because of its member name, such as `api-key`.
    pub(super) by_name: bool,
    /// It is secret because of a rule of the user.
    pub(super) by_pointer: bool,
    /// Random values in it are secret, because it is in `credentials` or the like.
    pub(super) group: bool,
    /// The name of the current member.
    pub(super) name: String,
    /// The index of the current element.
    pub(super) index: usize,
    /// The element before was an option of a command that takes a secret.
    pub(super) option: bool,
    /// Of `{"name": …, "value": …}`: the name, if it suggests a secret.
    pub(super) secret_name: Option<String>,
    /// Of `{"configId": …, "value": …}`: whether the id is that of a secret.
    pub(super) option_id: bool,
    /// All strings and numbers of its `value`, with their pointers: replaced if the name suggests
    /// so.
    pub(super) values: Vec<Word>,
    /// The index of the level whose `value` contains this one.
    pub(super) pair: Option<usize>,
    /// The words of a command line: the first one, and the others.
    pub(super) program: Option<Word>,
    pub(super) words: Vec<Word>,
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
        authenticates,
        member_depth: 1 + usize::from(text.trim_ascii_start().starts_with(b"[")),
        fields,
        deferred: Vec::new(),
        depth,
    };
    let found = walk.find();
    if found.is_empty() {
        return None;
    }
    let mut redacted = Redacted::default();
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

impl Level {
    /// Whether the current member has one of these names.
    fn is_at(&self, members: &[&str]) -> bool {
        self.is_object && members.contains(&&*self.name)
    }

    /// Whether the current member is the value beside a name or an id.
    pub(super) fn is_at_value(&self) -> bool {
        self.is_at(&["value", "currentValue"])
    }

    /// The last step of the JSON Pointer to the current value.
    pub(super) fn step(&self) -> String {
        match self.is_object {
            true => self.name.clone(),
            false => self.index.to_string(),
        }
    }
}

impl Walk<'_> {
    /// The replacements, in order. The members of an object have no fixed order, so names are
    /// collected before values are judged.
    fn find(&mut self) -> Vec<Replacement> {
        let mut found: Vec<Replacement> = Vec::new();
        self.authenticates |= self.is_authentication();
        for token in Tokens::new(self.text) {
            match token {
                Token::Object | Token::Array => {
                    let mut level = self.enter();
                    level.is_object = token == Token::Object;
                    self.levels.push(level);
                }
                Token::End => {
                    self.close_level();
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
                            pointer: self.pointer(self.levels.len().saturating_sub(1)) + "/*",
                            hits: HitKind::Shape.into(),
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
                            pointer: self.pointer(self.levels.len()),
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
        while !self.levels.is_empty() {
            self.close_level();
        }
        let deferred = std::mem::take(&mut self.deferred);
        let wholes = deferred.into_iter().map(|(at, pointer)| Replacement {
            with: self.mark_whole(&at),
            at,
            pointer,
            hits: HitKind::Place.into(),
        });
        let mut more = Vec::new();
        for whole in wholes {
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
        let inner = &self.text[at.start + 1..at.end - 1];
        let level = self.levels.last();
        let is_name = level.is_some_and(|level| level.is_at(&["name"]));
        let is_id = level.is_some_and(|level| level.is_at(&["configId", "id"]));
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
        let listed = self.levels.iter().rev().nth(1);
        let listed = listed.is_some_and(|level| !level.is_object);
        if at.len() > 2
            && !(is_name && listed)
            && self.is_secret_place()
            && !self.is_description(inner)
        {
            return Some((self.mark_whole(at), self.rule_of_place().into()));
        }
        if self.is_secret_text(at) {
            return Some((self.mark_whole(at), HitKind::Place.into()));
        }
        if self.redactor.mode == Mode::Structure && !self.is_protocol(at) {
            let mark = format!("\"{}\"", self.redactor.length_mark(inner));
            return Some((mark.into_bytes(), HitKind::Text.into()));
        }
        self.nested(at)
            .or_else(|| Some((self.replace_shapes(at)?, HitKind::Shape.into())))
    }

    /// The replacement of a scalar, if it is a number and needs one.
    fn number(&mut self, at: &Range<usize>) -> Option<Replacement> {
        let digits = &self.text[at.clone()];
        if digits[0] != b'-' && !digits[0].is_ascii_digit() {
            return None;
        }
        self.keep_value(at);
        let is_value =
            |level: &Level| level.is_object && is_secret_value(level.name.as_bytes(), digits);
        let is_one = self.levels.len() > 1 && self.is_secret_place()
            || digits.len() > 3 && self.levels.last().is_some_and(is_value);
        is_one.then(|| Replacement {
            at: at.clone(),
            with: self.mark_whole(at),
            pointer: self.pointer(self.levels.len()),
            hits: self.rule_of_place().into(),
        })
    }

    /// A value and its JSON Pointer.
    fn word(&self, at: &Range<usize>) -> Word {
        (at.clone(), self.pointer(self.levels.len()))
    }

    /// Remembers a string or number in the `value` of an object, because a name may follow it.
    fn keep_value(&mut self, at: &Range<usize>) {
        let last = self.levels.len().checked_sub(1);
        let own = last.filter(|last| self.levels[*last].is_at_value());
        if let Some(pair) = own.or_else(|| self.levels.last()?.pair) {
            let word = self.word(at);
            self.levels[pair].values.push(word);
        }
    }

    /// Remembers a word of a command line.
    fn keep_word(&mut self, at: &Range<usize>) {
        let is_command = |level: &Level| level.is_object && is_command_member(&level.name);
        let (alone, listed) = match &self.levels[..] {
            [.., own] if is_command(own) => (true, false),
            [.., over, own] => (false, !own.is_object && is_command(over)),
            _ => (false, false),
        };
        if alone || listed {
            let (word, last) = (self.word(at), self.levels.len() - 1);
            match alone {
                true => self.levels[last].program = Some(word),
                false => self.levels[last - 1].words.push(word),
            }
        }
    }

    /// Leaves a container: judges what stood in its `value` by the name beside it, and the command
    /// line that was in it.
    fn close_level(&mut self) {
        let Some(level) = self.levels.pop() else {
            return;
        };
        let text = self.text;
        if !level.words.is_empty() {
            let line: Vec<Word> = level.program.into_iter().chain(level.words).collect();
            let secrets = commands::listed_secrets(text, &line);
            self.deferred.extend(secrets.into_iter().cloned());
        }
        let values = level.values.into_iter();
        match (level.secret_name, level.pair) {
            (Some(name), _) => {
                let secret = values.filter(|(at, _)| is_value(&name, &text[at.clone()]));
                self.deferred.extend(secret);
            }
            // A session setting (`session/set_config_option`) may be a secret or a choice.
            (None, _) if level.option_id => {
                let secret = values.filter(|(at, _)| is_setting(&text[at.clone()]));
                self.deferred.extend(secret);
            }
            // A name further out may suggest a secret.
            (None, Some(pair)) => self.levels[pair].values.extend(values),
            (None, None) => {}
        }
    }

    /// The string with the secrets in its JSON replaced, if it is JSON with members.
    fn nested(&self, at: &Range<usize>) -> Option<(Vec<u8>, Hits)> {
        let inner = &self.text[at.start + 1..at.end - 1];
        let inner = inner.strip_prefix(BOM.as_bytes()).unwrap_or(inner);
        let has = |quote: &[u8]| memchr::memmem::find(inner, quote).is_some();
        // It may begin with escaped line breaks and spaces, and quotes have two escapes.
        let begins = matches!(inner.trim_ascii_start().first(), Some(b'{' | b'[' | b'\\'));
        if self.depth >= MAX_DEPTH || !begins || !(has(b"\\\"") || has(b"\\u0022")) {
            return None;
        }
        let (text, whole) = self.text_of(at);
        let json = text.strip_prefix(BOM).unwrap_or(&text);
        if !json.trim_start().starts_with(['{', '['])
            || !is_json(json.as_bytes(), &Limits::default())
        {
            return None;
        }
        let depth = self.depth + 1;
        let clean = walk(self.redactor, json.as_bytes(), false, self.fields, depth)?;
        if !whole {
            return Some((self.mark_whole(at), clean.hits));
        }
        let bom = &text[..text.len() - json.len()];
        let clean_text = format!("{bom}{}", String::from_utf8(clean.text).ok()?);
        Some((serde_json::to_vec(&clean_text).ok()?, clean.hits))
    }

    /// The string with its secrets of a known shape replaced.
    fn replace_shapes(&self, at: &Range<usize>) -> Option<Vec<u8>> {
        let whole = &self.text[at.clone()];
        // Escaped ASCII: `\u0073k-…`.
        if memchr::memmem::find(whole, b"\\u00").is_some() {
            let (plain, exact) = self.text_of(at);
            let found = scan::find(plain.as_bytes());
            if !found.is_empty() {
                // The rest is encoded anew, if possible.
                let clean = self.redactor.replace(plain.as_bytes(), &found);
                let clean = String::from_utf8(clean).ok().filter(|_| exact);
                let clean = clean.and_then(|clean| serde_json::to_vec(&clean).ok());
                return Some(clean.unwrap_or_else(|| self.mark_whole(at)));
            }
        }
        let inside = |secret: Range<usize>| {
            after_escape(whole, secret.start..secret.end.min(whole.len() - 1))
        };
        let found: Vec<_> = scan::find(whole).into_iter().map(inside).collect();
        if found.is_empty() {
            return None;
        }
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

    /// The JSON Pointer of the current value of the outermost `depth` containers.
    fn pointer(&self, depth: usize) -> String {
        let steps = self.levels.iter().take(depth).map(Level::step);
        let encoded = |step: String| format!("/{}", jsonptr::Token::new(step).encoded());
        steps.map(encoded).collect()
    }

    /// Whether the user has named the current place.
    pub(super) fn matches_pattern(&self) -> bool {
        if self.redactor.patterns.is_empty() {
            return false;
        }
        let steps: Vec<String> = self.levels.iter().map(Level::step).collect();
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        let mut patterns = self.redactor.patterns.iter();
        patterns.any(|pattern| pattern.matches(&steps))
    }
}
