//! What a panic ends: one conversation or one request, but the process while a shared lock is held.
//! The debug build panics where `PANIC_POINT` says.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::metrics::stage::{ALLOW, Client, Relay};
use crate::support::http::INITIALIZE;
use crate::support::link::run;
use crate::support::program::{Program, ask, command};

const TCP: &str = "tcp://127.0.0.1:0";
const HTTP: &str = "http://127.0.0.1:0";
const RECORDED: [&str; 2] = ["--record", "recordings"];

/// A relay that panics there.
fn relay(point: &str, options: &[&str]) -> Relay {
    let folder = TempDir::new().unwrap();
    let options = [&RECORDED, options].concat();
    Relay::serve(folder, &options, &[("PANIC_POINT", point)])
}

/// A client with a prompt open.
fn prompting(relay: &Relay) -> Client {
    let mut client = relay.client();
    client.begin();
    client.send(r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s-1","prompt":[]}}"#);
    client.receive_until("request_permission");
    client
}

/// What the client gets until its end.
fn rest(client: &mut Client) -> Vec<Value> {
    let lines = std::iter::from_fn(|| client.receive_or_end());
    lines
        .map(|line| serde_json::from_str(&line).unwrap())
        .collect()
}

/// The text of all recordings.
fn recordings(folder: &Path) -> String {
    let files = fs::read_dir(folder.join("recordings")).unwrap();
    let files = files.map(|file| fs::read(file.unwrap().path()).unwrap());
    files
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .collect()
}

/// Sends the line of a request with these header lines and `initialize`. The relay may end meanwhile.
fn request(address: &str, line: &str, fields: &str) {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return;
    };
    let length = INITIALIZE.len();
    let more = "Content-Type: application/json\r\nConnection: close\r\n";
    let head = format!("{line} HTTP/1.1\r\nHost: {address}\r\n{more}{fields}");
    let _ = write!(stream, "{head}Content-Length: {length}\r\n\r\n{INITIALIZE}");
    let _ = stream.read_to_end(&mut Vec::new());
}

/// The first line of the log that contains `what`.
fn complaint(relay: &mut Relay, what: &str) -> String {
    loop {
        let line = relay.complaint();
        assert!(!line.is_empty(), "the log has no {what:?}");
        if line.contains(what) {
            return line;
        }
    }
}

#[test]
fn a_panic_of_a_conversation_ends_it_alone() {
    for (last, ids) in [
        (r#"{"jsonrpc":"2.0","method":"_poison"}"#, vec![2]),
        (r#"{"jsonrpc":"2.0","id":9,"method":"_poison"}"#, vec![2, 9]),
    ] {
        let mut relay = relay("conversation _poison", &["--listen", TCP]);
        let mut other = prompting(&relay);
        let mut client = prompting(&relay);
        client.send(last);
        let answers = rest(&mut client);
        let answered: Vec<_> = answers.iter().map(|one| one["id"].clone()).collect();
        assert_eq!(json!(answered), json!(ids), "{answers:?}");
        for answer in &answers {
            assert_eq!(answer["error"]["code"], -32050, "{answer}");
            assert_eq!(answer["error"]["data"]["relay"]["source"], "relay");
            assert_eq!(answer["error"]["data"]["relay"]["delivered"], "unknown");
        }
        let line = complaint(&mut relay, "panicked at");
        assert!(line.contains("src/panics/confine.rs:"), "{line}");
        assert!(
            line.contains("ERROR") && line.contains("conversation"),
            "{line}"
        );
        let finished = [("outcome", "finished")];
        relay.scrape_for("acp_relay_recordings_total", &finished);
        relay.scrape().check(
            "panics_total{place=conversation} 1\n\
             panics_total{place=viewer} 0\n\
             connections_closed_total{side=client,transport=tcp,reason=panicked} 1\n\
             agents{} 1",
        );
        let text = recordings(relay.folder.path());
        let ends: Vec<_> = text
            .lines()
            .filter(|line| line.contains(r#""k":"end""#))
            .collect();
        assert_eq!(ends.len(), 1, "{ends:?}");
        assert!(ends[0].contains("a fault of the relay"), "{ends:?}");
        other.send(ALLOW);
        other.receive_until("end_turn");
        prompting(&relay);
    }
}

#[test]
fn a_panic_before_the_agent_is_known_answers_what_waits() {
    let relay = relay("conversation _poison", &["--listen", TCP]);
    let mut client = relay.client();
    for (id, method) in [(0, "initialize"), (1, "session/new"), (2, "_poison")] {
        client
            .send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}}).to_string());
    }
    let mut ids: Vec<_> = rest(&mut client)
        .iter()
        .filter_map(|one| one["id"].as_u64())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2]);
}

#[test]
fn connect_ends_with_a_code_of_its_own_after_a_panic() {
    run(async {
        let mut command = command(&["connect", "exec:cat"]);
        command.env("PANIC_POINT", "conversation _poison");
        let mut editor = Program::of(command);
        ask(&mut editor, 4, "_poison", json!({})).await;
        let answer = editor.json().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(4), &json!(-32050))
        );
        assert_eq!(editor.exit().await.code(), Some(70));
        let mut last = String::new();
        while let Some(line) = editor.complaint().await {
            last = line;
        }
        assert!(
            last.starts_with("acp-relay: a fault of this relay"),
            "{last}"
        );
    });
}

#[test]
fn a_panic_of_the_recorder_ends_the_recording_alone() {
    let mut relay = relay("recording", &["--listen", TCP]);
    let mut client = prompting(&relay);
    client.send(ALLOW);
    client.receive_until("end_turn");
    complaint(&mut relay, "the conversation continues unrecorded");
    drop(client);
    relay.scrape_for("acp_relay_recordings_total", &[("outcome", "failed")]);
    assert!(
        relay
            .scrape()
            .value("acp_relay_panics_total", &[("place", "recording")])
            > 0.
    );
}

#[test]
fn a_panic_of_a_request_ends_it_alone() {
    for (point, place, path) in [
        ("admin /poison", "admin", "/poison"),
        ("viewer recordings", "viewer", "api/recordings"),
        ("viewer state", "viewer", "api/0/state"),
        ("viewer", "viewer", "api/0/turns"),
    ] {
        let mut relay = relay(point, &["--listen", TCP]);
        let mut client = prompting(&relay);
        let page = relay.recordings.clone().unwrap();
        let page = page.strip_prefix("http://").unwrap();
        let page = page.split_once('/').unwrap().1.to_owned();
        let path = match place {
            "viewer" => format!("/{page}{path}"),
            _ => path.to_owned(),
        };
        let answer = relay.get(&path);
        assert_eq!(answer.status, 500, "{path}: {}", answer.body);
        assert!(!answer.body.contains("src/"), "{}", answer.body);
        complaint(&mut relay, "panicked at");
        relay.scrape_for("acp_relay_panics_total", &[("place", place)]);
        client.send(ALLOW);
        client.receive_until("end_turn");
    }
}

/// The files of the source that have shared locks.
fn files_with_locks() -> BTreeSet<String> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut found) = (vec![top.clone()], BTreeSet::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs")
                && fs::read_to_string(&path).unwrap().contains("SharedMutex<")
            {
                let name = path.strip_prefix(&top).unwrap();
                found.insert(name.to_str().unwrap().to_owned());
            }
        }
    }
    found
}

/// Waits until the process ends by SIGABRT, and its log names the lock.
fn assert_aborted(mut relay: Relay, lock: &str) {
    let line = complaint(&mut relay, "a fault of this relay ends it");
    assert!(line.contains("panicked at src/panics/"), "{line}");
    assert!(
        line.contains("with the lock of ") && line.contains(lock),
        "{line}"
    );
    assert_eq!(relay.exit().signal(), Some(6), "{lock}");
}

#[test]
fn a_panic_with_a_shared_lock_ends_the_process() {
    // Of clusters, of Agent Connect, of TLS, of other users, of the first client on a thread, of a
    // collector of traces, of a recording's second segment; of the accept loop of the admin listener,
    // whose panics end the process in any case.
    let untried = [
        "agent_connect/server/connection.rs",
        "agent_connect/server/hub.rs",
        "agent_connect/shares.rs",
        "cli/http.rs",
        "cli/traces/exporter.rs",
        "cluster/gateway.rs",
        "cluster/host.rs",
        "cluster/nats.rs",
        "cluster/sessions.rs",
        "cluster/ticket.rs",
        "observe/recorder/packer.rs",
        "panics/shared_mutex.rs",
        "transport/certificate.rs",
        "transport/http/port/caller.rs",
        "transport/workers.rs",
    ];
    let mut files: BTreeSet<String> = untried.map(str::to_owned).into();
    // What a conversation locks over TCP: the file, and a part of the type.
    for (file, lock) in [
        ("observe/metrics/registry.rs", "metrics::buckets::Buckets"),
        ("observe/metrics/shared.rs", "AgentMetrics"),
        ("observe/metrics/shared.rs", "OpenConversation"),
        ("observe/recorder/queue.rs", "RecorderTotals"),
        ("observe/recorder/queue.rs", "recorder::queue::Queue"),
        ("observe/recorder/writer_thread.rs", "writer_thread::State"),
        ("transport/process/children.rs", "children::State"),
        (
            "cli/stderr.rs",
            "Option<acp_relay::cli::rate_limit::LineLimit>",
        ),
    ] {
        let options = ["--listen", TCP, "--log", "info"];
        let relay = relay(&format!("lock {lock}"), &options);
        let mut client = relay.client();
        client.send(INITIALIZE);
        while client.receive_or_end().is_some() {}
        assert_aborted(relay, lock);
        files.insert(file.to_owned());
    }
    // What clients over HTTP have locked, with a token, with a wrong one, over a link, and a scrape.
    for (file, lock) in [
        (
            "transport/http/server/connection.rs",
            "http::server::connection::Connection",
        ),
        ("auth/gate.rs", "FailedAttempts"),
        ("cli/admission/client_registry.rs", "client_registry::Count"),
        ("cli/admission/control.rs", "token::store::Stamp"),
        ("cli/rate_limit.rs", "rate_limit::LineLimit"),
        ("transport/resumable/links.rs", "LinkTable"),
        (
            "transport/resumable/links.rs",
            "Weak<lock_api::mutex::Mutex<parking_lot::raw_mutex::RawMutex, transport::resumable",
        ),
        ("proxy/resume/store.rs", "DetachedConversation"),
        ("observe/metrics/shared.rs", "dyn link::"),
    ] {
        let folder = TempDir::new().unwrap();
        let bearer = Relay::bearer(&folder, &["new", "alice"]);
        let options = ["--listen", HTTP, "--on-disconnect", "detach"];
        let point = format!("lock {lock}");
        let relay = Relay::serve(folder, &options, &[("PANIC_POINT", &point)]);
        for fields in ["Authorization: Bearer wrong\r\n", &bearer] {
            request(&relay.address, "POST /acp", fields);
        }
        request(&relay.admin, "GET /metrics", "");
        let mut command = command(&["connect", &format!("ws://{}/acp", relay.address)]);
        let token = bearer.trim().trim_start_matches("Authorization: Bearer ");
        command.env("ACP_RELAY_BEARER", token);
        let editor = async {
            let mut editor = Program::of(command);
            ask(&mut editor, 0, "initialize", json!({"protocolVersion": 1})).await;
            editor.line().await;
            editor.end();
            editor.exit().await;
        };
        run(editor);
        assert_aborted(relay, lock);
        files.insert(file.to_owned());
    }
    assert_eq!(files, files_with_locks());
}
