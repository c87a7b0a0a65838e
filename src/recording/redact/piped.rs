//! Passwords that one program is told by another: `echo secret | docker login --password-stdin`,
//! `echo me:secret | chpasswd`, `sudo -S <<< secret`.
//!
//! The password stands before what gives it away. Not here: passwords behind options (see
//! `commands`, `options`).

use std::ops::Range;

use super::commands::{LINE, behind_user, line_end, line_start, value};

/// Options of those that print it.
const PRINTS: [&[u8]; 5] = [b"-n ", b"-e ", b"-en ", b"'%s' ", b"\"%s\" "];

/// What is told a program by whose name, or that of an option, this is known.
pub(super) fn told(text: &[u8], name: Range<usize>) -> Option<Range<usize>> {
    let users = match &text[name.clone()] {
        b"--password-stdin" | b"--with-token" | b"--token-stdin" => false,
        b"chpasswd" => true,
        _ => return None,
    };
    let own = into(text, name)?;
    // Each line has a user first.
    match users {
        true => behind_user(text, own),
        false => Some(own),
    }
}

/// What is told the program whose option is at `at`.
pub(super) fn into(text: &[u8], at: Range<usize>) -> Option<Range<usize>> {
    behind(text, at.end).or_else(|| printed(text, at.start))
}

/// In a line that is given in place: `<<< secret`.
fn behind(text: &[u8], from: usize) -> Option<Range<usize>> {
    let line = &text[from..line_end(text, from)];
    let sign = memchr::memmem::find(line, b"<<<")? + from + 3;
    let blank = usize::from(text.get(sign) == Some(&b' '));
    value(text, sign + blank, &mut (0..0))
}

/// In a command whose output it reads.
fn printed(text: &[u8], before: usize) -> Option<Range<usize>> {
    let from = before.saturating_sub(LINE);
    let pipe = from + memchr::memrchr(b'|', &text[from..before])?;
    let start = line_start(text, pipe);
    let line = &text[start..pipe];
    let (echo, length) = [&b"echo "[..], b"printf "]
        .into_iter()
        .find_map(|print| Some((memchr::memmem::find(line, print)?, print.len())))?;
    let mut own = start + echo + length;
    while let Some(option) = PRINTS
        .iter()
        .find(|option| text[own..pipe].starts_with(option))
    {
        own += option.len();
    }
    let own = value(text, own, &mut (0..0))?;
    (own.end <= pipe).then_some(own)
}
