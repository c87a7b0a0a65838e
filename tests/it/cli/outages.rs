//! Two relays whose connection is lost, through the built program: what the editor, the log, the
//! metrics, the status and the recordings show of it.

use acp_relay::jsonrpc::Side;
use acp_relay::recording::{EventKind, recordings};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::agent::scripted;
use crate::support::http::Caller;
use crate::support::link::run as block_on;
use crate::support::network::{Network, Weather};
use crate::support::program::{Program, answered, ask, run_in};

const STATUS: &str = "_acp-relay/status";

/// The admin listener of a program that records, from its stderr.
async fn admin_of(program: &mut Program) -> Caller {
    loop {
        let line = program.complaint().await.unwrap();
        if let Some(at) = line.strip_prefix("acp-relay: admin at http://") {
            let _viewer = program.complaint().await;
            return Caller::to(at);
        }
    }
}

/// What the admin listener says at `path`, once `is_met` accepts it.
async fn shown(admin: &Caller, path: &str, is_met: impl Fn(&str) -> bool) -> String {
    loop {
        let reply = admin.ask("GET", path, &[], "").await;
        if is_met(&reply.body) {
            return reply.body;
        }
    }
}

/// The events of the link to `side`, of the only recording in a folder.
fn link_events(folder: &std::path::Path, side: Side) -> Vec<(String, String)> {
    let found = recordings(folder).unwrap();
    let events = found[0].events().map(Result::unwrap);
    let links = events.filter_map(|event| match event.kind {
        EventKind::Link {
            side: one,
            event,
            detail,
        } if one == side => Some((event, detail)),
        _ => None,
    });
    links.collect()
}

#[test]
fn an_outage_is_shown_to_the_editor_in_the_log_in_metrics_status_and_recordings() {
    block_on(async {
        let state = tempfile::tempdir().unwrap();
        let [here, there] = ["here", "there"].map(|name| state.path().join(name));
        let [here, there] = [&here, &there].map(|folder| folder.to_str().unwrap());
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = proxy.local_addr().unwrap().to_string();
        let agent = scripted(&[
            (
                "initialize",
                json!([{"result": {"protocolVersion": 1, "sent": "$message"}}]),
            ),
            ("_ask", json!([{"result": "answered"}])),
        ]);
        let serve = [
            "serve",
            "--listen",
            "ws://127.0.0.1:0",
            "--allow-host",
            &host,
        ];
        let options = ["--admin", "127.0.0.1:0", "--record", there, "--"];
        let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
        let words = [&serve[..], &options, &agent].concat();
        let mut serve = Program::start_in(state.path(), &words);
        let admin = admin_of(&mut serve).await;
        let address = serve.address().await;
        let (_, port) = address.trim_end_matches("/acp").rsplit_once(':').unwrap();
        let network = Network::new(proxy, port.parse().unwrap()).await;
        let to = format!("ws://{host}");
        let words = ["connect", &to, "--guard", "never", "--record", here];
        let words = [&words[..], &["--admin", "127.0.0.1:0"]].concat();
        let mut editor = Program::start_in(state.path(), &words);
        let own_admin = admin_of(&mut editor).await;

        let wants = json!({"_meta": {"acp-relay": {"status": true}}});
        let params = json!({"protocolVersion": 1, "clientCapabilities": wants});
        let initialized = answered(&mut editor, 0, "initialize", params).await;
        let received = &initialized["sent"]["params"]["clientCapabilities"];
        assert_eq!(*received, wants);
        shown(&admin, "/metrics", |text| {
            text.contains("acp_relay_links{state=\"attached\"} 1")
        })
        .await;

        network.weather.send_replace(Weather::Down);
        let told = editor.json().await;
        assert_eq!(told["method"], STATUS, "{told}");
        assert_eq!(told["params"]["link"], "lost");
        assert!(told["params"]["sinceMs"].as_u64() >= Some(2000), "{told}");
        let lost = editor.complaint().await.unwrap();
        assert!(
            lost.contains("is lost (") && lost.contains("connecting again"),
            "{lost}"
        );
        // What is sent meanwhile arrives afterwards.
        ask(&mut editor, 1, "_ask", json!({})).await;
        let is_away = |text: &str, side: &str| {
            let status: Value = serde_json::from_str(text).unwrap();
            status["connections"][0]["away"][side]["seconds"].is_number()
        };
        shown(&admin, "/status", |text| is_away(text, "client")).await;
        shown(&own_admin, "/status", |text| is_away(text, "agent")).await;
        // The links to the editor and to the agent.
        let metrics = own_admin.ask("GET", "/metrics", &[], "").await.body;
        for state in ["attached", "detached"] {
            let line = format!("acp_relay_links{{state=\"{state}\"}} 1");
            assert!(metrics.contains(&line), "{line} in {metrics}");
        }
        let metrics = admin.ask("GET", "/metrics", &[], "").await.body;
        for line in [
            "acp_relay_links{state=\"attached\"} 0",
            "acp_relay_links{state=\"detached\"} 1",
            "acp_relay_link_attach_total{kind=\"link\",outcome=\"new\"} 1",
        ] {
            assert!(metrics.contains(line), "{line} in {metrics}");
        }
        let words = ["status", "--admin", &*admin.host];
        let status = run_in(state.path(), &words).await.stdout;
        for words in ["1 disconnected", "the client has been disconnected for"] {
            assert!(status.contains(words), "{words} in {status}");
        }

        network.weather.send_replace(Weather::Fair);
        let told = editor.json().await;
        let answer = editor.json().await;
        // The answer may be read in the same turn as the connection is.
        let (told, answer) = match told["method"] == STATUS {
            true => (told, answer),
            false => (answer, told),
        };
        assert_eq!(told["params"]["link"], "restored", "{told}");
        assert_eq!(answer["result"], "answered");
        let restored = editor.complaint().await.unwrap();
        assert!(
            restored.contains("is restored after") && restored.contains("nothing is lost"),
            "{restored}"
        );
        // An acknowledgement may come later.
        let metrics = shown(&admin, "/metrics", |text| {
            text.contains("acp_relay_link_unacked_bytes 0")
        })
        .await;
        for line in [
            "acp_relay_link_attach_total{kind=\"link\",outcome=\"resumed\"} 1",
            "acp_relay_link_downtime_seconds_count 1",
            "acp_relay_links{state=\"attached\"} 1",
        ] {
            assert!(metrics.contains(line), "{line} in {metrics}");
        }

        editor.end();
        editor.exit().await;
        serve.signal(rustix::process::Signal::TERM);
        serve.exit().await;
        for (folder, side) in [(here, Side::Agent), (there, Side::Client)] {
            let events = link_events(folder.as_ref(), side);
            let names: Vec<&str> = events.iter().map(|(event, _)| event.as_str()).collect();
            assert_eq!(names[..3], ["open", "lost", "resumed"], "{events:?}");
            assert!(!events[1].1.is_empty());
            let found = recordings(folder.as_ref()).unwrap();
            let file = found[0].segments[0].to_str().unwrap();
            let shown = run_in(state.path(), &["inspect", "show", file])
                .await
                .stdout;
            let lost = format!("{side} lost: {}", events[1].1);
            assert!(shown.contains(&lost), "{lost} in {shown}");
            let stats = run_in(state.path(), &["inspect", "stats", file])
                .await
                .stdout;
            assert!(stats.contains("\n1 outage, "), "{stats}");
            assert!(stats.contains(&format!("{side} lost 1")), "{stats}");
        }
    });
}
