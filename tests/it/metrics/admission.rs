//! Metrics of admission: refused clients with the reason, checked credentials, and files that are
//! read again.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::stage::Relay;

const REJECTED: &str = "acp_relay_connections_rejected_total";

/// The headers of a client without access; the status of the answer; the counted reason.
type RefusedClient = (&'static [(&'static str, &'static str)], u16, &'static str);

const REFUSED: [RefusedClient; 5] = [
    (&[], 401, "auth"),
    (&[("authorization", "Bearer wrong")], 401, "auth"),
    (&[("origin", "https://evil.example")], 403, "origin"),
    (&[("sec-fetch-site", "cross-site")], 403, "origin"),
    (&[("host", "evil.example")], 421, "host"),
];

#[test]
fn rejected_clients_and_their_credentials_are_counted() {
    for (listen, transport) in [
        ("http://127.0.0.1:0", "http"),
        ("agent-connect+http://127.0.0.1:0/acp", "agent_connect"),
    ] {
        let options = ["--listen", listen, "--require-token"];
        let relay = Relay::serve(TempDir::new().unwrap(), &options, &[]);
        for (fields, status, reason) in REFUSED {
            let before = relay.scrape();
            let labels = [("transport", transport), ("reason", reason)];
            let answer = Relay::ask_at(&relay.address, "/acp", fields);
            assert_eq!(answer.status, status, "{listen} {fields:?}");
            let now = relay.scrape();
            let grown = now.value(REJECTED, &labels) - before.value(REJECTED, &labels);
            assert_eq!(grown, 1., "{listen} {fields:?}");
        }
        let scrape = relay.scrape();
        let tried = |method, outcome| {
            let labels = [("method", method), ("outcome", outcome)];
            scrape.value("acp_relay_auth_attempts_total", &labels)
        };
        assert_eq!(tried("none", "refused"), 1., "{listen}");
        assert_eq!(tried("token", "refused"), 1., "{listen}");
        assert_eq!(tried("token", "ok"), 0., "{listen}");
        assert_eq!(scrape.value(REJECTED, &[("transport", "other")]), 0.);
    }
}

/// A posted message, as header lines and a body; the status of the answer; the counted reason.
type Posted<'a> = (&'a str, &'a str, u16, &'a str);

const POSTED: [Posted<'_>; 5] = [
    ("", "[1]", 400, "handshake"),
    ("", "{\"jsonrpc\":", 400, "handshake"),
    (
        "",
        r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#,
        400,
        "handshake",
    ),
    ("Content-Encoding: br\r\n", "{}", 415, "handshake"),
    ("Acp-Connection-Id: x\r\n", "{}", 404, "unknown"),
];

#[test]
fn a_request_refused_after_admission_is_counted() {
    let options = [
        "--listen",
        "http://127.0.0.1:0",
        "--limit",
        "frame-from-network=64KiB",
        "--limit",
        "http-body=100ms",
    ];
    let relay = Relay::serve(TempDir::new().unwrap(), &options, &[]);
    for (fields, body, status, reason) in POSTED {
        let labels = [("transport", "http"), ("reason", reason)];
        let before = relay.scrape();
        assert_eq!(relay.post(fields, body).status, status, "{body:.40}");
        let now = relay.scrape();
        for (labels, grown) in [(&labels[..], 1.), (&[], 1.)] {
            let grew = now.value(REJECTED, labels) - before.value(REJECTED, labels);
            assert_eq!(grew, grown, "{body:.40}");
        }
    }
    // A body that would be too long, and one that does not arrive.
    for (length, reason) in [(70_000, "limit"), (9, "timeout")] {
        let mut stream = TcpStream::connect(&relay.address).unwrap();
        let head = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{{");
        let host = &relay.address;
        write!(stream, "POST /acp HTTP/1.1\r\nHost: {host}\r\n{head}").unwrap();
        let labels = [("transport", "http"), ("reason", reason)];
        let scrape = relay.scrape_for(REJECTED, &labels);
        assert_eq!(scrape.value(REJECTED, &labels), 1.);
    }
}

#[test]
fn an_unknown_agent_and_a_failed_tls_handshake_are_counted() {
    let folder = TempDir::new().unwrap();
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
    fs::write(&cert, own.cert.pem()).unwrap();
    fs::write(&key, own.signing_key.serialize_pem()).unwrap();
    let options = ["--listen", "http://127.0.0.1:0"];
    let relay = Relay::serve(TempDir::new().unwrap(), &options, &[]);
    let answer = Relay::ask_at(&relay.address, "/agents/none/acp", &[]);
    assert_eq!(answer.status, 404);
    let labels = [("transport", "http"), ("reason", "policy")];
    assert_eq!(relay.scrape().value(REJECTED, &labels), 1.);

    let [cert, key] = [cert, key].map(|path| path.to_str().unwrap().to_owned());
    let mut options = vec!["--listen", "wss://127.0.0.1:0"];
    options.extend(["--tls-cert", &cert, "--tls-key", &key]);
    let relay = Relay::serve(folder, &options, &[]);
    let mut plaintext = TcpStream::connect(&relay.address).unwrap();
    plaintext.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let labels = [("transport", "ws"), ("reason", "tls")];
    relay.scrape_for(REJECTED, &labels);
}

const FILE: &str = r#"
[agents.a]
command = ["cat"]
[log]
format = "json"
[[listeners]]
endpoint = "tcp://127.0.0.1:0"
"#;

#[test]
fn reloads_are_counted_and_the_status_lists_the_open_listeners() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("acp-relay.toml");
    let socket = folder.path().join("s");
    let write = |text: &str| {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    };
    write(FILE);
    let path = file.to_str().unwrap().to_owned();
    let mut relay = Relay::serve(folder, &["--config", &path], &[]);
    let listeners = |relay: &Relay| -> Vec<String> {
        let status: Value = serde_json::from_str(&relay.get("/status").body).unwrap();
        serde_json::from_value(status["listeners"].clone()).unwrap()
    };
    let name = "acp_relay_config_reload_total";
    let at = "acp_relay_config_last_reload_success_timestamp_seconds";
    assert_eq!(relay.scrape().value(at, &[]), 0.);
    let tcp = format!("tcp://{}", relay.address);
    while relay.get("/readyz").status != 200 {}
    assert_eq!(listeners(&relay), std::slice::from_ref(&tcp));

    write(&format!(
        "{FILE}[[listeners]]\nendpoint = \"unix:{}\"\n",
        socket.display()
    ));
    relay.signal(Signal::HUP);
    let scrape = relay.scrape_for(name, &[("outcome", "ok")]);
    assert!(scrape.value(at, &[]) > 1e9);
    let unix = format!("unix:{}", socket.display());
    assert_eq!(listeners(&relay), [tcp.clone(), unix]);

    write("nonsense = 1\n");
    relay.signal(Signal::HUP);
    let scrape = relay.scrape_for(name, &[("outcome", "error")]);
    assert_eq!(scrape.value(name, &[("outcome", "ok")]), 1.);
    assert_eq!(listeners(&relay).len(), 2);

    write(FILE);
    relay.signal(Signal::HUP);
    while relay.scrape().value(name, &[("outcome", "ok")]) < 2. {}
    assert_eq!(listeners(&relay), [tcp]);
    relay.signal(Signal::TERM);
    relay.wait();
}
