//! The certificate a listener shows, which may be exchanged while it listens, and the name in the
//! one that a client shows.
//!
//! When somebody comes, at most once a second, the files are looked at, and read again when they
//! have changed. Files that will not do (a certificate is there before its key) leave the old ones
//! in place until they do. Nothing has to be told, no task runs. Not here: how they are read (see
//! `tls`).

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{ServerConfig, ServerConnection};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::{Endpoint, OpenError, Tls, tls};
use crate::auth::Certificate;
use crate::jsonrpc::printable;

/// Time between two looks at the files.
const PAUSE: Duration = Duration::from_secs(1);

/// Longest name of a client that is taken, in bytes.
const NAME: usize = 256;

/// What a listener shows.
pub(super) struct Certificates {
    at: Endpoint,
    tls: Tls,
    protocols: Vec<Vec<u8>>,
    shown: Mutex<Shown>,
}

struct Shown {
    config: Arc<ServerConfig>,
    looked: Instant,
    /// The files as they were when they were read last, with or without success.
    stamps: Vec<Stamp>,
}

/// What tells a file from the one that was there before: when it was written, its size.
type Stamp = Option<(SystemTime, u64)>;

impl Certificates {
    /// Reads the files. `protocols` are those of ALPN.
    pub(super) fn read(at: &Endpoint, tls: &Tls, protocols: &[&[u8]]) -> Result<Self, OpenError> {
        let protocols: Vec<_> = protocols.iter().map(|name| name.to_vec()).collect();
        let stamps = stamps(tls);
        let config = tls::server(at, tls, &protocols)?;
        Ok(Self {
            at: at.clone(),
            tls: tls.clone(),
            protocols,
            shown: Mutex::new(Shown {
                config,
                looked: Instant::now(),
                stamps,
            }),
        })
    }

    /// What is shown to whoever comes now.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut shown = self.shown.lock();
        if shown.looked.elapsed() >= PAUSE {
            shown.looked = Instant::now();
            let stamps = stamps(&self.tls);
            if stamps != shown.stamps {
                shown.stamps = stamps;
                match tls::server(&self.at, &self.tls, &self.protocols) {
                    Ok(config) => {
                        shown.config = config;
                        tracing::info!(at = %self.at, "the certificate was read again");
                    }
                    Err(fault) => tracing::warn!("the old certificate is shown on: {fault}"),
                }
            }
        }
        TlsAcceptor::from(shown.config.clone())
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

/// Whose certificate a client has shown; none when it has shown none, or one without a name.
pub(super) fn shown(connection: &ServerConnection) -> Option<Certificate> {
    let chain = connection.peer_certificates()?;
    let (_, certificate) = X509Certificate::from_der(chain.first()?).ok()?;
    let name = name(&certificate)?;
    if name.is_empty() || name.len() > NAME {
        return None;
    }
    let until = certificate.validity().not_after.timestamp();
    Some(Certificate {
        // It stands in logs.
        name: printable(name.as_bytes()).into(),
        expires: u64::try_from(until).unwrap_or(0),
    })
}

/// The first alternative name that is a host, a mail address or a URI; else the common name, as
/// older authorities have it.
fn name(certificate: &X509Certificate<'_>) -> Option<String> {
    let alternatives = certificate.subject_alternative_name().ok().flatten();
    let alternatives = alternatives.iter().flat_map(|all| &all.value.general_names);
    let mut named = alternatives.filter_map(|one| match one {
        GeneralName::DNSName(name) | GeneralName::RFC822Name(name) | GeneralName::URI(name) => {
            Some((*name).to_owned())
        }
        _ => None,
    });
    named.next().or_else(|| {
        let mut common = certificate.subject().iter_common_name();
        Some(common.next()?.as_str().ok()?.to_owned())
    })
}
