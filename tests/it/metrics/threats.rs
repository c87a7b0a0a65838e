//! Metrics of attacks: slow peers and full disks, readers of recordings, readers of the log and of
//! metrics. Each is made against the built program, and the counter of its refusal must grow.
//!
//! Those of admission are in `admission`; `tests/README.md` lists all of them.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::time::Instant;

use tempfile::TempDir;

use super::stage::{AGENT, PATIENCE, Relay, Scrape};
use crate::support::http::INITIALIZE;

/// Sends as many messages as requested, and then its answer.
const SENDER: &str = r#"
while IFS= read -r line; do case "$line" in
*'"flood"'*)
  yes '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"and so on and so on and so on and so on"}}}}' | head -n 150000
  echo '{"jsonrpc":"2.0","id":1,"result":{"done":true}}';;
esac; done
"#;

/// Sends nothing.
const MUTE: &str = "cat >/dev/null";

/// A path, a host, the status of the answer; the counted reason, if there is one.
type Attempt<'a> = (&'a str, &'a str, u16, Option<&'a str>);

fn of(scrape: &Scrape, name: &str, labels: &[(&str, &str)]) -> f64 {
    scrape.value(&format!("acp_relay_{name}"), labels)
}

#[test]
fn a_stalled_reader_pauses_the_writer_and_the_queue_is_bounded() {
    let relay = Relay::under("", &["--limit", "queue-bytes=64KiB"], SENDER);
    let mut client = relay.client();
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"flood"}"#);
    // It does not read: the system's buffers fill, and then the relay's.
    let place = [("dir", "to_client"), ("where", "outbox")];
    let full = |scrape: &Scrape| of(scrape, "buffer_bytes", &place);
    let scrape = relay.scrape_when("a full buffer", |scrape| {
        full(scrape) >= f64::from(64 << 10)
    });
    let room = of(&scrape, "buffer_limit_bytes", &place);
    assert_eq!(room, f64::from(64 << 10));
    // What was read at once is admitted as a whole.
    assert!(full(&scrape) < 2. * room, "{}", full(&scrape));
    client.receive_until("\"done\"");
    let scrape = relay.scrape_for("acp_relay_pauses_total", &[("side", "agent")]);
    let paused = of(
        &scrape,
        "producer_paused_seconds_total",
        &[("side", "agent")],
    );
    assert!(paused > 0., "{paused}");
    assert_eq!(full(&scrape), 0.);
}

#[test]
fn an_invalid_or_endless_handshake_is_counted() {
    let name = "acp_relay_connections_rejected_total";
    for listen in ["ws://127.0.0.1:0", "http://127.0.0.1:0"] {
        let options = ["--listen", listen, "--limit", "handshake=300ms"];
        let relay = Relay::serve(TempDir::new().unwrap(), &options, &[]);
        for (sent, reason) in [
            ("nonsense\r\n\r\n", "handshake"),
            ("GET /acp HT", "timeout"),
        ] {
            let mut stream = TcpStream::connect(&relay.address).unwrap();
            stream.write_all(sent.as_bytes()).unwrap();
            // The refusal is counted when the client has closed, too, or ten seconds later.
            let stream = (reason == "timeout").then_some(stream);
            let scrape = relay.scrape_for(name, &[("reason", reason)]);
            drop(stream);
            assert_eq!(
                scrape.value(name, &[("reason", reason)]),
                1.,
                "{listen} {sent}"
            );
        }
        assert_eq!(relay.scrape().value(name, &[]), 2., "{listen}");
    }
}

#[test]
fn connections_above_a_principals_limit_are_counted() {
    let options = ["--listen", "ws://127.0.0.1:0", "--limit", "per-principal=1"];
    let folder = TempDir::new().unwrap();
    let alice = Relay::bearer(&folder, &["new", "alice"]);
    let relay = Relay::serve(folder, &options, &[]);
    let open = [("side", "client"), ("transport", "ws")];
    let _first = relay.open(&alice);
    relay.scrape_for("acp_relay_connections_open", &open);
    let name = "acp_relay_connections_rejected_total";
    let labels = [("transport", "ws"), ("reason", "limit")];
    assert_eq!(relay.scrape().value(name, &labels), 0.);
    let _second = relay.open(&alice);
    let scrape = relay.scrape_for(name, &labels);
    assert_eq!(scrape.value(name, &labels), 1.);
    assert_eq!(scrape.value("acp_relay_connections_open", &open), 1.);
}

#[test]
fn ids_of_other_principals_are_unknown_and_counted() {
    let folder = TempDir::new().unwrap();
    let alice = Relay::bearer(&folder, &["new", "alice"]);
    let relay = Relay::serve(folder, &["--listen", "http://127.0.0.1:0"], &[]);
    let begun = relay.post(&alice, INITIALIZE);
    assert_eq!(begun.status, 200, "{}", begun.body);
    let name = begun.field("acp-connection-id");
    let note = r#"{"jsonrpc":"2.0","method":"_n"}"#;
    let labels = [("transport", "http"), ("reason", "unknown")];
    let counted = || {
        relay
            .scrape()
            .value("acp_relay_connections_rejected_total", &labels)
    };
    for (sender, id, status) in [
        (alice.as_str(), name, 202),
        // The relay's own user is another principal, and cannot see that the id exists.
        ("", name, 404),
        ("", "never-was", 404),
        (alice.as_str(), "never-was", 404),
    ] {
        let before = counted();
        let fields = format!("{sender}Acp-Connection-Id: {id}\r\n");
        assert_eq!(relay.post(&fields, note).status, status, "{id}");
        let expected = if status == 404 { 1. } else { 0. };
        assert_eq!(counted() - before, expected, "{id}");
    }

    let options = ["--listen", "agent-connect+http://127.0.0.1:0/acp"];
    let relay = Relay::serve(TempDir::new().unwrap(), &options, &[]);
    let thread = "/acp/threads/6c3a7f0e-0000-4000-8000-000000000000";
    let answer = Relay::ask_at(&relay.address, thread, &[]);
    assert_eq!(answer.status, 404);
    let labels = [("transport", "agent_connect"), ("reason", "unknown")];
    relay.scrape_for("acp_relay_connections_rejected_total", &labels);
}

#[test]
fn a_full_disk_ends_the_recording_and_is_counted() {
    // No file may be longer than 8 blocks of 512 bytes; SIGXFSZ is ignored.
    let shell = "trap '' XFSZ; ulimit -f 8";
    let relay = Relay::under(shell, &["--record", "tapes"], MUTE);
    let mut client = relay.client();
    let note = format!(
        r#"{{"jsonrpc":"2.0","method":"n","params":["{}"]}}"#,
        "words ".repeat(200)
    );
    // In sequence, so that a message follows after the failure.
    let dropped = "acp_relay_recording_dropped_total";
    let begun = Instant::now();
    while relay.scrape().value(dropped, &[]) == 0. {
        client.send(&note);
        assert!(begun.elapsed() < PATIENCE, "nothing is dropped");
    }
    drop(client);
    let failed = [("outcome", "failed")];
    let scrape = relay.scrape_for("acp_relay_recordings_total", &failed);
    assert_eq!(of(&scrape, "recordings_total", &[("outcome", "begun")]), 1.);
    assert_eq!(
        of(&scrape, "recordings_total", &[("outcome", "finished")]),
        0.
    );
    assert!(of(&scrape, "notes_total", &[]) > 0.);
}

#[test]
fn a_failed_strict_recording_is_reported_to_its_client_and_counted() {
    let shell = "trap '' XFSZ; ulimit -f 8";
    let relay = Relay::under(shell, &["--record", "tapes", "--record-strict"], MUTE);
    let mut client = relay.client();
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{}}"#);
    let words = "words ".repeat(2000);
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"n","params":["{words}"]}}"#
    ));
    let received = client.receive();
    assert!(received.contains(r#""code":-32057"#), "{received}");
    assert!(received.contains(r#""reason":"unrecorded""#), "{received}");
    assert_eq!(client.receive_or_end(), None);
    let reason = [("reason", "unrecorded"), ("side", "client")];
    relay.scrape_for("acp_relay_connections_closed_total", &reason);

    // One that cannot be started gets the same error, and is counted the same.
    let tapes = relay.folder.path().join("tapes");
    fs::remove_dir_all(&tapes).unwrap();
    fs::write(&tapes, "").unwrap();
    let mut client = relay.client();
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#);
    let received = client.receive();
    assert!(received.contains(r#""reason":"unrecorded""#), "{received}");
    drop(client);
    relay.scrape_when("acp_relay_connections_closed_total", |scrape| {
        of(scrape, "connections_closed_total", &reason) == 2.
    });
}

#[test]
fn a_listener_without_descriptors_is_counted_and_accepts_clients_again() {
    let mut relay = Relay::under("ulimit -n 128", &["--log", "warn"], AGENT);
    let clients: Vec<TcpStream> = (0..150)
        .map(|_| TcpStream::connect(&relay.address).unwrap())
        .collect();
    while !relay.complaint().contains("cannot accept") {}
    drop(clients);
    let labels = [("transport", "tcp")];
    relay.scrape_for("acp_relay_accept_errors_total", &labels);
    // Their descriptors are freed with a delay; until then an agent may not start.
    let begun = Instant::now();
    loop {
        let mut client = relay.client();
        client.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#);
        let received = client.receive_or_end().unwrap_or_default();
        if received.contains("protocolVersion") {
            break;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "no clients any more: {received}"
        );
    }
}

#[test]
fn redacted_secrets_are_counted_by_rule() {
    let pointer = ["--record-redact-pointer", "/params/mine"];
    let options = [&["--record", "tapes"], &pointer[..]].concat();
    let relay = Relay::under("", &options, MUTE);
    let mut client = relay.client();
    let shape = "ghp_C4nary0aA1bB2cC3dD4eE5fF6gG7hH8iI9jJ0";
    let messages = [
        (format!(r#"{{"text":"use {shape} now"}}"#), "shape"),
        (r#"{"password":"C4nary1"}"#.to_owned(), "place"),
        (r#"{"env":{"A":"C4nary2"}}"#.to_owned(), "place"),
        (r#"{"mine":"C4nary3"}"#.to_owned(), "pointer"),
    ];
    for (params, rule) in &messages {
        let labels = [("rule", *rule)];
        let before = of(&relay.scrape(), "redactions_total", &labels);
        client.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"_x","params":{params}}}"#
        ));
        relay.scrape_when(rule, |scrape| {
            of(scrape, "redactions_total", &labels) == before + 1.
        });
    }
    drop(client);
    let finished = [("outcome", "finished")];
    relay.scrape_for("acp_relay_recordings_total", &finished);
    let mut read = 0;
    for file in fs::read_dir(relay.folder.path().join("tapes")).unwrap() {
        let text = fs::read(file.unwrap().path()).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains("C4nary"), "{text}");
        read += text.len();
    }
    assert!(read > 500, "{read} bytes of recordings");
}

#[test]
fn requests_for_recordings_without_their_address_are_counted() {
    let relay = Relay::start(&["--record", "tapes"]);
    let (own, other) = (relay.admin.as_str(), "evil.example");
    let recordings = relay.recordings.clone().unwrap();
    let known = recordings.split_once(own).unwrap().1;
    let secret = Some("recordings");
    let attempts: [Attempt<'_>; 6] = [
        (known, own, 200, None),
        ("/recordings/", own, 404, secret),
        ("/recordings/../secret", own, 404, secret),
        ("/recordings/guess/api/0/state", own, 404, secret),
        (known, other, 403, Some("page")),
        ("/metrics", other, 403, Some("page")),
    ];
    for (path, host, status, reason) in attempts {
        let figures = |scrape: &Scrape| {
            ["recordings", "page"].map(|why| of(scrape, "admin_refused_total", &[("reason", why)]))
        };
        let mut expected = figures(&relay.scrape());
        let answer = Relay::ask_at(own, path, &[("host", host)]);
        assert_eq!(answer.status, status, "{path}");
        if let Some(reason) = reason {
            expected[usize::from(reason == "page")] += 1.;
        }
        assert_eq!(figures(&relay.scrape()), expected, "{path} {host}");
    }
}

#[test]
fn names_from_a_peer_are_in_no_metric_and_add_no_series() {
    let relay = Relay::under("", &[], MUTE);
    let mut client = relay.client();
    let note = |name: &str| format!(r#"{{"jsonrpc":"2.0","method":"{name}","params":{{}}}}"#);
    let counted =
        |scrape: &Scrape, method: &str| of(scrape, "messages_total", &[("method", method)]);
    client.send(&note("first"));
    client.send(&note("_first"));
    let scrape = relay.scrape_for("acp_relay_messages_total", &[("method", "_ext")]);
    let series = |scrape: &Scrape| -> Vec<String> {
        let names = scrape.samples.iter();
        // Durations may fall into one bucket or another, and a fast sender may be paused; those are
        // closed lists.
        let names = names.filter(|(name, _)| !name.ends_with("_bucket") && !name.contains("pause"));
        let all = names.flat_map(|(name, samples)| {
            samples
                .iter()
                .map(move |(labels, _)| format!("{name} {labels:?}"))
        });
        all.collect()
    };
    let before = series(&scrape);
    for at in 0..5000 {
        client.send(&note(&format!("C4nary{at}")));
        client.send(&note(&format!("_C4nary{at}")));
    }
    let scrape = relay.scrape_when("the last of them", |scrape| {
        counted(scrape, "other") + counted(scrape, "_ext") >= 10_002.
    });
    assert_eq!(counted(&scrape, "other"), 5001.);
    assert_eq!(series(&scrape), before);
    for path in ["/metrics", "/status"] {
        assert!(!relay.get(path).body.contains("C4nary"), "{path}");
    }
}

#[test]
fn a_flood_of_the_log_is_limited_and_counted_and_has_no_secret() {
    let mut relay = Relay::under("", &["--log", "info"], MUTE);
    // Ten of each kind are logged for each client, and the clients exceed the lines of the log.
    let key = "sk-ant-api03-C4nary0aA1bB2cC3dD4eE5fF6gG7hH8iI9jJ0";
    let lines = [
        "[1]".to_owned(),
        format!(r#"{{"jsonrpc":"2.0","id":"{key}","result":1}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","x":{key}}}"#),
    ];
    let flood = [("reason", "flood")];
    let name = "acp_relay_log_lines_lost_total";
    for _ in 0..60 {
        let mut client = relay.client();
        for line in &lines {
            for _ in 0..11 {
                client.send(line);
            }
        }
        // All its lines are read.
        for _ in 0..2 {
            client.send(r#"{"jsonrpc":"2.0","id":7,"method":"x"}"#);
        }
        while !client.receive().contains("\"id\":7") {}
        if relay.scrape().value(name, &flood) > 0. {
            break;
        }
    }
    relay.scrape_for(name, &flood);
    relay.signal(rustix::process::Signal::KILL);
    relay.wait();
    let mut logged = 0;
    loop {
        let line = relay.complaint();
        if line.is_empty() {
            break;
        }
        assert!(!line.contains("C4nary"), "{line}");
        logged += 1;
    }
    assert!(logged > 100, "{logged} lines");
}
