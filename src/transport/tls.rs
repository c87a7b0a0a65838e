//! TLS of `wss://`, `https://` and others: the certificates to present and to trust.
//!
//! The crypto provider is named here only, so no process-wide default is needed and another library
//! that sets one cannot change it. Verification cannot be skipped: a self-signed certificate is
//! trusted by naming it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::pin::PinVerifier;
use super::{Endpoint, OpenError, OpenErrorKind, Tls, open_error};

/// The configuration of a listener. `protocols` are its protocols in order of preference, for ALPN;
/// a listener without any does not negotiate.
pub(super) fn server_config(
    at: &Endpoint,
    tls: &Tls,
    protocols: &[Vec<u8>],
) -> Result<Arc<ServerConfig>, OpenError> {
    let (Some(cert), Some(key)) = (&tls.cert, &tls.key) else {
        let what = "a listener with TLS needs a certificate and its key";
        return Err(OpenError::new(OpenErrorKind::Usage, at, what)
            .with_remedy("Give both with --tls-cert and --tls-key, in PEM"));
    };
    let chain = certificates(at, cert)?;
    let private = private(at, key)?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|fault| setup_failed(at, &fault))?;
    let builder = match &tls.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = Arc::new(authorities(at, path)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider())
                // A client without a certificate may still have a token.
                .allow_unauthenticated()
                .build()
                .map_err(|fault| setup_failed(at, &fault))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_single_cert(chain, private).map_err(|fault| {
        let (cert, key) = (cert.display(), key.display());
        let what = format!("the certificate {cert} and the key {key} do not work ({fault})");
        OpenError::new(OpenErrorKind::Usage, at, what)
            .with_remedy("Check that the key belongs to the first certificate of the file")
    })?;
    protocols.clone_into(&mut config.alpn_protocols);
    Ok(Arc::new(config))
}

/// The errors of a listener's certificate files, each with the name of its option: missing, invalid
/// or not matching.
#[must_use]
pub fn check_certificates(at: &Endpoint, tls: &Tls) -> Vec<(&'static str, OpenError)> {
    type Check = fn(&Endpoint, &Path) -> Result<(), OpenError>;
    let checks: [(_, _, Check); 3] = [
        ("tls-cert", &tls.cert, |at, path| {
            certificates(at, path).map(drop)
        }),
        ("tls-key", &tls.key, |at, path| private(at, path).map(drop)),
        ("tls-client-ca", &tls.client_ca, check_authorities),
    ];
    let mut faults: Vec<_> = (checks.into_iter())
        .filter_map(|(option, path, check)| Some((option, check(at, path.as_ref()?).err()?)))
        .collect();
    if faults.is_empty() {
        // Each file is valid by itself.
        faults.extend(
            server_config(at, tls, &[])
                .err()
                .map(|fault| ("tls-key", fault)),
        );
    }
    faults
}

/// Checks the file of the authorities that a connector trusts.
///
/// # Errors
/// When it is missing or invalid.
pub fn check_authorities(to: &Endpoint, path: &Path) -> Result<(), OpenError> {
    authorities(to, path).map(drop)
}

/// The configuration of a connector: the certificates it trusts and the protocols it offers.
pub(super) fn connector(
    to: &Endpoint,
    tls: &Tls,
    protocols: &[&[u8]],
) -> Result<TlsConnector, OpenError> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|fault| setup_failed(to, &fault))?;
    let trusting = if let Some(pin) = tls.pin {
        let verifier = PinVerifier::new(pin, &provider());
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
    } else {
        let roots = Arc::new(roots(to, tls)?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider())
            .build()
            .map_err(|fault| setup_failed(to, &fault))?;
        builder.with_webpki_verifier(verifier)
    };
    let mut config = trusting.with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|one| one.to_vec()).collect();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Performs the TLS handshake with a server.
pub(super) async fn handshake(
    to: &Endpoint,
    host: &str,
    connector: &TlsConnector,
    stream: TcpStream,
    within: Duration,
) -> Result<TlsStream<TcpStream>, OpenError> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        let what = format!("{host:?} cannot be the name of a TLS server");
        OpenError::new(OpenErrorKind::Usage, to, what)
    })?;
    timeout(within, connector.connect(name, stream))
        .await
        .map_err(|_| open_error::timed_out(to, "TLS", within))?
        .map_err(|fault| open_error::not_encrypted(to, &fault))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn roots(to: &Endpoint, tls: &Tls) -> Result<RootCertStore, OpenError> {
    if let Some(path) = &tls.ca {
        return authorities(to, path);
    }
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for fault in &found.errors {
        tracing::debug!(%fault, "a certificate of the system was skipped");
    }
    // A store may hold certificates that cannot be used; the others are still trusted.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let what = "this system has no certificates to trust";
        return Err(OpenError::new(OpenErrorKind::System, to, what)
            .with_remedy("Install ca-certificates, or name a file with --tls-ca"));
    }
    Ok(roots)
}

/// The certificates of a file, as trusted authorities.
fn authorities(endpoint: &Endpoint, path: &Path) -> Result<RootCertStore, OpenError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(endpoint, path)? {
        roots.add(certificate).map_err(|fault| {
            let path = path.display();
            let what = format!("a certificate in {path} cannot be trusted ({fault})");
            OpenError::new(OpenErrorKind::Usage, endpoint, what)
        })?;
    }
    Ok(roots)
}

fn certificates(
    endpoint: &Endpoint,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, OpenError> {
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<_, _>>)
        .map_err(|fault| unreadable(endpoint, "certificate", path, &fault))?;
    if found.is_empty() {
        return Err(unreadable(
            endpoint,
            "certificate",
            path,
            &pem::Error::NoItemsFound,
        ));
    }
    Ok(found)
}

fn private(endpoint: &Endpoint, path: &Path) -> Result<PrivateKeyDer<'static>, OpenError> {
    let key = PrivateKeyDer::from_pem_file(path);
    key.map_err(|fault| unreadable(endpoint, "private key", path, &fault))
}

fn unreadable(endpoint: &Endpoint, thing: &str, path: &Path, fault: &pem::Error) -> OpenError {
    let path = path.display();
    let (what, remedy) = match fault {
        pem::Error::Io(fault) => (
            format!("the {thing} file {path} cannot be read ({fault})"),
            "Check the path and its permissions",
        ),
        pem::Error::NoItemsFound => (
            format!("the file {path} holds no {thing} in PEM"),
            "A PEM file holds lines such as -----BEGIN CERTIFICATE-----",
        ),
        fault => (
            format!("the {thing} file {path} is not valid PEM ({fault})"),
            "A PEM file holds lines such as -----BEGIN CERTIFICATE-----",
        ),
    };
    OpenError::new(OpenErrorKind::Usage, endpoint, what).with_remedy(remedy)
}

fn setup_failed(endpoint: &Endpoint, fault: impl fmt::Display) -> OpenError {
    let what = format!("TLS cannot be set up ({fault})");
    OpenError::new(OpenErrorKind::System, endpoint, what)
}
