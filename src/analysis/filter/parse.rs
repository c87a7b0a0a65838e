//! Parses a filter; errors point at the position in the text.

use std::fmt;
use std::ops::Range;

use super::field::{Field, ValueType};
use crate::lint::RULES;
use jsonrpc::Choice as _;

/// Maximum nesting of parentheses and `not`.
const MAX_DEPTH: usize = 64;

/// A filter as a tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    /// The empty one matches everything.
    Every(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Text(Field, Glob),
    Word(Field, &'static str),
    Number(Field, Operator, f64),
}

/// The operator between a field and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Is,
    Less,
    AtMost,
    More,
    AtLeast,
}

/// A pattern with `*` for any text; letters match ignoring case. Holds the texts between the stars,
/// in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glob(Vec<String>);

/// An error in a filter, which points at the position in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    text: String,
    /// The position, in bytes of the text.
    pub at: Range<usize>,
    /// What is wrong there, and what is expected.
    pub reason: String,
}

struct Parser<'a> {
    text: &'a str,
    /// The end of what was read.
    at: usize,
    depth: usize,
}

/// The whole filter.
pub(super) fn parse(text: &str) -> Result<Expr, FilterError> {
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
    };
    if text.trim().is_empty() {
        return Ok(Expr::Every(Vec::new()));
    }
    let whole = parser.any()?;
    match parser.next().is_empty() {
        true => Ok(whole),
        false => Err(parser.error("this parenthesis was never opened")),
    }
}

impl<'a> Parser<'a> {
    /// `a or b or …`
    fn any(&mut self) -> Result<Expr, FilterError> {
        let mut parts = vec![self.all()?];
        while self.take("or") {
            parts.push(self.all()?);
        }
        Ok(single(parts, Expr::Any))
    }

    /// `a and b c …`
    fn all(&mut self) -> Result<Expr, FilterError> {
        let mut parts = vec![self.nested()?];
        while self.take("and") || !["", ")", "or"].contains(&self.word()) {
            parts.push(self.nested()?);
        }
        Ok(single(parts, Expr::Every))
    }

    fn nested(&mut self) -> Result<Expr, FilterError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error("this is nested too deep"));
        }
        self.depth += 1;
        let one = self.primary();
        self.depth -= 1;
        one
    }

    fn primary(&mut self) -> Result<Expr, FilterError> {
        let (open, word, place) = (self.at, self.word(), self.next());
        self.at = place.end;
        let reason = match word {
            "not" => return Ok(Expr::Not(Box::new(self.nested()?))),
            "(" => {
                let inner = self.any()?;
                if self.take(")") {
                    return Ok(inner);
                }
                "this parenthesis is never closed"
            }
            "" => "something is missing at the end",
            ")" | "and" | "or" => "something is missing before this",
            _ if word.starts_with('"') => match quoted(word) {
                Some((text, _)) => return Ok(Expr::Text(Field::Text, Glob::new(&text))),
                None => "this quote is never closed",
            },
            _ if is_sign(word) => "a field is missing before this",
            _ if is_sign(self.word()) => return self.term(place),
            _ => return Ok(Expr::Text(Field::Text, Glob::new(word))),
        };
        self.at = open;
        Err(self.error(reason))
    }

    /// `field:value`, of which the name was read.
    fn term(&mut self, name: Range<usize>) -> Result<Expr, FilterError> {
        let own = &self.text[name.clone()];
        let Ok(field) = Field::from_name(own) else {
            let names: Vec<&str> = Field::ALL.iter().map(|field| field.name()).collect();
            let names = names.join(", ");
            let hint = format!("no such field; there are {names}; quotes look for a text");
            return Err(FilterError::new(self.text, name, hint));
        };
        let operator = match self.word() {
            "<" => Operator::Less,
            "<=" => Operator::AtMost,
            ">" => Operator::More,
            ">=" => Operator::AtLeast,
            _ => Operator::Is,
        };
        let is_text = !matches!(field.value_type(), ValueType::Number(..));
        if is_text && operator != Operator::Is {
            return Err(self.error(&format!("`{own}` is a text: write {own}:value")));
        }
        // The value is right after the operator; it may begin with an operator: `dir:<`.
        let start = self.next().end;
        let rest = &self.text[start..];
        let (value, length) = match rest.starts_with('"') {
            true => quoted(rest).ok_or_else(|| {
                FilterError::new(
                    self.text,
                    start..self.text.len(),
                    "this quote is never closed",
                )
            })?,
            false => {
                let length = length_until(rest, "()\"");
                (rest[..length].to_owned(), length)
            }
        };
        if length == 0 {
            return Err(self.error("a value is missing right after this"));
        }
        self.at = start + length;
        value_of(field, operator, &value)
            .map_err(|reason| FilterError::new(self.text, start..self.at, reason))
    }

    /// The place of the next word: a parenthesis, an operator, a text in quotes or a bare word;
    /// empty at the end.
    fn next(&self) -> Range<usize> {
        let rest = self.text[self.at..].trim_start();
        let start = self.text.len() - rest.len();
        let length = match rest.chars().next() {
            None => return self.text.trim_end().len()..self.text.trim_end().len(),
            Some('(' | ')' | ':' | '=') => 1,
            Some('<' | '>') => 1 + usize::from(rest[1..].starts_with('=')),
            Some('"') => quoted(rest).map_or(rest.len(), |(_, length)| length),
            Some(_) => length_until(rest, "()\":<>="),
        };
        start..start + length
    }

    /// The next word.
    fn word(&self) -> &'a str {
        &self.text[self.next()]
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.word() == word;
        if found {
            self.at = self.next().end;
        }
        found
    }

    /// An error at the next word.
    fn error(&self, reason: &str) -> FilterError {
        FilterError::new(self.text, self.next(), reason)
    }
}

/// The term for a value, or what is wrong with the value.
fn value_of(field: Field, operator: Operator, value: &str) -> Result<Expr, String> {
    match field.value_type() {
        ValueType::Text => {
            let glob = Glob::new(value);
            // A misspelled rule would match nothing, and look like a clean recording.
            if field == Field::Lint && !RULES.iter().any(|rule| glob.matches(rule.id, true)) {
                return Err("no such rule; `acp-relay inspect lint --list` lists them".to_owned());
            }
            Ok(Expr::Text(field, glob))
        }
        ValueType::Word(words) => match words.split(' ').find(|word| *word == value) {
            Some(word) => Ok(Expr::Word(field, word)),
            None => Err(format!("expected one of: {words}")),
        },
        ValueType::Number(units, example) => match quantity(value, units) {
            Some(number) => Ok(Expr::Number(field, operator, number)),
            None => Err(format!("expected a number, such as {example}")),
        },
    }
}

fn is_sign(word: &str) -> bool {
    word.starts_with([':', '<', '>', '='])
}

/// The bytes before white space or one of these characters.
fn length_until(text: &str, ends: &str) -> usize {
    let end = text.find(|c: char| c.is_whitespace() || ends.contains(c));
    end.unwrap_or(text.len())
}

/// The contents of a quoted text, in which `\` escapes the next character, and its length as
/// written.
fn quoted(text: &str) -> Option<(String, usize)> {
    let mut content = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((content, at + 1)),
            '\\' => content.push(characters.next()?.1),
            _ => content.push(character),
        }
    }
    None
}

fn single(mut parts: Vec<Expr>, join: fn(Vec<Expr>) -> Expr) -> Expr {
    match parts.len() {
        1 => parts.remove(0),
        _ => join(parts),
    }
}

/// Converts a quantity such as `1m30s` to the smallest unit.
fn quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let mut sum = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, after) = rest.split_at(digits.unwrap_or(rest.len()));
        let letters = after.find(|c: char| c.is_ascii_digit() || c == '.');
        let (unit, after) = after.split_at(letters.unwrap_or(after.len()));
        let number: f64 = number.parse().ok()?;
        let unit = unit.to_lowercase();
        let (_, factor) = units.iter().find(|(known, _)| *known == unit)?;
        sum += number * factor;
        rest = after;
    }
    (!text.is_empty()).then_some(sum)
}

impl Expr {
    /// Whether a term of it is about that field.
    pub(super) fn uses(&self, field: Field) -> bool {
        match self {
            Self::Every(parts) | Self::Any(parts) => parts.iter().any(|part| part.uses(field)),
            Self::Not(inner) => inner.uses(field),
            Self::Text(own, _) | Self::Word(own, _) | Self::Number(own, ..) => *own == field,
        }
    }
}

impl Operator {
    pub(super) fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::Is => value == bound,
            Self::Less => value < bound,
            Self::AtMost => value <= bound,
            Self::More => value > bound,
            Self::AtLeast => value >= bound,
        }
    }
}

impl Glob {
    fn new(pattern: &str) -> Self {
        let pattern = pattern.to_lowercase();
        Self(pattern.split('*').map(str::to_owned).collect())
    }

    /// Whether a text begins with the pattern, or is it as a whole.
    pub(super) fn matches(&self, text: &str, whole: bool) -> bool {
        let text = text.to_lowercase();
        let first = self.0.first().map_or("", String::as_str);
        let Some(rest) = text.strip_prefix(first) else {
            return false;
        };
        match self.0.get(1..).unwrap_or_default() {
            [] => !whole || rest.is_empty(),
            [others @ .., last] if whole => {
                let rest = after_all(rest, others);
                rest.is_some_and(|rest| rest.ends_with(last.as_str()))
            }
            others => after_all(rest, others).is_some(),
        }
    }

    /// Whether the pattern occurs anywhere in the text.
    pub(super) fn matches_within(&self, text: &str) -> bool {
        after_all(&text.to_lowercase(), &self.0).is_some()
    }
}

/// The text after these parts, each of which stands somewhere behind the one before.
fn after_all<'t>(text: &'t str, parts: &[String]) -> Option<&'t str> {
    parts.iter().try_fold(text, |rest, part| {
        rest.find(part.as_str()).map(|at| &rest[at + part.len()..])
    })
}

impl FilterError {
    fn new(text: &str, at: Range<usize>, reason: impl Into<String>) -> Self {
        Self {
            text: text.to_owned(),
            at,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for FilterError {
    /// Three lines: the problem, the text, and marks under the position.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Control characters would shift the marks.
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let text: String = self.text.chars().map(plain).collect();
        let before = self.text[..self.at.start].chars().count();
        let marked = self.text[self.at.clone()].chars().count().max(1);
        let reason = &self.reason;
        write!(f, "{reason}\n  {text}\n  {:before$}{:^<marked$}", "", "")
    }
}

impl std::error::Error for FilterError {}
