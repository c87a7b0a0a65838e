//! How a signal to `connect` ends the agent on the other side of a network, and when it does not.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::process::notes::{Proc, all};
use crate::support::agent::scripted;
use crate::support::link::run as block_on;
use crate::support::network::Network;
use crate::support::program::{Program, answered, ask, command};

/// Time that a relay would wait without a word of its client: longer than the tests run.
const LONG: [&str; 4] = ["--limit", "http-grace=600s", "--limit", "drain=600s"];

/// How `connect` is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    Signal(Signal),
    /// SIGKILL to its whole process group.
    Group,
}

pub(crate) const DEATHS: [Death; 5] = [
    Death::Signal(Signal::TERM),
    Death::Signal(Signal::HUP),
    Death::Signal(Signal::INT),
    Death::Signal(Signal::KILL),
    Death::Group,
];

impl Death {
    /// Ends a client that leads a process group.
    pub(crate) async fn befall(self, client: &mut Program) {
        match self {
            Self::Signal(signal) => client.signal(signal),
            Self::Group => {
                let group = Pid::from_raw(client.pid().cast_signed()).unwrap();
                kill_process_group(group, Signal::KILL).unwrap();
            }
        }
        client.exit().await;
    }
}

/// The process that ends the link of this client, once it is ready.
pub(crate) async fn watchdog_of(client: &Program) -> Proc {
    loop {
        let mut found = all();
        found.retain(|one| one.parent() == client.pid() && one.session() == one.pid);
        // No secret is among its arguments.
        found.retain(|one| one.words() == ["acp-relay", "__link-watchdog", ""]);
        if let Some(watchdog) = found.pop() {
            return watchdog;
        }
        sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn is_gone(process: &Proc) {
    while !process.is_gone() {
        sleep(Duration::from_millis(5)).await;
    }
}

/// An agent that shows its process id, and asks in each prompt.
fn agent() -> Vec<String> {
    let question = json!({"jsonrpc": "2.0", "id": "ask", "method": "session/request_permission",
        "params": {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": []}});
    let session = json!({"result": {"sessionId": "s", "_meta": {"pid": "$pid"}}});
    scripted(&[
        ("session/new", json!([session])),
        (
            "session/prompt",
            json!([{"keep": true}, {"send": question}]),
        ),
    ])
}

async fn serve(options: &[&str]) -> (Program, String) {
    let agent = agent();
    let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
    let words = [&["--log", "info", "serve"], options, &LONG, &["--"], &agent].concat();
    let mut serve = Program::start(&words);
    loop {
        let line = serve.complaint().await.unwrap();
        if let Some(address) = line.strip_prefix("acp-relay: listening on ") {
            return (serve, address.to_owned());
        }
    }
}

/// Begins a conversation over `words` of `connect`, in a process group of its own.
async fn begin(words: &[&str]) -> (Program, Proc) {
    let mut command = command(&[&["connect"], words].concat());
    command.process_group(0);
    let mut client = Program::of(command);
    let pid = introduce(&mut client).await;
    (client, pid)
}

async fn introduce(client: &mut Program) -> Proc {
    answered(client, 0, "initialize", json!({"protocolVersion": 1})).await;
    let session = answered(client, 1, "session/new", json!({"cwd": "/"})).await;
    agent_of(&session)
}

fn agent_of(session: &Value) -> Proc {
    let pid = session["_meta"]["pid"].as_u64().unwrap();
    Proc::of(pid.try_into().unwrap()).unwrap()
}

async fn prompt(client: &mut Program) {
    let params = json!({"sessionId": "s", "prompt": []});
    ask(client, 2, "session/prompt", params).await;
    assert_eq!(client.json().await["id"], "ask");
}

#[test]
fn every_signal_ends_the_agent_over_a_link() {
    block_on(async {
        for scheme in ["ws", "http"] {
            let at = format!("{scheme}://127.0.0.1:0");
            let (_serve, address) = serve(&["--listen", &at]).await;
            for death in DEATHS {
                let (mut client, agent) = begin(&[&address]).await;
                let watchdog = watchdog_of(&client).await;
                assert_ne!(watchdog.group(), client.pid());
                // It waits while its client lives.
                watchdog.kill(Signal::TERM);
                watchdog.kill(Signal::HUP);
                // A turn is not waited for by one that is killed.
                if matches!(death, Death::Group | Death::Signal(Signal::KILL)) {
                    prompt(&mut client).await;
                }
                death.befall(&mut client).await;
                is_gone(&agent).await;
                is_gone(&watchdog).await;
            }
        }
    });
}

#[test]
fn every_signal_that_can_be_handled_ends_the_agent_without_a_link() {
    block_on(async {
        for at in ["ws", "http", "tcp"] {
            let at = format!("{at}://127.0.0.1:0");
            let detach = ["--listen", &at, "--on-disconnect", "detach"];
            let (_serve, address) = serve(&detach).await;
            for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
                let (mut client, agent) = begin(&["--no-link", &address]).await;
                Death::Signal(signal).befall(&mut client).await;
                is_gone(&agent).await;
            }
        }
    });
}

#[test]
fn the_end_of_a_link_is_said_over_the_newest_connection() {
    block_on(async {
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = proxy.local_addr().unwrap().to_string();
        let listen = ["--listen", "ws://127.0.0.1:0", "--allow-host", &host];
        let (_serve, address) = serve(&listen).await;
        let (_, port) = address.trim_end_matches("/acp").rsplit_once(':').unwrap();
        let network = Network::new(proxy, port.parse().unwrap()).await;
        let (mut client, agent) = begin(&[&format!("ws://{host}")]).await;
        for id in 2..5 {
            network.cut();
            network.is_cut().await;
            answered(&mut client, id, "session/new", json!({"cwd": "/"})).await;
        }
        watchdog_of(&client).await;
        client.signal(Signal::KILL);
        is_gone(&agent).await;
    });
}

#[test]
fn with_detach_the_agent_of_a_killed_client_waits_for_the_next_one() {
    block_on(async {
        let listen = ["--listen", "ws://127.0.0.1:0", "--on-disconnect", "detach"];
        let (mut serve, address) = serve(&listen).await;
        let (mut client, agent) = begin(&[&address]).await;
        watchdog_of(&client).await;
        prompt(&mut client).await;
        Death::Group.befall(&mut client).await;
        while !serve.complaint().await.unwrap().contains("was killed") {}
        let mut next = Program::start(&["connect", &address]);
        answered(&mut next, 0, "initialize", json!({"protocolVersion": 1})).await;
        let params = json!({"sessionId": "s", "cwd": "/", "mcpServers": []});
        let loaded = answered(&mut next, 1, "session/load", params).await;
        assert_eq!(agent_of(&loaded), agent);
        // An orderly end is one with detach, too.
        assert_eq!(next.json().await["id"], "ask");
        next.end();
        next.exit().await;
        is_gone(&agent).await;
    });
}

#[test]
fn a_relay_that_stops_does_not_wait_for_turns_of_clients_that_are_away() {
    block_on(async {
        for kept in ["terminate", "detach"] {
            let listen = ["--listen", "ws://127.0.0.1:0", "--on-disconnect", kept];
            let (mut serve, address) = serve(&listen).await;
            let (mut client, agent) = begin(&[&address]).await;
            let watchdog = watchdog_of(&client).await;
            prompt(&mut client).await;
            // Without it, the end of the link is not sent.
            watchdog.kill(Signal::KILL);
            client.signal(Signal::KILL);
            while !serve.complaint().await.unwrap().contains("client is lost") {}
            serve.signal(Signal::TERM);
            serve.exit().await;
            assert!(agent.is_gone());
        }
    });
}
