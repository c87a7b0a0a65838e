//! Finds passwords that are piped into a program: `echo secret | docker login --password-stdin`,
//! `echo me:secret | chpasswd`, `sudo -S <<< secret`.
//!
//! The password precedes the words that indicate it.

use std::ops::Range;

use super::commands::{LINE, after_user, line_end, line_start, value};

/// Options of the printing commands.
const PRINTS: [&[u8]; 5] = [b"-n ", b"-e ", b"-en ", b"'%s' ", b"\"%s\" "];

/// The password piped into a program with this name or option.
pub(super) fn piped_password(text: &[u8], name: Range<usize>) -> Option<Range<usize>> {
    let users = match &text[name.clone()] {
        b"--password-stdin" | b"--with-token" | b"--token-stdin" => false,
        b"chpasswd" => true,
        _ => return None,
    };
    let own = to_program(text, name)?;
    // Each line begins with a user.
    match users {
        true => after_user(text, own),
        false => Some(own),
    }
}

/// The input of the program whose option is at `at`.
pub(super) fn to_program(text: &[u8], at: Range<usize>) -> Option<Range<usize>> {
    here_string(text, at.end).or_else(|| echoed(text, at.start))
}

/// A here-string: `<<< secret`.
fn here_string(text: &[u8], from: usize) -> Option<Range<usize>> {
    let line = &text[from..line_end(text, from)];
    let start = memchr::memmem::find(line, b"<<<")? + from + 3;
    let blank = usize::from(text.get(start) == Some(&b' '));
    value(text, start + blank, &mut (0..0))
}

/// The output of an `echo` or `printf` before the pipe.
fn echoed(text: &[u8], before: usize) -> Option<Range<usize>> {
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
