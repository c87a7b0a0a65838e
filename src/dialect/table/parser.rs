//! The parts of the table parser: every fault is collected and parsing continues.

use std::cell::{Cell, RefCell};

use serde_json::Value;

use super::fault::{TableFault, TableFaults, line_of, nearest};
use super::schema::keys;
use super::types::{Expect, Guard, Literal};
use crate::dialect::pointer::JsonPointer;
use crate::dialect::text::JsonType;

/// Maximum number of faults of one file that are reported.
const MAX_FAULTS: usize = 100;

/// A value in the file with its position.
#[derive(Clone, Debug)]
pub(super) struct Located<'v> {
    pub(super) value: &'v Value,
    pub(super) pointer: String,
}

/// The parser of one file.
#[derive(Debug)]
pub(super) struct Parser<'f> {
    file: &'f str,
    text: &'f str,
    faults: RefCell<Vec<TableFault>>,
    rule: RefCell<Option<String>>,
    depth: Cell<usize>,
}

impl<'v> Located<'v> {
    /// A member; `null` counts as a value.
    pub(super) fn get(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name)?;
        let pointer = format!("{}/{}", self.pointer, jsonptr::Token::new(name).encoded());
        Some(Self { value, pointer })
    }

    /// The elements of an array; one value counts as an array of one.
    pub(super) fn each(&self) -> Vec<Self> {
        match self.value {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(at, value)| Self {
                    value,
                    pointer: format!("{}/{at}", self.pointer),
                })
                .collect(),
            _ => vec![self.clone()],
        }
    }

    /// The members of an object.
    pub(super) fn members(&self) -> Vec<(&'v str, Self)> {
        let names = self
            .value
            .as_object()
            .into_iter()
            .flat_map(|all| all.keys());
        names
            .filter_map(|name| Some((name.as_str(), self.get(name)?)))
            .collect()
    }

    /// The value itself.
    pub(super) fn literal(&self) -> Literal {
        Literal(self.value.to_string().into_bytes().into())
    }
}

impl<'f> Parser<'f> {
    pub(super) fn new(file: &'f str, text: &'f str) -> Self {
        Self {
            file,
            text,
            faults: RefCell::default(),
            rule: RefCell::default(),
            depth: Cell::new(0),
        }
    }

    /// Adds a fault.
    pub(super) fn fault(&self, pointer: &str, what: impl Into<String>, remedy: impl Into<String>) {
        // The line of each is found by scanning the file again, so their number is limited.
        let mut faults = self.faults.borrow_mut();
        let fault = match faults.len() {
            0..MAX_FAULTS => TableFault {
                file: self.file.to_owned(),
                line: line_of(self.text, pointer),
                rule: self.rule.borrow().clone(),
                pointer: pointer.to_owned(),
                what: what.into(),
                remedy: remedy.into(),
            },
            MAX_FAULTS => TableFault {
                file: self.file.to_owned(),
                line: self.text.lines().count(),
                rule: None,
                pointer: String::new(),
                what: format!("there are more faults than these {MAX_FAULTS}"),
                remedy: "correct these first".to_owned(),
            },
            _ => return,
        };
        faults.push(fault);
    }

    /// Sets the rule that is being parsed.
    pub(super) fn set_rule(&self, rule: Option<String>) {
        *self.rule.borrow_mut() = rule;
    }

    /// Limits the depth of nested rows.
    pub(super) fn nested<T>(&self, at: &Located<'_>, read: impl FnOnce() -> T) -> Option<T> {
        if self.depth.get() > 16 {
            self.fault(&at.pointer, "rows nest too deeply", "use a named shape");
            return None;
        }
        self.depth.set(self.depth.get() + 1);
        let done = read();
        self.depth.set(self.depth.get() - 1);
        Some(done)
    }

    pub(super) fn into_faults(self) -> TableFaults {
        TableFaults(self.faults.into_inner())
    }

    /// Reports a value that is not an object, and members that the schema does not have there.
    pub(super) fn object(&self, at: &Located<'_>, schema: &str) -> bool {
        if !at.value.is_object() {
            self.fault(&at.pointer, "this is not an object", "write `{…}` here");
            return false;
        }
        let known = keys(schema);
        for (name, found) in at.members() {
            if !known.contains_key(name) {
                let known: Vec<&str> = known.keys().map(String::as_str).collect();
                self.unknown_key(name, &found, &known);
            }
        }
        true
    }

    fn unknown_key(&self, name: &str, at: &Located<'_>, known: &[&str]) {
        let remedy = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", known.join(", ")),
        };
        self.fault(&at.pointer, format!("unknown key `{name}`"), remedy);
    }

    /// A non-empty string.
    pub(super) fn text(&self, at: &Located<'_>) -> Option<String> {
        let text = at.value.as_str();
        if text.is_none_or(str::is_empty) {
            self.fault(
                &at.pointer,
                "a string is expected here",
                "write a string that is not empty",
            );
            return None;
        }
        text.map(str::to_owned)
    }

    /// A required string.
    pub(super) fn required_text(&self, at: &Located<'_>, name: &str) -> String {
        match at.get(name) {
            Some(found) => self.text(&found).unwrap_or_default(),
            None => {
                self.fault(
                    &at.pointer,
                    format!("`{name}` is missing"),
                    format!("add `\"{name}\": …`"),
                );
                String::new()
            }
        }
    }

    /// An optional string.
    pub(super) fn optional_text(&self, at: &Located<'_>, name: &str) -> Option<String> {
        at.get(name).and_then(|found| self.text(&found))
    }

    /// An optional boolean.
    pub(super) fn flag(&self, at: &Located<'_>, name: &str) -> bool {
        at.get(name).is_some_and(|found| {
            found.value.as_bool().unwrap_or_else(|| {
                self.fault(
                    &found.pointer,
                    "`true` or `false` is expected here",
                    "write one of them",
                );
                false
            })
        })
    }

    /// One of several words.
    pub(super) fn word<T: Copy>(&self, at: &Located<'_>, words: &[(&str, T)]) -> Option<T> {
        let text = at.value.as_str().unwrap_or_default();
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let remedy = match nearest(text, &known) {
                Some(near) if !text.is_empty() => format!("did you mean `{near}`?"),
                _ => format!("one of: {}", known.join(", ")),
            };
            self.fault(
                &at.pointer,
                format!("{} is not known here", at.value),
                remedy,
            );
        }
        found.map(|(_, value)| *value)
    }

    /// One of several words, where one is given.
    pub(super) fn optional_word<T: Copy>(
        &self,
        at: &Located<'_>,
        name: &str,
        words: &[(&str, T)],
    ) -> Option<T> {
        at.get(name).and_then(|at| self.word(&at, words))
    }

    /// A guard; the empty one where none is given.
    pub(super) fn optional_guard(&self, at: &Located<'_>, name: &str) -> Guard {
        at.get(name).map(|at| self.guard(&at)).unwrap_or_default()
    }

    /// A pointer.
    pub(super) fn pointer(&self, at: &Located<'_>) -> Option<JsonPointer> {
        let Some(text) = at.value.as_str() else {
            self.fault(
                &at.pointer,
                "a JSON Pointer is expected here",
                "write it as a string",
            );
            return None;
        };
        self.parse_pointer(&at.pointer, text)
    }

    fn parse_pointer(&self, pointer: &str, text: &str) -> Option<JsonPointer> {
        JsonPointer::parse(text)
            .map_err(|what| self.fault(pointer, what, "see RFC 6901"))
            .ok()
    }

    /// An optional pointer.
    pub(super) fn optional_pointer(&self, at: &Located<'_>, name: &str) -> Option<JsonPointer> {
        at.get(name).and_then(|found| self.pointer(&found))
    }

    /// A guard: pointers and what is expected there.
    pub(super) fn guard(&self, at: &Located<'_>) -> Guard {
        if !at.value.is_object() {
            self.fault(
                &at.pointer,
                "a guard is an object",
                "write {\"/pointer\": expectation}",
            );
        }
        let mut guard = Guard::new();
        for (name, found) in at.members() {
            if let Some(place) = self.parse_pointer(&found.pointer, name) {
                guard.extend(self.expect(&found).map(|expect| (place, expect)));
            }
        }
        guard
    }

    /// An expectation: an object with a known keyword is a test, every other value a constant.
    fn expect(&self, at: &Located<'_>) -> Option<Expect> {
        let all = match at.value {
            Value::Object(members) if !members.is_empty() => members,
            _ => return Some(Expect::Const(at.literal())),
        };
        let words = ["is", "in", "not_in", "absent", "matches", "const"];
        for (name, found) in at.members() {
            if !words.contains(&name) {
                self.unknown_key(name, &found, &words);
            }
        }
        if all.len() != 1 {
            let remedy = "write one of is, in, not_in, absent, matches, const";
            self.fault(&at.pointer, "an expectation has one word", remedy);
            return None;
        }
        let literals = |at: Located<'_>| at.each().iter().map(Located::literal).collect();
        if let Some(at) = at.get("is") {
            let types = at.each().into_iter().filter_map(|at| {
                let found = JsonType::named(at.value.as_str().unwrap_or_default());
                if found.is_none() {
                    let remedy = "one of: null, boolean, number, string, array, object";
                    self.fault(&at.pointer, format!("{} is no type", at.value), remedy);
                }
                found
            });
            return Some(Expect::Is(types.collect()));
        }
        if let Some(at) = at.get("in") {
            return Some(Expect::In(literals(at)));
        }
        if let Some(at) = at.get("not_in") {
            return Some(Expect::NotIn(literals(at)));
        }
        if at.get("absent").is_some() {
            return Some(Expect::Absent(self.flag(at, "absent")));
        }
        if let Some(at) = at.get("const") {
            return Some(Expect::Const(at.literal()));
        }
        let pattern = self.text(&at.get("matches")?)?;
        match regex_lite::RegexBuilder::new(&pattern)
            .size_limit(1 << 16)
            .build()
        {
            Ok(regex) => Some(Expect::Matches(Box::new(regex))),
            Err(error) => {
                self.fault(
                    &at.pointer,
                    format!("the pattern does not parse: {error}"),
                    "correct it",
                );
                None
            }
        }
    }
}
