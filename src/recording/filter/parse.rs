//! Parses a filter; errors point at the position in the text.

use super::error::FilterError;
use super::expr::{Bound, Expr, Term};
use super::field::{FIELDS, Field, ValueType};
use super::glob::Glob;
use super::lexer::{Operator, SpannedWord, Word, words};
use crate::recording::lint::RULES;

/// Maximum nesting of parentheses and `not`.
const MAX_DEPTH: usize = 64;

struct Parser<'a> {
    text: &'a str,
    words: Vec<SpannedWord>,
    next: usize,
    depth: usize,
}

pub(super) fn parse(text: &str) -> Result<Expr, FilterError> {
    let mut parser = Parser {
        text,
        words: words(text)?,
        next: 0,
        depth: 0,
    };
    if parser.words.is_empty() {
        return Ok(Expr::All);
    }
    let whole = parser.any()?;
    match parser.peek() {
        None => Ok(whole),
        Some(_) => Err(parser.error("this parenthesis was never opened")),
    }
}

impl Parser<'_> {
    /// `a or b or …`
    fn any(&mut self) -> Result<Expr, FilterError> {
        let mut parts = vec![self.all()?];
        while self.take(&Word::Or) {
            parts.push(self.all()?);
        }
        Ok(single(parts, Expr::Any))
    }

    /// `a and b c …`
    fn all(&mut self) -> Result<Expr, FilterError> {
        let mut parts = vec![self.nested()?];
        while self.take(&Word::And) || !matches!(self.peek(), None | Some(Word::Or | Word::Close)) {
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
        let open = self.next;
        match self.peek().cloned() {
            Some(Word::Not) => {
                self.next += 1;
                Ok(Expr::Not(Box::new(self.nested()?)))
            }
            Some(Word::Open) => {
                self.next += 1;
                let inner = self.any()?;
                if !self.take(&Word::Close) {
                    self.next = open;
                    return Err(self.error("this parenthesis is never closed"));
                }
                Ok(inner)
            }
            Some(Word::Quoted(text)) => {
                self.next += 1;
                Ok(Expr::Term(Term::Text(Field::Text, Glob::new(&text))))
            }
            Some(Word::Bare(name)) => match self.words.get(self.next + 1) {
                Some(SpannedWord {
                    word: Word::Sign(sign),
                    ..
                }) => self.term(&name, *sign),
                _ => self.word(&name),
            },
            Some(Word::Sign(_)) => Err(self.error("a field is missing before this")),
            None => Err(self.error("something is missing at the end")),
            Some(Word::And | Word::Or | Word::Close) => {
                Err(self.error("something is missing before this"))
            }
        }
    }

    /// A single word is a text to search; the name of a field more likely lacks its value.
    fn word(&mut self, word: &str) -> Result<Expr, FilterError> {
        if Field::from_name(word).is_some() {
            let hint = format!("write {word}:value, or text:{word} to look for the word");
            return Err(self.error(&hint));
        }
        self.next += 1;
        Ok(Expr::Term(Term::Text(Field::Text, Glob::new(word))))
    }

    /// `field:value`
    fn term(&mut self, name: &str, operator: Operator) -> Result<Expr, FilterError> {
        let Some(field) = Field::from_name(name) else {
            let names: Vec<&str> = FIELDS.iter().map(|(_, name, ..)| *name).collect();
            let hint = format!("no such field; there are {}", names.join(", "));
            return Err(self.error(&hint));
        };
        self.next += 1;
        let is_text = matches!(field.value_type(), ValueType::Text | ValueType::Word(_));
        if is_text && operator != Operator::Is {
            return Err(self.error(&format!("`{name}` is a text: write {name}:value")));
        }
        let near = self.words[self.next].end;
        self.next += 1;
        let value = match self.words.get(self.next) {
            Some(SpannedWord {
                word: Word::Bare(value) | Word::Quoted(value),
                start,
                ..
            }) if *start == near => value.clone(),
            _ => {
                self.next -= 1;
                return Err(self.error("a value is missing right after this"));
            }
        };
        let term = self.value(field, operator, &value)?;
        self.next += 1;
        Ok(Expr::Term(term))
    }

    fn value(&self, field: Field, operator: Operator, value: &str) -> Result<Term, FilterError> {
        let number = |units: &[(&str, f64)], example: &str| {
            quantity(value, units)
                .ok_or_else(|| self.error(&format!("expected a number, such as {example}")))
        };
        let bound = |value: f64| Term::Number(field, Bound { operator, value });
        match field.value_type() {
            ValueType::Text => {
                let glob = Glob::new(value);
                // A misspelled rule would match nothing, and look like a clean recording.
                if field == Field::Lint && !RULES.iter().any(|rule| glob.matches(rule.id)) {
                    let reason = "no such rule; `acp-relay inspect lint --list` lists them";
                    return Err(self.error(reason));
                }
                Ok(Term::Text(field, glob))
            }
            ValueType::Word(words) => match words.split(' ').find(|word| *word == value) {
                Some(word) => Ok(Term::Word(field, word)),
                None => Err(self.error(&format!("expected one of: {words}"))),
            },
            ValueType::Count => number(&[("", 1.0)], "42").map(bound),
            ValueType::Bytes => {
                let units = [("", 1.0), ("b", 1.0), ("k", 1024.0), ("m", 1_048_576.0)];
                number(&units, "10k").map(bound)
            }
            ValueType::Seconds => {
                let units = [
                    ("us", 1.0),
                    ("µs", 1.0),
                    ("ms", 1e3),
                    ("s", 1e6),
                    ("", 1e6),
                    ("m", 6e7),
                    ("h", 3.6e9),
                ];
                number(&units, "2s, 150ms or 1m30s").map(bound)
            }
        }
    }

    fn peek(&self) -> Option<&Word> {
        self.words.get(self.next).map(|spot| &spot.word)
    }

    fn take(&mut self, word: &Word) -> bool {
        let found = self.peek() == Some(word);
        self.next += usize::from(found);
        found
    }

    /// An error at the next word.
    fn error(&self, reason: &str) -> FilterError {
        let end = self.text.trim_end().len();
        let at = self.words.get(self.next);
        let at = at.map_or(end..end, |spot| spot.start..spot.end);
        FilterError::new(self.text, at, reason)
    }
}

fn single(mut parts: Vec<Expr>, join: fn(Vec<Expr>) -> Expr) -> Expr {
    match (parts.len(), parts.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            parts.extend(last);
            join(parts)
        }
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
