//! Certificates: a client's name, and a listener's certificate, replaced while it listens.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use acp_relay::auth::{AuthMethod, AuthRequirement};
use acp_relay::transport::{Endpoint, HttpEndpoint, Setup, Tls};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::gate::gate;
use crate::config::stage::Stage;
use crate::support::link::{accept, listen, run, setup};

/// A certificate authority.
struct Authority {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        Self {
            certificate,
            issuer,
        }
    }

    fn sign(&self, params: &CertificateParams) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }
}

fn named(common: &str, alternatives: Vec<SanType>) -> CertificateParams {
    let mut params = CertificateParams::new([]).unwrap();
    params.distinguished_name.push(DnType::CommonName, common);
    params.subject_alt_names = alternatives;
    params
}

/// The files of a listener, signed by `authority`, which is also the one of its clients.
fn files(dir: &TempDir, authority: &Authority) -> Tls {
    let path = |name: &str| Some(dir.path().join(name));
    let tls = Tls {
        cert: path("cert.pem"),
        key: path("key.pem"),
        client_ca: path("ca.pem"),
        ..Tls::default()
    };
    write(&tls, authority);
    tls
}

fn write(tls: &Tls, authority: &Authority) {
    let host = SanType::DnsName("localhost".try_into().unwrap());
    let (certificate, key) = authority.sign(&named("relay", vec![host]));
    let write = |path: &Option<PathBuf>, text: String| fs::write(path.as_ref().unwrap(), text);
    // In this order, a certificate is there before its key.
    write(&tls.cert, certificate.pem()).unwrap();
    write(&tls.key, key.serialize_pem()).unwrap();
    write(&tls.client_ca, authority.certificate.pem()).unwrap();
}

/// Opens TLS, with a client certificate or none.
async fn dial(
    port: u16,
    trusted: &Authority,
    shown: Option<(rcgen::Certificate, KeyPair)>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.certificate.der().clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match shown {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
            let chain: Vec<CertificateDer<'_>> = vec![certificate.der().clone()];
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

/// Requests a WebSocket; the status.
async fn upgrade(stream: &mut TlsStream<TcpStream>, port: u16) -> std::io::Result<String> {
    upgrade_at(stream, port, "/acp").await
}

async fn upgrade_at(
    stream: &mut TlsStream<TcpStream>,
    port: u16,
    path: &str,
) -> std::io::Result<String> {
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let mut status = vec![0; 12];
    stream.read_exact(&mut status).await?;
    Ok(String::from_utf8(status).unwrap())
}

fn port(at: &Endpoint) -> u16 {
    match at {
        Endpoint::Http(HttpEndpoint { port, .. }) => *port,
        other => panic!("{other}"),
    }
}

#[test]
fn a_certificate_is_the_clients_name_and_without_it_there_is_none() {
    run(async {
        let (dir, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        let setup = Setup {
            tls: files(&dir, &authority),
            gate: gate(AuthRequirement::Credential, 0, 5),
            ..setup()
        };
        let mut listener = listen(&"https://localhost:0".parse().unwrap(), &setup).await;
        let port = port(&listener.address());
        let name = |text: &str| text.try_into().unwrap();
        let cases = [
            ("old style", vec![], "old style"),
            (
                "x",
                vec![SanType::DnsName(name("host.example"))],
                "host.example",
            ),
            (
                "x",
                vec![SanType::Rfc822Name(name("a@b.example"))],
                "a@b.example",
            ),
            (
                "x",
                vec![
                    SanType::IpAddress([127, 0, 0, 1].into()),
                    SanType::URI(name("spiffe://x/y")),
                ],
                "spiffe://x/y",
            ),
            ("e\u{1b}[31mvil", vec![], "e\\u{1b}[31mvil"),
        ];
        for (common, alternatives, expected) in cases {
            let shown = authority.sign(&named(common, alternatives));
            let mut stream = dial(port, &authority, Some(shown)).await.unwrap();
            assert_eq!(upgrade(&mut stream, port).await.unwrap(), "HTTP/1.1 101");
            let principal = accept(&mut *listener).await.peer.principal.unwrap();
            assert_eq!(
                (principal.auth_method, &*principal.name),
                (AuthMethod::Certificate, expected)
            );
            assert!(!principal.grant.admin && principal.expires.is_some());
        }
        let accepting = tokio::spawn(async move { while listener.accept().await.is_some() {} });
        let mut stream = dial(port, &authority, None).await.unwrap();
        assert_eq!(upgrade(&mut stream, port).await.unwrap(), "HTTP/1.1 401");
        // A certificate of another authority ends the handshake, or the connection after it.
        let other = Authority::new().sign(&named("x", vec![]));
        let refused = match dial(port, &authority, Some(other)).await {
            Ok(mut stream) => upgrade(&mut stream, port).await.map(drop),
            Err(fault) => Err(fault),
        };
        assert!(refused.is_err());
        accepting.abort();
    });
}

#[test]
fn a_listeners_certificate_is_replaced_while_it_listens() {
    run(async {
        let (dir, old, new) = (
            tempfile::tempdir().unwrap(),
            Authority::new(),
            Authority::new(),
        );
        let setup = Setup {
            tls: files(&dir, &old),
            ..setup()
        };
        let mut listener = listen(&"https://localhost:0".parse().unwrap(), &setup).await;
        let port = port(&listener.address());
        let accepting = tokio::spawn(async move { while listener.accept().await.is_some() {} });
        let mut kept = dial(port, &old, None).await.unwrap();
        // While the files do not match, the old ones are used.
        fs::write(setup.tls.key.as_ref().unwrap(), "").unwrap();
        for _ in 0..20 {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            dial(port, &old, None).await.unwrap();
        }
        write(&setup.tls, &new);
        while dial(port, &new, None).await.is_err() {
            tokio::task::yield_now().await;
        }
        assert!(dial(port, &old, None).await.is_err());
        // An open connection stays.
        assert_eq!(upgrade(&mut kept, port).await.unwrap(), "HTTP/1.1 101");
        accepting.abort();
    });
}

#[test]
fn the_file_sets_the_admitted_names_and_the_certificate() {
    run(async {
        let config = r#"
            default-agent = "one"
            [agents.one]
            command = ["AGENT"]
            [agents.two]
            command = ["AGENT"]
            [[listeners]]
            endpoint = "https://127.0.0.1:0"
            tls-cert = "cert.pem"
            tls-key = "key.pem"
            tls-client-ca = "ca.pem"
            [auth]
            require-token = true
            [auth.certificates."ci.example"]
            agents = ["two"]
            [auth.certificates.ops]
        "#;
        let (stage, authority, other) = (Stage::with(config), Authority::new(), Authority::new());
        files(&stage.dir, &authority);
        let mut serve = stage.serve();
        let port = port(&serve.address().await.parse().unwrap());
        let asked = async |common: &str, path: &str| {
            let shown = authority.sign(&named(common, vec![]));
            let mut stream = dial(port, &authority, Some(shown)).await.unwrap();
            let status = upgrade_at(&mut stream, port, path).await.unwrap();
            status.trim_start_matches("HTTP/1.1 ").to_owned()
        };
        for (common, path, status) in [
            ("ci.example", "/agents/two/acp", "101"),
            ("ci.example", "/agents/one/acp", "403"),
            ("ci.example", "/acp", "403"),
            ("ops", "/agents/one/acp", "101"),
            ("ops", "/acp", "101"),
            ("nobody.example", "/agents/two/acp", "401"),
        ] {
            assert_eq!(asked(common, path).await, status, "{common} {path}");
        }
        // Another file with other certificates, and without one name.
        let new = tempfile::tempdir_in(stage.dir.path()).unwrap();
        files(&new, &other);
        let folder = new.path().file_name().unwrap().to_str().unwrap();
        let changed = config.replace("\"cert.pem", &format!("\"{folder}/cert.pem"));
        let changed = changed.replace("\"key.pem", &format!("\"{folder}/key.pem"));
        stage.write(&changed.replace("[auth.certificates.ops]", ""));
        serve.signal(Signal::HUP);
        while !serve.complaint().await.unwrap().contains("reloaded") {}
        while dial(port, &other, None).await.is_err() {}
        let shown = authority.sign(&named("ops", vec![]));
        let mut stream = dial(port, &other, Some(shown)).await.unwrap();
        let status = upgrade_at(&mut stream, port, "/acp").await.unwrap();
        assert_eq!(status, "HTTP/1.1 401");
    });
}
