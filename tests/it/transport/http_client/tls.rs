//! HTTP over TLS: which version is negotiated, and which servers are trusted.

use std::sync::Arc;

use acp_relay::transport::{OpenErrorKind, Pin, RequestHeaders, Setup, Tls, registry};
use data_encoding::{BASE64, HEXUPPER};
use hyper::{Method, Version};
use rcgen::PublicKeyData as _;
use ring::digest::{SHA256, digest};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use crate::support::http::INITIALIZE;
use crate::support::http_server::Server;
use crate::support::link::{run, send, setup};

/// A server's side of TLS, and the hashes of its certificate and its key.
fn acceptor(names: &[&str], protocols: &[&str]) -> (TlsAcceptor, [Vec<u8>; 2], String) {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let der = made.cert.der().clone();
    let hash = |bytes: &[u8]| digest(&SHA256, bytes).as_ref().to_vec();
    let hashes = [
        hash(&der),
        hash(&made.signing_key.subject_public_key_info()),
    ];
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![der], key.into())
        .unwrap();
    config.alpn_protocols = protocols
        .iter()
        .map(|one| one.as_bytes().to_vec())
        .collect();
    (TlsAcceptor::from(Arc::new(config)), hashes, made.cert.pem())
}

fn pinned(pin: &str) -> Setup {
    let tls = Tls {
        pin: Some(pin.parse::<Pin>().unwrap()),
        ..Tls::default()
    };
    Setup { tls, ..setup() }
}

#[test]
fn the_http_version_is_negotiated_by_alpn() {
    let cases: [(&[&str], Version); 3] = [
        (&["h2", "http/1.1"], Version::HTTP_2),
        (&["http/1.1"], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ];
    for (protocols, version) in cases {
        run(async {
            let (tls, _, pem) = acceptor(&["localhost"], protocols);
            let dir = tempfile::tempdir().unwrap();
            let ca = dir.path().join("ca.pem");
            std::fs::write(&ca, pem).unwrap();
            let tls_setup = Tls {
                ca: Some(ca),
                ..Tls::default()
            };
            let setup = Setup {
                tls: tls_setup,
                ..setup()
            };
            let mut server = Server::start_with(Some(tls)).await;
            let mut link = registry::connect(&server.at("https"), &setup)
                .await
                .unwrap();
            send(&mut *link.tx, INITIALIZE).await.unwrap();
            let asked = server.of(Method::POST).await;
            assert_eq!(asked.version, version);
        });
    }
}

#[test]
fn a_pinned_server_is_trusted_whatever_name_its_certificate_has() {
    run(async {
        let (tls, [certificate, key], _) = acceptor(&["elsewhere.example"], &["h2"]);
        let mut server = Server::start_with(Some(tls)).await;
        let colons: Vec<String> = certificate
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect();
        for pin in [
            HEXUPPER.encode(&certificate),
            colons.join(":"),
            BASE64.encode(&key),
            format!("sha256//{}", BASE64.encode(&key)),
        ] {
            let setup = pinned(&pin);
            let mut link = registry::connect(&server.at("https"), &setup)
                .await
                .unwrap();
            send(&mut *link.tx, INITIALIZE).await.unwrap();
            server.of(Method::POST).await.accept();
        }
    });
}

#[test]
fn a_server_that_is_neither_pinned_nor_certified_is_not_trusted() {
    run(async {
        let (tls, [certificate, _], _) = acceptor(&["localhost"], &[]);
        let server = Server::start_with(Some(tls)).await;
        let found = data_encoding::HEXLOWER.encode(&certificate);
        for (setup, words) in [
            (pinned(&"00".repeat(32)), found.as_str()),
            (setup(), "the TLS handshake failed"),
        ] {
            for scheme in ["https", "wss"] {
                let fault = registry::connect(&server.at(scheme), &setup).await;
                let fault = fault.unwrap_err();
                assert_eq!(fault.kind, OpenErrorKind::Protocol, "{fault}");
                assert!(fault.to_string().contains(words), "{fault}");
            }
        }
    });
}

#[test]
fn a_pin_must_be_a_hash() {
    for text in ["", "00", "sha256:xyz", &"0".repeat(63), &"zz".repeat(32)] {
        assert!(text.parse::<Pin>().is_err(), "{text:?}");
    }
}

#[test]
fn headers_that_users_may_not_set_are_refused() {
    let mut headers = RequestHeaders::default();
    for (line, words) in [
        ("nothing", "no colon"),
        ("a b: c", "cannot be the name"),
        ("Host: x", "set by the transport"),
        ("Sec-WebSocket-Protocol: x", "set by the transport"),
        ("X-A: \u{7}secret", "X-A holds a character"),
    ] {
        let fault = headers.add(line).unwrap_err();
        assert!(
            fault.contains(words) && !fault.contains("secret"),
            "{fault}"
        );
    }
    for token in ["", " \n", "two words", "tab\tbed"] {
        assert!(headers.set_bearer(token).is_err(), "{token:?}");
    }
    headers.add("Authorization: Basic x").unwrap();
    assert!(headers.set_bearer("token").is_err());
}

#[test]
fn a_websocket_is_opened_with_the_same_headers() {
    run(async {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = socket.local_addr().unwrap().port();
        let mut headers = RequestHeaders::default();
        headers.add("Cookie: route=a").unwrap();
        headers.set_bearer("token").unwrap();
        let setup = Setup {
            request_headers: headers,
            ..setup()
        };
        let endpoint = format!("ws://127.0.0.1:{port}/acp").parse().unwrap();
        let serving = async {
            let (mut stream, _) = socket.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                assert!(stream.read_buf(&mut head).await.unwrap() > 0);
            }
            let no = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno";
            stream.write_all(no.as_bytes()).await.unwrap();
            String::from_utf8(head).unwrap()
        };
        let (link, head) = tokio::join!(registry::connect(&endpoint, &setup), serving);
        assert!(head.contains("\r\ncookie: route=a\r\n"), "{head}");
        assert!(
            head.contains("\r\nauthorization: Bearer token\r\n"),
            "{head}"
        );
        let fault = link.unwrap_err();
        assert_eq!(fault.kind, OpenErrorKind::Forbidden, "{fault}");
    });
}
