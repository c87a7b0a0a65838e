//! The admin listener: its answers, its access, and the commands that query it.

use rustix::process::Signal;

use super::stage::{Relay, wait};
use crate::support::http::{Caller, unread_sockets};
use crate::support::program::{relay, run};

#[test]
fn readiness_fails_during_a_drain_and_liveness_holds() {
    let mut relay = Relay::start(&[]);
    let mut client = relay.client();
    client.begin();
    client
        .send(r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s-1"}}"#);
    client.receive_until("request_permission");
    for path in [
        "/healthz",
        "/readyz",
        "/startupz",
        "/metrics",
        "/status",
        "/",
    ] {
        assert_eq!(relay.get(path).status, 200, "{path}");
    }
    assert_eq!(relay.get("/nothing").status, 404);
    let posted = wait(Caller::to(&relay.admin).ask("POST", "/metrics", &[], ""));
    assert_eq!(posted.status, 405);
    relay.signal(Signal::TERM);
    while relay.get("/readyz").status == 200 {}
    assert_eq!(relay.get("/readyz").body, "draining\n");
    assert_eq!(relay.get("/healthz").status, 200);
    assert_eq!(relay.scrape().value("acp_relay_draining", &[]), 1.);
    assert_eq!(relay.command(&["health"]).status.code(), Some(1));
    assert_eq!(relay.command(&["health", "--live"]).status.code(), Some(0));
    relay.signal(Signal::TERM);
    relay.wait();
    // The listener file is removed.
    assert_eq!(relay.command(&["status"]).status.code(), Some(69));
}

#[test]
fn metrics_have_one_format_whatever_is_accepted() {
    let relay = Relay::start(&[]);
    for accept in [
        None,
        Some("*/*"),
        Some("text/plain;version=0.0.4"),
        Some("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"),
        Some("application/vnd.google.protobuf"),
    ] {
        let fields: Vec<_> = accept
            .map(|accept| ("accept", accept))
            .into_iter()
            .collect();
        let answer = Relay::ask_at(&relay.admin, "/metrics", &fields);
        assert_eq!(answer.status, 200, "{accept:?}");
        let kind = answer.field("content-type");
        assert_eq!(kind, "text/plain; version=0.0.4", "{accept:?}");
        let counter = "\n# TYPE acp_relay_notes_total counter\n";
        assert!(answer.body.contains(counter), "{accept:?}: {}", answer.body);
        assert!(answer.body.ends_with('\n'), "{accept:?}");
        assert!(!answer.body.contains("# EOF"), "{accept:?}");
    }
}

#[test]
fn commands_of_the_same_user_find_the_admin_listener() {
    let relay = Relay::start(&[]);
    relay.client().live();
    let status = relay.command(&["status"]);
    let text = String::from_utf8(status.stdout).unwrap();
    assert_eq!(status.status.code(), Some(0), "{text}");
    for what in ["serving", "tcp://127.0.0.1:", "since the start"] {
        assert!(text.contains(what), "{what} in {text}");
    }
    let json = relay.command(&["status", "--json", "--admin", &relay.admin]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["state"], "serving");
    assert_eq!(json["connections_total"], 1);
    assert_eq!(relay.command(&["health"]).status.code(), Some(0));
    let top = relay.command(&["top"]);
    assert_eq!(top.status.code(), Some(0));
    assert!(!top.stdout.contains(&0x1b), "no terminal, no escapes");
}

#[test]
fn metrics_and_status_have_no_body_and_no_secret() {
    let relay = Relay::start(&[]);
    let mut client = relay.client();
    client.begin();
    client.send(r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s-1","prompt":[{"type":"text","text":"hunter2"}]}}"#);
    client.receive_until("request_permission");
    for path in ["/metrics", "/status"] {
        let body = relay.get(path).body;
        for secret in ["hunter2", "s-1", "Bearer"] {
            assert!(!body.contains(secret), "{secret} in {path}");
        }
    }
    let status: serde_json::Value = serde_json::from_str(&relay.get("/status").body).unwrap();
    assert_eq!(status["connections"][0]["turns"], 1);
    assert_eq!(status["connections"][0]["sessions"], 1);
    assert_eq!(status["connections"][0]["agent"], "default");
}

#[test]
fn health_is_answered_while_many_sockets_are_not_read() {
    let relay = Relay::start(&[]);
    let unread = unread_sockets(&relay.admin, "/metrics");
    for _ in 0..3 {
        let health = relay.command(&["health"]);
        assert_eq!(health.status.code(), Some(0), "{health:?}");
        assert_eq!(relay.get("/healthz").status, 200);
    }
    drop(unread);
}

#[test]
fn web_pages_and_other_host_names_are_refused() {
    let relay = Relay::start(&["--record", "tapes"]);
    let recordings = relay.recordings.clone().unwrap();
    let viewer = recordings.split_once(&relay.admin).unwrap().1;
    let caller = Caller::to(&relay.admin);
    for path in ["/", "/metrics", "/status", "/healthz", viewer] {
        assert_eq!(relay.get(path).status, 200, "{path}");
        for field in [
            ("host", "evil.example"),
            // A second one.
            ("Host", &relay.admin),
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
        ] {
            for verb in ["GET", "POST", "OPTIONS", "HEAD"] {
                let answer = wait(caller.ask(verb, path, &[field], ""));
                assert_eq!(answer.status, 403, "{verb} {path} {field:?}");
            }
        }
    }
    for path in ["/recordings", "/recordings/", "/recordings/guess/"] {
        assert_eq!(relay.get(path).status, 404, "{path}");
    }
}

#[tokio::test]
async fn the_admin_listener_is_loopback_only() {
    for place in [
        "0.0.0.0:0",
        "[::]:0",
        "192.0.2.1:9100",
        "example.org:9100",
        "9100",
        "unix:",
    ] {
        let outcome = run(&["serve", "--admin", place, "--", "cat"], "").await;
        assert_eq!(outcome.code, Some(64), "{place}: {}", outcome.stderr);
    }
}

#[test]
fn commands_fail_without_an_admin_listener() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut command = relay(&["status"]);
    command.env("ACP_RELAY_STATE_DIR", folder.path());
    let output = command.env_remove("ACP_RELAY_ADMIN").output().unwrap();
    assert_eq!(output.status.code(), Some(69));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--admin"));
}

#[tokio::test]
async fn the_json_log_has_one_object_per_line() {
    let script = "echo oops >&2; echo noise; exit 3";
    let words = [
        "--log",
        "info",
        "--log-format",
        "json",
        "connect",
        "--",
        "sh",
        "-c",
        script,
    ];
    let outcome = run(&words, "").await;
    let mut lines = 0;
    for line in outcome.stderr.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(
            line["level"].is_string() && line["message"].is_string(),
            "{line}"
        );
        lines += 1;
    }
    assert!(lines > 2, "{}", outcome.stderr);
}
