//! Finds passwords after one-letter options of specific programs (`redis-cli -a secret`), after
//! options named for one (`-storepass secret`), and in variables with a short name (`DB_PASS=x`).
//!
//! A letter alone is ambiguous, so the program has to stand before it in the same line. See
//! `commands` for long options and programs that are recognised by name alone.

use std::ops::Range;
use std::sync::LazyLock;

use super::commands::{is_null, is_prose, line_start, value};
use super::escapes::{begins_word, skip_gap};
use super::named_secrets::{may_be_password, name_end, name_start};
use super::piped;
use super::random::reads_as_words;
use super::runs::{MAX_JUDGED, Runs, is_code};
use super::table::{List, has, rows, words};

/// Programs and their options (the head of the file describes the format).
static PROGRAMS: LazyLock<Vec<[&str; 3]>> =
    LazyLock::new(|| rows(include_str!("tables/programs.txt")).collect());

/// Options that denote a password.
static NAMED: List = LazyLock::new(|| words(include_str!("tables/named.txt")));

/// Owners of a variable with a short name for a password.
static OWNERS: List = LazyLock::new(|| words(include_str!("tables/owners.txt")));

/// The password after an option whose first letter ends at `at.end`.
pub(super) fn after_option(text: &[u8], at: Range<usize>, partial: bool) -> Option<Range<usize>> {
    let dash = at.end - 2;
    let option = &text[dash..name_end(text, dash)];
    let next = dash + option.len() + 1;
    let apart = text.get(next - 1) == Some(&b' ');
    let word = |from: usize| {
        let own = value(text, from, &mut (0..0))?;
        let open = partial && own.end == text.len();
        (!is_prose(&text[own.clone()], open)).then_some(own)
    };
    if [&b"-passin"[..], b"-passout", b"-pass"].contains(&option) {
        return text[next.min(text.len())..]
            .starts_with(b"pass:")
            .then(|| word(next + 5))?;
    }
    if has(&NAMED, option, false) {
        return apart.then(|| word(next))?;
    }
    let line = &text[line_start(text, dash)..dash];
    let line = &line[memchr::memmem::rfind(line, b"\\n").map_or(0, |end| end + 2)..];
    PROGRAMS.iter().find_map(|[own, form, program]| {
        let own = own.as_bytes();
        let fits = match *form {
            "joined" => option.starts_with(own) && (option.len() > own.len() || !apart),
            _ => option == own && apart,
        };
        if !fits || !has_program(line, program) {
            return None;
        }
        match *form {
            "apart" => word(next),
            "joined" => word(dash + own.len()),
            "piped" => piped::to_program(text, dash - line.len()..at.end),
            sign => {
                let own = word(next).or_else(|| value(text, next, &mut (0..0)))?;
                let rest = &text[own.start..];
                let user = memchr::memchr(sign.as_bytes()[0], &rest[..rest.len().min(64)])?;
                let start = own.start + user + 1;
                let password = value(text, start, &mut (0..0))?;
                (start <= own.end + 1 && !rest[..user].contains(&b' ')).then_some(password)
            }
        }
    })
}

/// The password in a variable whose short name, with the equals sign, ends at `at.end`; or in one
/// in lower case, whose sign is not included in `at`.
pub(super) fn short_variable(
    runs: &mut Runs<'_>,
    at: Range<usize>,
    last: &mut Range<usize>,
) -> Option<Range<usize>> {
    if [&b"_pass"[..], b"_auth"].contains(&&runs.text[at.clone()]) {
        return assigned_value(runs, at);
    }
    let (text, partial) = (runs.text, runs.partial);
    let name = &text[name_start(text, at.start)..at.start];
    let own = name.strip_suffix(b"_").unwrap_or(name);
    let owner = own
        .rsplit(|byte| b"-_".contains(byte))
        .next()
        .unwrap_or(own);
    let known = match &text[at.clone()] {
        b"_AUTH=" => owner == b"REDISCLI",
        _ => has(&OWNERS, owner, false),
    };
    // With an unknown owner or none, only values that are not made of words count.
    let apart = name.is_empty() || name.ends_with(b"_") || text[at.start] == b'_';
    if !known && !apart {
        return None;
    }
    let own = value(text, at.end, last)?;
    let word = &text[own.start..own.end.min(own.start + MAX_JUDGED)];
    let open = partial && own.end == text.len();
    // A path, a call, an element or a member is not a password.
    let code = is_code(text, own.end) || word.contains(&b'.');
    let is_none = is_null(word, open) || code || memchr::memchr(b'/', word).is_some();
    let is_one = known || (may_be_password(word) && !reads_as_words(word));
    (is_one && !is_none).then_some(own)
}

/// The value of `db_pass: …` and, in npm's settings, `_auth=…`, if it is not made of words.
fn assigned_value(runs: &mut Runs<'_>, at: Range<usize>) -> Option<Range<usize>> {
    let text = runs.text;
    let start = skip_gap(text, at.end);
    let gap = &text[at.end..start];
    memchr::memchr2(b':', b'=', gap)?;
    let own = runs.rest_from(start);
    let word = own.head;
    let code = own.is_code || memchr::memchr2(b'.', b'/', word).is_some();
    (may_be_password(word) && !reads_as_words(word) && !code).then_some(own.at)
}

/// Whether a line contains the program as a word or, with a star, as the beginning of one.
fn has_program(line: &[u8], program: &str) -> bool {
    let (known, open) = match program.strip_suffix('*') {
        Some(known) => (known.as_bytes(), true),
        None => (program.as_bytes(), false),
    };
    memchr::memmem::find_iter(line, known).any(|at| {
        let rest = &line[at + known.len()..];
        let part = |byte: &&u8| byte.is_ascii_lowercase() || b"-_".contains(byte);
        let more = rest.iter().take_while(|byte| open && part(byte));
        begins_word(line, at) && rest.get(more.count()) == Some(&b' ')
    })
}
