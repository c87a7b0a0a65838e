//! The certificate of a listener, which is reloaded while it listens, and the name in a client's
//! certificate.
//!
//! When a client connects, the files are checked and read again if they have changed. Invalid files (a certificate is written before its key) leave the old ones in use. So
//! no reload command and no task is needed.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{ServerConfig, ServerConnection};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::{Endpoint, OpenError, Tls, tls};
use auth::Certificate;
use jsonrpc::printable;
use panics::SharedMutex;

/// Longest name of a client that is accepted, in bytes.
const MAX_NAME: usize = 256;

/// The certificate and key of a listener.
pub(super) struct Certificates {
    at: Endpoint,
    tls: Tls,
    protocols: Vec<Vec<u8>>,
    current: SharedMutex<Current>,
}

struct Current {
    config: Arc<ServerConfig>,
    /// The files when they were last read, with or without success.
    stamps: Vec<Stamp>,
}

/// Identifies the version of a file: its modification time and its size.
type Stamp = Option<(SystemTime, u64)>;

impl Certificates {
    /// Reads the files. `protocols` are those of ALPN.
    pub(super) fn read(at: &Endpoint, tls: &Tls, protocols: &[&[u8]]) -> Result<Self, OpenError> {
        let protocols: Vec<_> = protocols.iter().map(|name| name.to_vec()).collect();
        let stamps = stamps(tls);
        let config = tls::server_config(at, tls, &protocols)?;
        Ok(Self {
            at: at.clone(),
            tls: tls.clone(),
            protocols,
            current: SharedMutex::new(Current { config, stamps }),
        })
    }

    /// The acceptor for a new client.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut current = self.current.lock();
        let stamps = stamps(&self.tls);
        if stamps != current.stamps {
            current.stamps = stamps;
            match tls::server_config(&self.at, &self.tls, &self.protocols) {
                Ok(config) => {
                    current.config = config;
                    tracing::info!(at = %self.at, "the certificate was reloaded");
                }
                Err(fault) => tracing::warn!("the old certificate stays in use: {fault}"),
            }
        }
        TlsAcceptor::from(current.config.clone())
    }
}

fn stamps(tls: &Tls) -> Vec<Stamp> {
    let stamp = |path: &Path| {
        let about = fs::metadata(path).ok()?;
        Some((about.modified().ok()?, about.len()))
    };
    let files = [&tls.cert, &tls.key, &tls.client_ca];
    let files = files.into_iter().flatten();
    files.map(|path| stamp(path)).collect()
}

/// The identity in a client's certificate; `None` if it has shown none, or one without a name.
pub(super) fn of_client(connection: &ServerConnection) -> Option<Certificate> {
    let chain = connection.peer_certificates()?;
    let (_, certificate) = X509Certificate::from_der(chain.first()?).ok()?;
    let name = name(&certificate)?;
    if name.is_empty() || name.len() > MAX_NAME {
        return None;
    }
    let until = certificate.validity().not_after.timestamp();
    Some(Certificate {
        // The name is logged.
        name: printable(name.as_bytes()).into(),
        expires: u64::try_from(until).unwrap_or(0),
    })
}

/// The first alternative name that is a host, a mail address or a URI; otherwise the common name,
/// as in certificates of older authorities.
fn name(certificate: &X509Certificate<'_>) -> Option<String> {
    let alternatives = certificate.subject_alternative_name().ok().flatten();
    let alternatives = alternatives.iter().flat_map(|all| &all.value.general_names);
    let mut names = alternatives.filter_map(|one| match one {
        GeneralName::DNSName(name) | GeneralName::RFC822Name(name) | GeneralName::URI(name) => {
            Some((*name).to_owned())
        }
        _ => None,
    });
    names.next().or_else(|| {
        let mut common = certificate.subject().iter_common_name();
        Some(common.next()?.as_str().ok()?.to_owned())
    })
}
