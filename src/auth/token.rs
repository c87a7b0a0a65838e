//! The format of tokens, and their digests.
//!
//! `acpr_ID_SECRET`: the id is 12 hexadecimal digits by which people tell tokens apart, the secret 32
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

impl Token {
    /// A new one, from random bytes.
    #[must_use]
    pub fn new(id: [u8; 6], secret: [u8; 32]) -> Self {
        let (id, secret) = (HEXLOWER.encode(&id), BASE64URL_NOPAD.encode(&secret));
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

    /// The id in a token of our format. It is not secret.
    #[must_use]
    pub fn id(&self) -> &str {
        let start = PREFIX.len();
        self.0.get(start..start + 12).unwrap_or_default()
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
    fn token_has_an_id_and_is_checked_by_digest() {
        let token = Token::new([0xab; 6], [7; 32]);
        assert_eq!(token.reveal().len(), 5 + 12 + 1 + 43);
        assert_eq!(token.id(), "ab".repeat(6));
        let read = Token::read(&format!(" {}\n", token.reveal())).expect("a token");
        assert!(read.digest().is(&token.digest()));
        let other = Token::new([0xab; 6], [8; 32]);
        assert!(!other.digest().is(&token.digest()));
        let parsed: Digest = token.digest().to_string().parse().expect("a digest");
        assert!(parsed.is(&token.digest()));
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
