//! Detects a peer's framing from the beginning of a line.
//!
//! A line that shows neither (a banner, a warning of the agent's runtime) is passed on as a stray
//! line, and the next one is examined.

use super::Framing;

/// How many bytes of a line are examined. A message indented further passes as a stray line, which
/// is the same bytes, and the next line decides.
pub(super) const REACH: usize = 1024;

/// The framing that a line shows, as far as the line was received.
pub(super) fn sniff(line: &[u8]) -> Option<Framing> {
    let line = &line[..line.len().min(REACH)];
    let mut visible = line.iter().filter(|byte| !matches!(byte, b' ' | b'\t'));
    match (visible.next()?, visible.next()) {
        // A batch; a log line may begin with a bracket, too.
        (b'{', _) | (b'[', Some(b'{')) => Some(Framing::Ndjson),
        _ if is_header(line) => Some(Framing::ContentLength),
        _ => None,
    }
}

/// `^content-(length|type)[ \t]*:`, in any case.
fn is_header(line: &[u8]) -> bool {
    [&b"content-length"[..], b"content-type"]
        .iter()
        .any(|name| {
            line.split_at_checked(name.len())
                .is_some_and(|(start, rest)| {
                    let next = rest.iter().find(|byte| !matches!(byte, b' ' | b'\t'));
                    start.eq_ignore_ascii_case(name) && next == Some(&b':')
                })
        })
}
