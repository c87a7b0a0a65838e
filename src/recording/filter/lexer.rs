//! Splits a filter into words with their positions.

use super::error::FilterError;

/// A word of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Open,
    Close,
    And,
    Or,
    Not,
    /// `:` or a comparison.
    Sign(Operator),
    /// A bare word.
    Bare(String),
    /// A text in quotes.
    Quoted(String),
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

/// A word and its position, in bytes of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SpannedWord {
    pub(super) word: Word,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The words of a filter.
pub(super) fn words(text: &str) -> Result<Vec<SpannedWord>, FilterError> {
    let mut words: Vec<SpannedWord> = Vec::new();
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        let start = at;
        at += character.len_utf8();
        let two = text[at..].starts_with('=');
        let word = match character {
            _ if character.is_whitespace() => continue,
            '(' => Word::Open,
            ')' => Word::Close,
            '"' => {
                let (content, length) = quoted(&text[start..]).ok_or_else(|| {
                    FilterError::new(text, start..text.len(), "this quote is never closed")
                })?;
                at = start + length;
                Word::Quoted(content)
            }
            // An operator character after an operator is the value: `dir:<`.
            ':' | '<' | '>' | '=' if !follows_operator(&words, start) => {
                at += usize::from(two && "<>".contains(character));
                Word::Sign(match (character, two) {
                    ('<', true) => Operator::AtMost,
                    ('<', false) => Operator::Less,
                    ('>', true) => Operator::AtLeast,
                    ('>', false) => Operator::More,
                    _ => Operator::Is,
                })
            }
            _ => {
                let is_value = follows_operator(&words, start);
                let ends = |c: char| {
                    c.is_whitespace() || "()\"".contains(c) || !is_value && ":<>=".contains(c)
                };
                let rest = &text[at..];
                at += rest.find(ends).unwrap_or(rest.len());
                match &text[start..at] {
                    "and" if !is_value => Word::And,
                    "or" if !is_value => Word::Or,
                    "not" if !is_value => Word::Not,
                    bare => Word::Bare(bare.to_owned()),
                }
            }
        };
        let end = at;
        words.push(SpannedWord { word, start, end });
    }
    Ok(words)
}

/// Whether the word before ends at `at` and is an operator.
fn follows_operator(words: &[SpannedWord], at: usize) -> bool {
    matches!(words.last(), Some(SpannedWord { word: Word::Sign(_), end, .. }) if *end == at)
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
