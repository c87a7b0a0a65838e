//! Walks through a message and replaces what stands in a secret's place or has its shape.
//!
//! Only values are replaced, each in its quotes; all around them keeps its bytes. Not here: what
//! secrets look like (see `shapes`).

use std::ops::Range;

use super::names::{is_secret_member, is_secret_method, is_telling};
use super::nested;
use super::pattern::escaped;
use super::redactor::{Mode, Redacted, Redactor};
use super::rule::{Hits, Rule};
use super::shapes::{is_random, reads_as_words};
use crate::recording::tokens::{Token, Tokens};

/// Members whose text is the protocol's own, when it is short and plain: kept in mode `structure`.
const PROTOCOL: [&str; 11] = [
    "jsonrpc",
    "method",
    "sessionUpdate",
    "type",
    "kind",
    "status",
    "stopReason",
    "outcome",
    "role",
    "priority",
    "mimeType",
];

/// The types of a JSON Schema.
const SCHEMA: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// An open container.
#[derive(Default)]
struct Level {
    is_object: bool,
    /// All in it is secret.
    secret: bool,
    /// That is so because of the name of the member it is, such as `api-key`, and nothing else.
    named: bool,
    /// That is so because the user said so.
    pointed: bool,
    /// The member at hand.
    name: String,
    /// The element at hand.
    index: usize,
    /// The element before was an option of a command that takes a secret.
    option: bool,
    /// Of `{"name": …, "value": …}`: the name tells.
    telling: bool,
    /// The text of its `value`, to be replaced if the name tells.
    value: Option<Range<usize>>,
}

struct Walk<'a> {
    redactor: &'a Redactor,
    text: &'a [u8],
    levels: Vec<Level>,
    out: Vec<u8>,
    /// How far `text` is in `out`.
    done: usize,
    places: Vec<String>,
    hits: Hits,
    /// Places of `value` members that are replaced once their object has ended.
    late: Vec<(Range<usize>, String)>,
    /// It is said to authenticate, or answers that.
    authenticates: bool,
    /// How many strings the text stands in.
    depth: usize,
}

/// The message without its secrets; `None` when it has none.
pub(super) fn walk(redactor: &Redactor, text: &[u8], authenticates: bool) -> Option<Redacted> {
    walk_in(redactor, text, authenticates, 0)
}

/// The same of a text that stands in so many strings.
pub(super) fn walk_in(
    redactor: &Redactor,
    text: &[u8],
    authenticates: bool,
    depth: usize,
) -> Option<Redacted> {
    let mut walk = Walk {
        redactor,
        text,
        levels: Vec::new(),
        out: Vec::new(),
        done: 0,
        places: Vec::new(),
        hits: Hits::default(),
        late: Vec::new(),
        authenticates,
        depth,
    };
    // Members of one object come in any order, so names are looked at before values.
    let secrets = walk.find();
    for (at, with, place) in secrets {
        walk.replace(at, &with, place);
    }
    if walk.done == 0 {
        return None;
    }
    walk.out.extend_from_slice(&text[walk.done..]);
    Some(Redacted {
        text: walk.out,
        places: walk.places,
        hits: walk.hits,
    })
}

impl Walk<'_> {
    /// What is to be replaced, and by what, in order.
    fn find(&mut self) -> Vec<(Range<usize>, Vec<u8>, String)> {
        let mut found = Vec::new();
        self.authenticates |= self.method().is_some_and(|name| is_secret_method(&name));
        for token in Tokens::new(self.text) {
            match token {
                Token::Object | Token::Array => {
                    self.levels.push(Level {
                        is_object: token == Token::Object,
                        ..self.enter()
                    });
                }
                Token::End => {
                    if let Some(level) = self.levels.pop()
                        && level.telling
                        && let Some(value) = level.value
                    {
                        let place = self.place(Some("value"));
                        self.late.push((value, place));
                    }
                    self.advance(false);
                }
                Token::Key(at) => {
                    let mut name = self.decoded(&at);
                    // A secret may be the name of a member, too, and then of a place.
                    if let Some(with) = self.shaped(&at) {
                        self.hits.hit(Rule::Shape);
                        name = String::from_utf8_lossy(&with[1..with.len() - 1]).into_owned();
                        found.push((at, with, self.place(Some("*"))));
                    }
                    if let Some(level) = self.levels.last_mut() {
                        level.name = name;
                    }
                }
                Token::String(at) => {
                    if let Some(with) = self.string(&at) {
                        found.push((at.clone(), with, self.place(None)));
                    }
                    let option = self.is_option(&at);
                    self.advance(option);
                }
                Token::Scalar(at) => {
                    let number =
                        self.text[at.start] == b'-' || self.text[at.start].is_ascii_digit();
                    if number && self.levels.len() > 1 && self.is_secret_place() {
                        let with = self.redactor.mark(&self.text[at.clone()]);
                        self.hits.hit(self.rule_of_place());
                        found.push((at, format!("\"{with}\"").into_bytes(), self.place(None)));
                    }
                    self.advance(false);
                }
            }
        }
        for (at, place) in std::mem::take(&mut self.late) {
            if !found.iter().any(|(known, _, _)| *known == at) {
                self.hits.hit(Rule::Place);
                found.push((at.clone(), self.marked(&at), place));
            }
        }
        found.sort_by_key(|(at, _, _)| at.start);
        found
    }

    fn replace(&mut self, at: Range<usize>, with: &[u8], place: String) {
        self.out.extend_from_slice(&self.text[self.done..at.start]);
        self.out.extend_from_slice(with);
        self.done = at.end;
        if !self.places.contains(&place) {
            self.places.push(place);
        }
    }

    /// What replaces the string at `at`, if anything does.
    fn string(&mut self, at: &Range<usize>) -> Option<Vec<u8>> {
        let (is_name, is_value) = match self.levels.last() {
            Some(level) if level.is_object => (level.name == "name", level.name == "value"),
            _ => (false, false),
        };
        if is_name {
            // A label for people, such as `Gemini API key`, names no variable.
            let name = self.decoded(at);
            let telling = is_telling(&name) && !name.contains(' ');
            if let Some(level) = self.levels.last_mut() {
                level.telling = telling;
            }
        } else if is_value && let Some(level) = self.levels.last_mut() {
            level.value = Some(at.clone());
        }
        // Of a list of variables or headers, the names stay.
        let listed = self.levels.len() > 1 && !self.levels[self.levels.len() - 2].is_object;
        let inner = &self.text[at.start + 1..at.end - 1];
        if at.len() > 2 && !(is_name && listed) && self.is_secret_place() && !self.describes(inner)
        {
            self.hits.hit(self.rule_of_place());
            return Some(self.marked(at));
        }
        let tells = self.levels.last().is_some_and(Level::tells);
        if tells && is_random(inner) && !reads_as_words(inner) {
            self.hits.hit(Rule::Place);
            return Some(self.marked(at));
        }
        if self.redactor.mode == Mode::Structure && !self.is_protocol(at) {
            self.hits.hit(Rule::Text);
            return Some(format!("\"{}\"", self.redactor.outline(inner)).into_bytes());
        }
        if let Some((with, hits)) = self.nested(at) {
            self.hits.add(hits);
            return Some(with);
        }
        let with = self.shaped(at)?;
        self.hits.hit(Rule::Shape);
        Some(with)
    }

    /// The string without the secrets of the JSON that it is, if it is any.
    fn nested(&self, at: &Range<usize>) -> Option<(Vec<u8>, Hits)> {
        nested::may_be(&self.text[at.clone()])
            .then(|| nested::clean(self.redactor, &self.decoded(at), self.depth))
            .flatten()
    }

    /// The string with its secrets of a known shape replaced.
    fn shaped(&self, at: &Range<usize>) -> Option<Vec<u8>> {
        let whole = &self.text[at.clone()];
        // In disguise, or in part: `\u0073k-…`.
        if memchr::memmem::find(whole, b"\\u00").is_some() {
            let plain = self.decoded(at).into_bytes();
            let found = self.redactor.shapes.find(&plain);
            if !found.is_empty() {
                let clean = self.redactor.replace(&plain, &found);
                // The rest is spelled anew. What was no text could not be decoded either.
                let clean = serde_json::to_vec(&String::from_utf8_lossy(&clean));
                return Some(clean.unwrap_or_else(|_| self.marked(at)));
            }
        }
        let found = self.redactor.shapes.find(whole);
        if found.is_empty() {
            return None;
        }
        let inside = |secret: Range<usize>| secret.start..secret.end.min(whole.len() - 1);
        let found: Vec<_> = found.into_iter().map(inside).collect();
        Some(self.redactor.replace(whole, &found))
    }

    /// Whether a text in a secret's place says what it is about and is not it: the method of
    /// `authenticate`, a word of a JSON Schema, who wants the key.
    fn describes(&self, inner: &[u8]) -> bool {
        let Some(level) = self.levels.last().filter(|level| level.is_object) else {
            return false;
        };
        if self.is_pointed_at() || self.levels.iter().any(|level| level.pointed) {
            return false;
        }
        match level.name.as_str() {
            "methodId" => self.authenticates && self.levels.len() == 2,
            "type" => SCHEMA.iter().any(|word| word.as_bytes() == inner),
            "provider" | "kind" | "title" | "label" | "description" => level.named,
            _ => false,
        }
    }

    fn marked(&self, at: &Range<usize>) -> Vec<u8> {
        let inner = &self.text[at.start + 1..at.end - 1];
        format!("\"{}\"", self.redactor.mark(inner)).into_bytes()
    }

    /// Whether what stands here is secret whatever it looks like.
    fn is_secret_place(&self) -> bool {
        let Some(level) = self.levels.last() else {
            return false;
        };
        level.secret
            || level.option
            || (level.is_object && is_secret_member(&level.name))
            || self.is_pointed_at()
    }

    /// Why what stands here is secret, when it is whatever it looks like.
    fn rule_of_place(&self) -> Rule {
        match self.is_pointed_at() || self.levels.iter().any(|level| level.pointed) {
            true => Rule::Pointer,
            false => Rule::Place,
        }
    }

    /// Whether the container that begins here is secret as a whole, and why.
    fn enter(&self) -> Level {
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
            "params" | "result" => self.authenticates && self.levels.len() == 1,
            _ => false,
        };
        let (named, pointed) = (is_secret_member(name), self.is_pointed_at());
        Level {
            secret: level.secret || place || named || pointed,
            named: !place && !pointed && (named && !level.secret || level.named),
            pointed,
            ..Level::default()
        }
    }

    fn is_pointed_at(&self) -> bool {
        let patterns = &self.redactor.patterns;
        if patterns.is_empty() {
            return false;
        }
        let steps: Vec<String> = self.levels.iter().map(Level::step).collect();
        patterns
            .iter()
            .any(|pattern| pattern.is_at(steps.iter().map(String::as_str)))
    }

    /// Whether a text is part of the protocol, or needed to follow it.
    fn is_protocol(&self, at: &Range<usize>) -> bool {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_/.-".contains(byte);
        let inner = &self.text[at.start + 1..at.end - 1];
        let known = self.levels.last().is_some_and(|level| {
            level.is_object
                && (PROTOCOL.contains(&level.name.as_str())
                    || (self.levels.len() == 1 && level.name == "id"))
        });
        known && inner.len() <= 48 && inner.iter().all(plain) && !is_random(inner)
    }

    /// `--api-key`, before its value.
    fn is_option(&self, at: &Range<usize>) -> bool {
        let inner = &self.text[at.start + 1..at.end - 1];
        inner.starts_with(b"-")
            && !inner.contains(&b'=')
            && self.levels.last().is_some_and(|level| !level.is_object)
            && std::str::from_utf8(inner).is_ok_and(is_telling)
    }

    fn advance(&mut self, option: bool) {
        if let Some(level) = self.levels.last_mut() {
            level.index += 1;
            level.option = option;
        }
    }

    /// The message's own method.
    fn method(&self) -> Option<Vec<u8>> {
        crate::recording::tokens::members(self.text)
            .find(|(name, _)| *name == b"method")
            .map(|(_, at)| self.decoded(&at).into_bytes())
    }

    /// The text of the string at `at`.
    fn decoded(&self, at: &Range<usize>) -> String {
        let whole = &self.text[at.clone()];
        let inner = whole.get(1..whole.len() - 1).unwrap_or_default();
        if memchr::memchr(b'\\', inner).is_some()
            && let Ok(text) = serde_json::from_slice(whole)
        {
            return text;
        }
        String::from_utf8_lossy(inner).into_owned()
    }

    /// The JSON Pointer of what is at hand, or of a member of it.
    fn place(&self, member: Option<&str>) -> String {
        let steps = self.levels.iter().map(Level::step);
        match member {
            // The name itself is the secret.
            Some("*") => {
                let above = self.levels.len().saturating_sub(1);
                let above = steps.take(above).map(|step| format!("/{}", escaped(&step)));
                above.chain(["/*".to_owned()]).collect()
            }
            member => steps
                .chain(member.map(str::to_owned))
                .map(|step| format!("/{}", escaped(&step)))
                .collect(),
        }
    }
}

impl Level {
    /// Whether the name of the member at hand is that of a secret.
    fn tells(&self) -> bool {
        self.is_object && is_telling(&self.name)
    }

    fn step(&self) -> String {
        if self.is_object {
            self.name.clone()
        } else {
            self.index.to_string()
        }
    }
}
