//! Finds passwords in command lines: after `--password`, in a variable before a command, where
//! specific programs expect them (`mysql -psecret`, `curl -u me:secret`), after options named for one
//! (`-storepass secret`), in variables with a short name (`DB_PASS=x`), and piped into a program
//! (`echo secret | docker login --password-stdin`).
//!
//! A password may be a plain word there, so every word counts, except references to a value
//! elsewhere and words of prose. A letter alone is ambiguous, so the program has to stand before it
//! in the same line.

use std::ops::Range;
use std::sync::LazyLock;

use super::escapes::{begins_word, skip_gap};
use super::names::{may_be_password, name_end, name_start};
use super::random::reads_as_words;
use super::runs::{MAX_JUDGED, Scan, is_code};
use super::scan;
use super::table::{List, has, rows, words};

/// Bytes of a line that are searched before and after the mark of a program.
const LINE: usize = 256;

/// Words that follow the name of an option in prose.
static PROSE: List = LazyLock::new(|| words(include_str!("tables/prose.txt")));

/// Programs and their options (the head of the file describes the format).
static PROGRAMS: LazyLock<Vec<[&str; 3]>> =
    LazyLock::new(|| rows(include_str!("tables/programs.txt"), " ").collect());

/// Options that denote a password.
static NAMED: List = LazyLock::new(|| words(include_str!("tables/named.txt")));

/// Owners of a variable with a short name for a password.
static OWNERS: List = LazyLock::new(|| words(include_str!("tables/owners.txt")));

/// Words for no value.
const NULLS: [&str; 5] = ["None", "null", "nil", "true", "false"];

/// Options of the printing commands.
const PRINTS: [&[u8]; 5] = [b"-n ", b"-e ", b"-en ", b"'%s' ", b"\"%s\" "];

/// Limit of the bytes of a list of words that are judged.
const MAX_LIST: usize = 4096;

/// A word of a command line in a message: its range including quotes, and its JSON Pointer.
pub(super) type Word = (Range<usize>, String);

impl Scan<'_> {
    /// The password after a name that denotes one.
    pub(super) fn assigned_password(&mut self, name: Range<usize>) -> Option<Range<usize>> {
        let text = self.text;
        let whole = &text[name.clone()];
        let lower = whole.to_ascii_lowercase();
        let ends = [&b"password"[..], b"passwd", b"passphrase"];
        if !ends.iter().any(|end| lower.ends_with(end)) {
            return None;
        }
        let option = whole.starts_with(b"--");
        let variable = !option && !whole.iter().any(u8::is_ascii_lowercase);
        let apart = match text.get(name.end)? {
            b'=' if option || variable => false,
            b' ' if option => true,
            _ => return None,
        };
        let own = self.value(name.end + 1)?;
        let word = &text[own.clone()];
        let is_prose = apart && has(&PROSE, word, self.is_open(own.end));
        // A call, an element or a member is code.
        let code = is_code(text, own.end) || word.contains(&b'.');
        let is_none = is_prose || is_null(word, false) || (variable && code);
        (!is_none).then_some(own)
    }

    /// The password in the command line of a program whose name, or `login`, is at `at`.
    pub(super) fn program_password(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        let text = self.text;
        if !begins_word(text, at.start) || text.get(at.end) != Some(&b' ') {
            return None;
        }
        if text[at.clone()] == *b"login" {
            let before = &text[..at.start];
            let programs = [(&b"vault "[..], 0), (b"cargo ", 0), (b"bw ", 1)];
            let mut programs = programs.into_iter();
            let (_, place) = programs.find(|(program, _)| before.ends_with(program))?;
            return self.positional(at.end + 1, place);
        }
        let own = words_in(text, at.end).find_map(|own| {
            let word = &text[own.clone()];
            let after = |name: &[u8]| word.starts_with(name).then(|| own.start + name.len());
            let next = || (own.end + 1).min(text.len());
            let start = after(b"--user=")
                .or_else(|| after(b"--proxy-user="))
                .or_else(|| ends_in_user(word).then(next))
                .or_else(|| after(b"-u").or_else(|| after(b"-U")))?;
            self.value(start)
        })?;
        after_user(text, own)
    }

    /// The password argument of a program whose name ends in `passwd` or the like.
    pub(super) fn by_program_name(&mut self, name: Range<usize>) -> Option<Range<usize>> {
        let place = match &self.text[name.clone()] {
            // The password is an argument with `-b`; it follows the file name unless there is `-n`.
            b"htpasswd" => {
                let line = &self.text[name.end..line_end(self.text, name.end)];
                let short = |word: &&[u8]| word.starts_with(b"-") && !word.starts_with(b"--");
                let options = line.split(|byte| *byte == b' ').filter(short);
                let has = |letter: u8| options.clone().any(|option| option.contains(&letter));
                has(b'b').then(|| if has(b'n') { 1 } else { 2 })?
            }
            b"wpa_passphrase" | b"change_password" => 1,
            _ => return None,
        };
        self.positional(name.end + 1, place)
    }

    /// The argument with index `place` after `from`, not counting options.
    fn positional(&mut self, from: usize, place: usize) -> Option<Range<usize>> {
        let text = self.text;
        let plain = |own: &Range<usize>| !own.is_empty() && text[own.start] != b'-';
        let own = words_in(text, from).filter(plain).nth(place)?;
        let own = self.value(own.start)?;
        let word = &text[own.clone()];
        (!has(&PROSE, word, false) && !word.contains(&b'=')).then_some(own)
    }

    /// The word of a command line at `from`, if it is none of prose.
    fn argument(&mut self, from: usize) -> Option<Range<usize>> {
        let own = self.value(from)?;
        let is_prose = has(&PROSE, &self.text[own.clone()], self.is_open(own.end));
        (!is_prose).then_some(own)
    }

    /// The password after an option whose first letter ends at `at.end`.
    pub(super) fn after_option(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        let text = self.text;
        let dash = at.end - 2;
        let option = &text[dash..name_end(text, dash)];
        let next = dash + option.len() + 1;
        let apart = text.get(next - 1) == Some(&b' ');
        if [&b"-passin"[..], b"-passout", b"-pass"].contains(&option) {
            let given = text[next.min(text.len())..].starts_with(b"pass:");
            return given.then(|| self.argument(next + 5))?;
        }
        if has(&NAMED, option, false) {
            return apart.then(|| self.argument(next))?;
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
                "apart" => self.argument(next),
                "joined" => self.argument(dash + own.len()),
                "piped" => self.piped_into(dash - line.len()..at.end),
                sign => {
                    let own = self.value(next)?;
                    let rest = &text[own.start..];
                    let user = memchr::memchr(sign.as_bytes()[0], &rest[..rest.len().min(64)])?;
                    let start = own.start + user + 1;
                    let password = self.value(start)?;
                    let joins = start <= own.end + 1 && !rest[..user].contains(&b' ');
                    joins.then_some(password)
                }
            }
        })
    }

    /// The password in a variable whose short name, with the equals sign, ends at `at.end`; or in
    /// one in lower case, whose sign is not included in `at`.
    pub(super) fn short_variable(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        let text = self.text;
        if [&b"_pass"[..], b"_auth"].contains(&&text[at.clone()]) {
            return self.assigned_value(at);
        }
        let name = &text[name_start(text, at.start)..at.start];
        let own = name.strip_suffix(b"_").unwrap_or(name);
        let owner = own.rsplit(|byte| b"-_".contains(byte)).next();
        let known = match &text[at.clone()] {
            b"_AUTH=" => owner == Some(b"REDISCLI"),
            _ => has(&OWNERS, owner.unwrap_or(own), false),
        };
        // With an unknown owner or none, only values that are not made of words count.
        let apart = name.is_empty() || name.ends_with(b"_") || text[at.start] == b'_';
        if !known && !apart {
            return None;
        }
        let own = self.value(at.end)?;
        let word = &text[own.start..own.end.min(own.start + MAX_JUDGED)];
        // A path, a call, an element or a member is not a password.
        let code = is_code(text, own.end) || memchr::memchr2(b'.', b'/', word).is_some();
        let is_none = is_null(word, self.is_open(own.end)) || code;
        let is_one = known || (may_be_password(word) && !reads_as_words(word));
        (is_one && !is_none).then_some(own)
    }

    /// The value of `db_pass: …` and, in npm's settings, `_auth=…`, if it is not made of words.
    fn assigned_value(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        let start = skip_gap(self.text, at.end);
        memchr::memchr2(b':', b'=', &self.text[at.end..start])?;
        let own = self.run(start);
        let code = own.is_code || memchr::memchr2(b'.', b'/', own.head).is_some();
        (may_be_password(own.head) && !own.reads_as_words() && !code).then_some(own.at)
    }

    /// The password piped into a program with this name or option.
    pub(super) fn piped_password(&mut self, name: Range<usize>) -> Option<Range<usize>> {
        match &self.text[name.clone()] {
            b"--password-stdin" | b"--with-token" | b"--token-stdin" => self.piped_into(name),
            // Each line begins with a user.
            b"chpasswd" => after_user(self.text, self.piped_into(name)?),
            _ => None,
        }
    }

    /// The input of the program whose option is at `at`: a here-string (`<<< secret`), or the
    /// output of an `echo` or `printf` before the pipe.
    fn piped_into(&mut self, at: Range<usize>) -> Option<Range<usize>> {
        let text = self.text;
        let line = &text[at.end..line_end(text, at.end)];
        if let Some(start) = memchr::memmem::find(line, b"<<<") {
            let start = at.end + start + 3;
            let own = self.value(start + usize::from(text.get(start) == Some(&b' ')));
            if own.is_some() {
                return own;
            }
        }
        let from = at.start.saturating_sub(LINE);
        let pipe = from + memchr::memrchr(b'|', &text[from..at.start])?;
        let start = line_start(text, pipe);
        let mut prints = [&b"echo "[..], b"printf "].into_iter();
        let mut own = prints.find_map(|print| {
            let at = memchr::memmem::find(&text[start..pipe], print)?;
            Some(start + at + print.len())
        })?;
        let option = |own: usize| {
            let rest = &text[own..pipe];
            PRINTS.iter().find(|option| rest.starts_with(option))
        };
        while let Some(option) = option(own) {
            own += option.len();
        }
        self.value(own).filter(|own| own.end <= pipe)
    }
}

/// The words of a line that are secret because of the words before them. The words are judged as
/// the line they form: `{"command": "curl", "args": ["-u", "me:…"]}`.
pub(super) fn listed_secrets<'a>(text: &[u8], words: &'a [Word]) -> Vec<&'a Word> {
    let mut line = Vec::new();
    let mut places = Vec::new();
    for word in words {
        let inner = &text[word.0.start + 1..word.0.end - 1];
        let plain = !inner.is_empty() && !inner.iter().any(|byte| *byte <= b' ');
        if line.len() + inner.len() > MAX_LIST {
            break;
        }
        if !line.is_empty() {
            line.push(b' ');
        }
        if plain {
            places.push((line.len()..line.len() + inner.len(), word));
            line.extend_from_slice(inner);
        } else {
            // A word that is a line itself, as for `sh -c`, is judged on its own.
            line.resize(line.len() + inner.len(), b'.');
        }
    }
    let found = scan::find(&line);
    let is_one = |own: &Range<usize>| found.iter().any(|secret| own.contains(&secret.start));
    let alone = |own: &Range<usize>| !scan::find(&line[own.clone()]).is_empty();
    let secret = places
        .into_iter()
        .filter(|(own, _)| is_one(own) && !alone(own));
    secret.map(|(_, word)| word).collect()
}

/// Whether a member holds the words of a command line, or the first one of them.
pub(super) fn is_command_member(member: &str) -> bool {
    ["command", "cmd", "args", "argv", "arguments", "program"].contains(&member)
}

/// Whether a word, or its beginning, denotes no value.
pub(super) fn is_null(word: &[u8], open: bool) -> bool {
    has(&NULLS, word, open)
}

/// The words of the line from `from` on.
fn words_in(text: &[u8], from: usize) -> impl Iterator<Item = Range<usize>> {
    let from = from.min(text.len());
    let line = &text[from..line_end(text, from)];
    let mut next = from;
    line.split(|byte| *byte == b' ').map(move |word| {
        let own = next..next + word.len();
        next = own.end + 1;
        own
    })
}

/// The password after a user name and a colon.
fn after_user(text: &[u8], own: Range<usize>) -> Option<Range<usize>> {
    let colon = memchr::memchr(b':', &text[own.clone()])?;
    let password = own.start + colon + 1..own.end;
    (!password.is_empty()).then_some(password)
}

/// The end of the command or line that contains `from`.
fn line_end(text: &[u8], from: usize) -> usize {
    let ends = |byte: &u8| b"\n\r|;&`".contains(byte);
    let rest = &text[from..text.len().min(from + LINE)];
    let rest = &rest[..rest.iter().position(ends).unwrap_or(rest.len())];
    from + memchr::memmem::find(rest, b"\\n").unwrap_or(rest.len())
}

/// The start of the command or line that ends at `end`.
fn line_start(text: &[u8], end: usize) -> usize {
    let ends = |byte: &u8| b"\n\r|;&`(".contains(byte);
    let from = end.saturating_sub(LINE);
    let start = text[from..end].iter().rposition(ends);
    start.map_or(from, |end| from + end + 1)
}

/// Whether an option of `curl`, or several one-letter options, take a user as the next word.
fn ends_in_user(option: &[u8]) -> bool {
    let letters = option.strip_prefix(b"-").unwrap_or_default();
    let short = letters.iter().all(u8::is_ascii_alphabetic) && letters.len() <= 8;
    let user = matches!(letters.last(), Some(b'u' | b'U'));
    (short && user) || [&b"--user"[..], b"--proxy-user"].contains(&option)
}

/// Whether a line contains the program as a word or, with a star, as the beginning of one.
fn has_program(line: &[u8], program: &str) -> bool {
    let open = program.ends_with('*');
    let known = program.trim_end_matches('*').as_bytes();
    memchr::memmem::find_iter(line, known).any(|at| {
        let rest = &line[at + known.len()..];
        let part = |byte: &&u8| byte.is_ascii_lowercase() || b"-_".contains(byte);
        let more = rest.iter().take_while(|byte| open && part(byte));
        begins_word(line, at) && rest.get(more.count()) == Some(&b' ')
    })
}
