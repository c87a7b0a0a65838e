//! Verifies a server by the hash of its certificate or of its key, instead of by its signer.
//!
//! For self-signed certificates: no authority is trusted, and expiry and names are ignored, because
//! exactly this key is required. The server still has to prove that it holds the key.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use data_encoding::{BASE64, BASE64_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};
use ring::digest::{SHA256, digest};
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// The SHA-256 of a certificate, or of the public key in it (its SubjectPublicKeyInfo), in DER.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pin([u8; 32]);

/// Trusts exactly one certificate or key.
#[derive(Debug)]
pub(super) struct PinVerifier {
    pin: Pin,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pin {
    fn of(der: &[u8]) -> Self {
        let hash = digest(&SHA256, der);
        let hash = hash.as_ref().try_into();
        Self(hash.expect("SHA-256 has 32 bytes"))
    }
}

impl FromStr for Pin {
    type Err = &'static str;

    /// Parses 64 hexadecimal digits, with or without colons (openssl), or Base64; a prefix
    /// `sha256/`, `sha256//` or `sha256:` of other programs is accepted.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let bare = ["sha256//", "sha256/", "sha256:"]
            .iter()
            .find_map(|prefix| text.strip_prefix(prefix))
            .unwrap_or(text);
        let hex = bare.replace(':', "");
        let bytes = HEXLOWER_PERMISSIVE
            .decode(hex.as_bytes())
            .or_else(|_| BASE64.decode(bare.as_bytes()))
            .or_else(|_| BASE64_NOPAD.decode(bare.as_bytes()));
        let hash = bytes.ok().and_then(|bytes| bytes.try_into().ok());
        hash.map(Self)
            .ok_or("a SHA-256 is 64 hexadecimal digits, or 44 characters of Base64")
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pin({self})")
    }
}

impl PinVerifier {
    pub(super) fn new(pin: Pin, provider: &Arc<CryptoProvider>) -> Self {
        let algorithms = provider.signature_verification_algorithms;
        Self { pin, algorithms }
    }
}

impl ServerCertVerifier for PinVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _stapled: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let key = ParsedCertificate::try_from(certificate)?.subject_public_key_info();
        let (whole, key) = (Pin::of(certificate), Pin::of(&key));
        if self.pin == whole || self.pin == key {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::General(format!(
            "the server's certificate is not the pinned one: its hash is {whole}, \
             or {key} for its SubjectPublicKeyInfo"
        )))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
