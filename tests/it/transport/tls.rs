//! `wss://`: which certificates are trusted, and the errors of unusable files.

use std::fs;
use std::time::Duration;

use acp_relay::jsonrpc::Limits;
use acp_relay::transport::{
    Endpoint, HttpEndpoint, OpenError, OpenErrorKind, Setup, Tls, registry,
};
use tokio::net::TcpStream;

use super::pairs::certificate;
use crate::support::link::{listen, run, setup, setup_with};

fn with(tls: Tls) -> Setup {
    Setup { tls, ..setup() }
}

fn anywhere() -> Endpoint {
    "wss://localhost:0".parse().expect("it is an endpoint")
}

async fn refused(tls: Tls) -> OpenError {
    match registry::listen(&anywhere(), &with(tls)).await {
        Ok(_) => panic!("it listens"),
        Err(fault) => fault,
    }
}

#[test]
fn an_unusable_file_is_named_in_the_error() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let good = certificate(&dir);
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            Some(path)
        };
        let empty = file("empty.pem", "");
        let torn = file("torn.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n");
        let other_dir = tempfile::tempdir().unwrap();
        let other = certificate(&other_dir);
        let missing = Some(dir.path().join("missing.pem"));
        // certificate, key, words of the message
        let cases = [
            (&None, &good.key, "--tls-cert"),
            (&good.cert, &None, "--tls-key"),
            (&missing, &good.key, "missing.pem cannot be read"),
            (&good.cert, &missing, "missing.pem cannot be read"),
            (&empty, &good.key, "empty.pem holds no certificate"),
            (&torn, &good.key, "torn.pem is not valid PEM"),
            (&good.cert, &good.cert, "cert.pem holds no private key"),
            (&good.cert, &other.key, "do not work"),
        ];
        for (cert, key, words) in cases {
            let tls = Tls {
                cert: cert.clone(),
                key: key.clone(),
                ..Tls::default()
            };
            let fault = refused(tls).await;
            assert_eq!(fault.kind, OpenErrorKind::Usage, "{fault}");
            assert!(fault.to_string().contains(words), "{words:?}: {fault}");
        }
        let tls = Tls {
            ca: empty,
            ..Tls::default()
        };
        let to = "wss://localhost:1".parse().unwrap();
        let fault = registry::connect(&to, &with(tls)).await.unwrap_err();
        assert!(
            fault.to_string().contains("holds no certificate"),
            "{fault}"
        );
    });
}

#[test]
fn only_a_trusted_certificate_of_that_name_is_accepted() {
    run(async {
        let (dir, other_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (ours, other) = (certificate(&dir), certificate(&other_dir));
        let mut listener = listen(&anywhere(), &with(ours.clone())).await;
        let to = listener.address();
        let Endpoint::Http(HttpEndpoint { port, .. }) = to else {
            panic!("{to}");
        };
        let by_address: Endpoint = format!("wss://127.0.0.1:{port}").parse().unwrap();
        for (to, tls) in [(&to, &other), (&by_address, &ours)] {
            let setup = with(tls.clone());
            let connecting = registry::connect(to, &setup);
            let accepting = async { listener.accept().await.unwrap().unwrap().finish.await };
            let (client, server) = tokio::join!(connecting, accepting);
            let fault = client.unwrap_err();
            assert_eq!(fault.kind, OpenErrorKind::Protocol);
            assert!(fault.to_string().contains("certificate"), "{fault}");
            assert_eq!(server.unwrap_err().kind, OpenErrorKind::Protocol);
        }
    });
}

#[test]
fn a_client_that_sends_nothing_is_disconnected() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits {
            handshake: Duration::from_millis(50),
            ..Limits::default()
        };
        let mut setup = setup_with(limits);
        setup.tls = certificate(&dir);
        for at in ["wss://127.0.0.1:0", "ws://127.0.0.1:0"] {
            let mut listener = listen(&at.parse().unwrap(), &setup).await;
            let Endpoint::Http(HttpEndpoint { host, port, .. }) = listener.address() else {
                panic!("{at}");
            };
            let _silent = TcpStream::connect((host, port)).await.unwrap();
            let arrival = listener.accept().await.unwrap().unwrap();
            let fault = arrival.finish.await.unwrap_err();
            assert!(
                fault.to_string().contains("not done within 50ms"),
                "{fault}"
            );
        }
    });
}
