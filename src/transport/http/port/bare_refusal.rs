//! Adds a body to the refusals that the HTTP/1.1 server makes by itself: heads that it cannot read.
//!
//! hyper answers those with a status alone and has no hook to change that. All refusals of the
//! relay have a body, so a 4xx response without one is hyper's.

use bytes::Bytes;

const EMPTY: &[u8] = b"\r\nContent-Length: 0\r\n";

/// The same response with a short body, when `answer` is one of hyper's refusals.
pub(super) fn with_body(answer: &[u8]) -> Option<Bytes> {
    let status = answer.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    let why = match status {
        b"400" => "the head of this request is not valid HTTP/1.1\n",
        b"414" => "the target of this request is too long\n",
        b"431" => "the head of this request is too long, or has too many fields\n",
        _ => return None,
    };
    let head = answer.strip_suffix(b"\r\n\r\n")?;
    let at = memchr::memmem::find(answer, EMPTY)?;
    let kind = b"\r\nContent-Type: text/plain; charset=utf-8";
    let length = format!("\r\nContent-Length: {}\r\n", why.len());
    // What follows the length; empty when the length is the last line.
    let rest = head.get(at + EMPTY.len()..).unwrap_or_default();
    let end: &[u8] = if rest.is_empty() {
        b"\r\n"
    } else {
        b"\r\n\r\n"
    };
    let parts = [
        &answer[..at],
        kind,
        length.as_bytes(),
        rest,
        end,
        why.as_bytes(),
    ];
    Some(parts.concat().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_refusal_gets_a_body() {
        for (before, after) in [
            ("Connection: close\r\n", "Date: x\r\n"),
            ("Date: x\r\n", ""),
        ] {
            let bare = format!("HTTP/1.1 431 Y\r\n{before}Content-Length: 0\r\n{after}\r\n");
            let full = with_body(bare.as_bytes()).expect("it is one of hyper's");
            let why = "the head of this request is too long, or has too many fields\n";
            let wanted = format!(
                "HTTP/1.1 431 Y\r\n{before}Content-Type: text/plain; charset=utf-8\r\n\
                 Content-Length: {}\r\n{after}\r\n{why}",
                why.len()
            );
            assert_eq!(full, wanted);
        }
        for other in [
            "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad\r\nContent-Length: 2\r\n\r\nno",
            "HTTP/1.1 400 Bad",
        ] {
            assert_eq!(with_body(other.as_bytes()), None, "{other}");
        }
    }
}
