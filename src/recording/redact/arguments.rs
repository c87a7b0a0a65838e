//! Finds secrets in command lines given as a list of words: `{"command": "curl", "args": ["-u",
//! "me:…"]}`, `{"command": ["sshpass", "-p", "…"]}`.
//!
//! The words are judged as the line they form, by `commands` and `options`. A word that is a line
//! itself, as for `sh -c`, is judged on its own.

use std::ops::Range;

use super::shapes;

/// Limit of the bytes of a line that are judged.
const MAX_LINE: usize = 4096;

/// A word of a line: its range including quotes, and its JSON Pointer.
pub(super) type Word = (Range<usize>, String);

/// Whether a member holds the words of a command line, or the first one of them.
pub(super) fn is_command_member(member: &str) -> bool {
    ["command", "cmd", "args", "argv", "arguments", "program"].contains(&member)
}

/// The words of a line that are secret because of the words before them.
pub(super) fn secrets<'a>(text: &[u8], words: &'a [Word]) -> Vec<&'a Word> {
    let mut line = Vec::new();
    let mut places = Vec::new();
    for word in words {
        let inner = &text[word.0.start + 1..word.0.end - 1];
        let plain = !inner.is_empty() && !inner.iter().any(|byte| *byte <= b' ');
        if line.len() + inner.len() > MAX_LINE {
            break;
        }
        if !line.is_empty() {
            line.push(b' ');
        }
        // A word that is a line itself is judged on its own.
        places.push((line.len()..line.len() + inner.len(), plain, word));
        line.extend(if plain {
            inner.to_vec()
        } else {
            vec![b'.'; inner.len()]
        });
    }
    let found = shapes::find(&line);
    let begins = |secret: &Range<usize>, own: &Range<usize>| own.contains(&secret.start);
    let alone = |own: &Range<usize>| !shapes::find(&line[own.clone()]).is_empty();
    let is_one = |own: &Range<usize>| found.iter().any(|secret| begins(secret, own));
    places
        .into_iter()
        .filter(|(own, plain, _)| *plain && is_one(own) && !alone(own))
        .map(|(_, _, word)| word)
        .collect()
}
