//! Where a secret ends that a text has ended in.

use super::headers::ends_cookies;
use super::runs::run_end;
use super::urls::ends_host;

/// What follows the private lines of a PuTTY key.
pub(super) const PUTTY_END: &[u8] = b"Private-MAC";

/// The state of a text that has ended in PEM. The bytes that may follow: an RSA key of 16 384 bits
/// has some 13 000 characters.
pub(super) const IN_PEM: Inside = Inside::Pem(16 << 10);

/// The kind of secret in which a text has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// In a token.
    Token,
    /// In the values of cookies.
    Cookies,
    /// In the user or the password of a URL.
    User,
    /// In PEM, with the maximum number of bytes that follow.
    Pem(usize),
}

impl Inside {
    /// Where the secret ends in the next piece; `None` when it may continue after it.
    pub(super) fn end(self, tail: &[u8], piece: &[u8]) -> Option<usize> {
        let position = |ends: fn(&u8) -> bool| piece.iter().position(ends).unwrap_or(piece.len());
        let end = match self {
            Self::Token => run_end(piece, 0),
            Self::Cookies => position(ends_cookies),
            Self::User => {
                let end = position(ends_host);
                memchr::memrchr(b'@', &piece[..end]).unwrap_or(end)
            }
            Self::Pem(left) => return pem_end(tail, piece).or_else(|| (left == 0).then_some(0)),
        };
        (end < piece.len()).then_some(end)
    }
}

/// The end of a PEM block in a piece.
fn pem_end(tail: &[u8], piece: &[u8]) -> Option<usize> {
    if tail.ends_with(b"-----") && piece.starts_with(b"`") {
        // Prose about the PEM header.
        return Some(0);
    }
    let text = [tail, piece].concat();
    if let Some(end) = memchr::memmem::find(&text, PUTTY_END) {
        return Some(end.saturating_sub(tail.len()));
    }
    let end = memchr::memmem::find(&text, b"-----END")? + 8;
    let close = memchr::memmem::find(&text[end..], b"-----")? + end + 5;
    Some(close.saturating_sub(tail.len()))
}
