//! The format of tokens, and their digests.
//!
//! `acpr_ID_SECRET`: the id is 12 hexadecimal digits by which the key is found, the secret 32
//! random bytes in base64url. Only a SHA-256 of the whole text is kept. The secret has as many bits
//! as the digest, so no slower hash is needed.

use std::fmt;
use std::str::FromStr;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use ring::digest::{SHA256, digest};
use subtle::ConstantTimeEq as _;

/// The prefix of every token, so that secret scanners find it.
const PREFIX: &str = "acpr_";

/// Shortest text that is accepted as a token, in bytes; users may bring their own.
const MIN_LEN: usize = 32;
/// Longest text that is accepted.
const MAX_LEN: usize = 4096;

/// A token. It is never logged: neither `Debug` nor anything else shows it, only [`Token::reveal`].
#[derive(Clone)]
pub struct Token(String);

/// The SHA-256 of a token.
#[derive(Clone, Copy)]
pub struct Digest([u8; 32]);

/// The part of a token by which its key is found. It is not secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub(super) [u8; 6]);

impl Token {
    /// A new one, from random bytes.
    #[must_use]
    pub fn new(id: [u8; 6], secret: [u8; 32]) -> Self {
        let (id, secret) = (KeyId(id), BASE64URL_NOPAD.encode(&secret));
        Self(format!("{PREFIX}{id}_{secret}"))
    }

    /// Reads a token, of our format or any other.
    ///
    /// # Errors
    /// When the text cannot be one; the error does not repeat it.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        if text.len() < MIN_LEN {
            return Err("a token has 32 characters at least");
        }
        if text.len() > MAX_LEN || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a token is one line of printable ASCII without spaces");
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Its digest, which is all that is kept.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }
}

impl Digest {
    /// The digest of what a client has sent.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        let hash = digest(&SHA256, text);
        let hash = hash.as_ref().try_into();
        Self(hash.expect("SHA-256 has 32 bytes"))
    }

    /// Whether both are equal, in constant time.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl KeyId {
    /// The id in a token's text, if it has our format.
    #[must_use]
    pub fn of(text: &[u8]) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX.as_bytes())?;
        let (id, rest) = rest.split_at_checked(12)?;
        let id = std::str::from_utf8(id).ok()?;
        (rest.first() == Some(&b'_')).then(|| id.parse().ok())?
    }
}

impl FromStr for KeyId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = HEXLOWER.decode(text.as_bytes()).ok();
        let id = bytes.and_then(|bytes| bytes.try_into().ok());
        id.map(Self)
            .ok_or("the id of a token is 12 hexadecimal digits")
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl FromStr for Digest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = HEXLOWER.decode(text.as_bytes()).ok();
        let hash = bytes.and_then(|bytes| bytes.try_into().ok());
        hash.map(Self)
            .ok_or("a SHA-256 is 64 hexadecimal digits in lower case")
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_found_by_id_and_checked_by_digest() {
        let token = Token::new([0xab; 6], [7; 32]);
        assert_eq!(token.reveal().len(), 5 + 12 + 1 + 43);
        assert_eq!(KeyId::of(token.reveal().as_bytes()), Some(KeyId([0xab; 6])));
        let read = Token::read(&format!(" {}\n", token.reveal())).expect("a token");
        assert!(read.digest().is(&token.digest()));
        let other = Token::new([0xab; 6], [8; 32]);
        assert!(!other.digest().is(&token.digest()));
        let parsed: Digest = token.digest().to_string().parse().expect("a digest");
        assert!(parsed.is(&token.digest()));
    }

    #[test]
    fn foreign_tokens_have_no_id() {
        for text in [
            "",
            "acpr_",
            "acpr_abababababab",
            "acpr_ababababababx",
            "acpr_ABABABABABAB_x",
            "acpr_\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}_x",
            "bearer",
        ] {
            assert_eq!(KeyId::of(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn debug_output_hides_the_token() {
        let token = Token::new([1; 6], [2; 32]);
        assert_eq!(
            format!("{token:?} {:?}", token.digest()),
            "Token(…) Digest(…)"
        );
        for bad in [
            "",
            "short",
            "with a space in the middle of it, long",
            "x\u{7}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        ] {
            assert!(Token::read(bad).is_err(), "{bad}");
        }
    }
}
