//! How a listener proves to a program of the same user that it runs on the same machine.
//!
//! A loopback address is no proof: a tunnel (`ssh -L`) listens there, too, as the same user. The
//! client sends a nonce; the listener answers with an HMAC-SHA-256 over it, keyed with a secret in
//! a file that only this user can read. The secret itself is never sent. Two more things go into
//! the HMAC: the machine, because a home directory may be shared by several, and the address that
//! the client has dialed, because a server at the other end of a tunnel could pass the nonce on to
//! a genuine listener, which has another address.

use std::net::SocketAddr;

use data_encoding::HEXLOWER;
use ring::hmac;

/// The header of a request that carries a nonce.
pub const CHALLENGE: &str = "acp-relay-challenge";
/// The header of its answer that carries the proof.
pub const PROOF: &str = "acp-relay-proof";

/// Longest nonce that is answered, in bytes.
const MAX_NONCE: usize = 128;

/// The key of a relay's listeners on one machine.
#[derive(Clone, Debug)]
pub struct LocalKey {
    key: hmac::Key,
    machine: String,
}

impl LocalKey {
    /// The key for this secret, on this machine.
    #[must_use]
    pub fn new(secret: &str, machine: &str) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret.trim().as_bytes()),
            machine: machine.trim().to_owned(),
        }
    }

    /// The proof of the listener at `address`; `None` for a nonce that is too long.
    #[must_use]
    pub fn prove(&self, nonce: &[u8], address: SocketAddr) -> Option<String> {
        let tag = || hmac::sign(&self.key, &self.message(nonce, address));
        (nonce.len() <= MAX_NONCE).then(|| HEXLOWER.encode(tag().as_ref()))
    }

    /// Whether `proof` is that of the listener at `address`, in constant time.
    #[must_use]
    pub fn verify(&self, nonce: &[u8], address: SocketAddr, proof: &[u8]) -> bool {
        let message = self.message(nonce, address);
        let tag = HEXLOWER.decode(proof);
        tag.is_ok_and(|tag| hmac::verify(&self.key, &message, &tag).is_ok())
    }

    fn message(&self, nonce: &[u8], address: SocketAddr) -> Vec<u8> {
        // ::ffff:127.0.0.1 is the same address as 127.0.0.1.
        let (ip, port) = (address.ip().to_canonical(), address.port());
        let context = format!("acp-relay listener 1\n{}\n{ip} {port}\n", self.machine);
        [context.as_bytes(), nonce].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proof_is_bound_to_key_machine_address_and_nonce() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let key = LocalKey::new("secret\n", "machine\n");
        let proof = key.prove(b"nonce", at("127.0.0.1:9000")).expect("a proof");
        let is_good = |key: &LocalKey, nonce: &[u8], address| {
            key.verify(nonce, at(address), proof.as_bytes())
        };
        assert!(is_good(&key, b"nonce", "127.0.0.1:9000"));
        assert!(is_good(&key, b"nonce", "[::ffff:127.0.0.1]:9000"));
        for other in ["127.0.0.1:9001", "127.0.0.2:9000", "[::1]:9000"] {
            assert!(!is_good(&key, b"nonce", other), "{other}");
        }
        assert!(!is_good(&key, b"other", "127.0.0.1:9000"));
        for (secret, machine) in [("other", "machine"), ("secret", "other")] {
            let other = LocalKey::new(secret, machine);
            assert!(!is_good(&other, b"nonce", "127.0.0.1:9000"));
        }
        assert!(!key.verify(b"nonce", at("127.0.0.1:9000"), b""));
        assert_eq!(key.prove(&[b'n'; MAX_NONCE + 1], at("127.0.0.1:1")), None);
    }
}
