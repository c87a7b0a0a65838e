//! How conversations end: every deliverable message is delivered, and no peer can delay the relay
//! without bound. The playbooks and `invariants` show that every open request is answered once.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use acp_relay::conversation::Cause;
use acp_relay::jsonrpc::{Exit, Side};
use acp_relay::proxy::End;
use acp_relay::transport::StopStep;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::bridge::{Bridge, Plan, TestPeer};

/// The longest shutdown: a stalled client's 30 seconds, each step of stopping an agent.
const BOUND: Duration = Duration::from_secs(60);

fn ask(id: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ask"}}"#)
}

fn answer(id: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

fn update(number: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"n":{number}}}}}"#)
}

/// The agent sends updates until they are not accepted; returns how many were.
async fn fill(agent: &mut TestPeer) -> usize {
    let mut accepted = 0;
    while agent.try_send(&update(accepted)).await {
        accepted += 1;
    }
    accepted
}

/// How it ended, and the virtual time it took.
async fn timed(bridge: &mut Bridge) -> (End, Duration) {
    let begun = Instant::now();
    (bridge.end().await, begun.elapsed())
}

fn codes(messages: &[String]) -> Vec<(Value, i64)> {
    (messages.iter())
        .map(|text| serde_json::from_str::<Value>(text).unwrap())
        .map(|it| (it["id"].clone(), it["error"]["code"].as_i64().unwrap_or(0)))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_loses_nothing_when_the_agent_exits() {
    // With its pipe closed, and with a grandchild that holds it open.
    for held in [false, true] {
        let mut bridge = Bridge::over(&Plan::narrow(4).with_child());
        bridge.client.pass(&mut bridge.agent, &ask(7)).await;
        let sent = fill(&mut bridge.agent).await;
        assert!(sent > 256, "{sent}");
        bridge.process.exit(Exit::Code(3));
        if !held {
            bridge.agent.end().await;
        }
        for number in 0..sent {
            sleep(Duration::from_secs(20)).await;
            assert_eq!(bridge.client.receive().await.unwrap(), update(number));
        }
        let rest = bridge.client.receive_all().await;
        assert_eq!(codes(&rest[..1]), [(json!(7), -32051)]);
        // A notice reports the exit to the client, which cannot see it.
        assert!(rest[1].contains(r#""exit":{"code":3}"#), "{rest:?}");
        assert_eq!(rest.len(), 2);
        let end = bridge.end().await;
        assert_eq!(end.exit, Some(Exit::Code(3)));
        assert_eq!(end.cause, Cause::AgentExited);
        assert_eq!(bridge.process.signals(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_relay_refuses_new_requests_and_ends_the_agent() {
    let mut bridge = Bridge::over(&Plan::default().with_child());
    bridge.client.pass(&mut bridge.agent, &ask(1)).await;
    bridge.client.pass(&mut bridge.agent, &ask(2)).await;
    bridge.agent.pass(&mut bridge.client, &ask(1)).await;
    bridge.stop.requested.cancel();
    // The agent's own request is answered before its link ends.
    assert_eq!(
        codes(&bridge.agent.receive_all().await),
        [(json!(1), -32054)]
    );
    bridge.client.send(&ask(3)).await;
    assert_eq!(bridge.client.receive_json().await["error"]["code"], -32054);
    bridge.agent.pass(&mut bridge.client, &answer(2)).await;
    // It does not exit by itself.
    sleep(Duration::from_millis(1500)).await;
    assert_eq!(bridge.process.signals(), [StopStep::Terminate]);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        bridge.process.signals(),
        [StopStep::Terminate, StopStep::Kill]
    );
    bridge.process.exit(Exit::Signal(9));
    bridge.agent.end().await;
    let rest = bridge.client.receive_all().await;
    assert_eq!(codes(&rest), [(json!(1), -32054)]);
    assert_eq!(bridge.end().await.cause, Cause::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_is_closed() {
    // However the conversation ends, with a few or with as many messages waiting as fit.
    for full in [false, true] {
        for way in ["exits", "exits, pipe held", "link ends", "stop"] {
            if full && way == "link ends" {
                // The end is queued behind messages that cannot be read yet: a pause, not an end.
                continue;
            }
            let mut plan = Plan::narrow(16);
            plan.child = way != "link ends";
            let mut bridge = Bridge::over(&plan);
            let sent = if full {
                fill(&mut bridge.agent).await
            } else {
                for number in 0..260 {
                    bridge.agent.send(&update(number)).await;
                }
                260
            };
            match way {
                "exits" => {
                    bridge.process.exit(Exit::Code(0));
                    bridge.agent.end().await;
                }
                "exits, pipe held" => bridge.process.exit(Exit::Code(0)),
                "link ends" => bridge.agent.end().await,
                _ => {
                    bridge.stop.requested.cancel();
                    sleep(Duration::from_secs(1)).await;
                    bridge.process.exit(Exit::Code(0));
                }
            }
            let (end, time) = timed(&mut bridge).await;
            assert!(time <= BOUND, "{way}, full: {full}: it took {time:?}");
            // Messages that did not reach the client are accounted for.
            let counts = &end.counts;
            assert_eq!(
                counts.received(Side::Agent).frames,
                counts.sent(Side::Client).frames + counts.note("undeliverable"),
                "{way}, full: {full}"
            );
            assert!(counts.received(Side::Agent).frames <= sent as u64);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_that_vanishes_ends_the_conversation() {
    let mut bridge = Bridge::over(&Plan::narrow(16).with_child());
    let sent = fill(&mut bridge.agent).await;
    assert!(sent > 256, "{sent}");
    drop(std::mem::replace(
        &mut bridge.client,
        Bridge::over(&Plan::default()).client,
    ));
    assert_eq!(bridge.agent.receive().await, None);
    // It exits, and a child of it holds its pipe open.
    bridge.process.exit(Exit::Code(0));
    let (end, time) = timed(&mut bridge).await;
    assert!(time <= BOUND, "it took {time:?}");
    assert_eq!(end.cause, Cause::ClientLeft);
}

#[tokio::test(start_paused = true)]
async fn a_forced_stop_waits_for_no_peer() {
    for full in [false, true] {
        let mut bridge = Bridge::over(&Plan::narrow(16).with_child());
        if full {
            fill(&mut bridge.agent).await;
        }
        bridge.client.pass(&mut bridge.agent, &ask(1)).await;
        bridge.stop.requested.cancel();
        sleep(Duration::from_millis(1)).await;
        bridge.stop.forced.cancel();
        sleep(Duration::from_millis(1)).await;
        assert_eq!(bridge.process.signals(), [StopStep::Kill]);
        bridge.process.exit(Exit::Signal(9));
        let (end, time) = timed(&mut bridge).await;
        assert!(time <= Duration::from_secs(2), "it took {time:?}");
        assert_eq!(end.cause, Cause::Stopped);
        assert_eq!(end.exit, Some(Exit::Signal(9)));
        if !full {
            let received = bridge.client.receive_all().await;
            assert_eq!(codes(&received), [(json!(1), -32054)]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_forced_stop_during_delivery_repeats_nothing() {
    let mut bridge = Bridge::over(&Plan::narrow(1024).with_child());
    for number in 0..300 {
        bridge.agent.send(&update(number)).await;
    }
    bridge.stop.requested.cancel();
    bridge.process.exit(Exit::Code(3));
    bridge.agent.end().await;
    sleep(Duration::from_secs(1)).await;
    assert!(!bridge.is_over(), "the client has not read yet");
    bridge.stop.forced.cancel();
    let received = bridge.client.receive_all().await;
    let notices = received.iter().filter(|text| text.contains("agent_exited"));
    assert_eq!((notices.count(), received.len()), (1, 301));
    assert_eq!(bridge.end().await.exit, Some(Exit::Code(3)));
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_client_costs_no_memory() {
    let mut bridge = Bridge::over(&Plan::default().with_child());
    bridge.client.end().await;
    drop(std::mem::replace(
        &mut bridge.client,
        Bridge::over(&Plan::default()).client,
    ));
    // The first message after the client's end detects it.
    for number in 0..2000 {
        bridge.agent.send(&update(number)).await;
    }
    bridge.agent.end().await;
    bridge.process.exit(Exit::Code(0));
    let counts = bridge.end().await.counts;
    assert_eq!(counts.received(Side::Agent).frames, 2000);
    assert_eq!(
        counts.sent(Side::Client).frames + counts.note("undeliverable"),
        2000
    );
    // Each is accounted for when it is received, not when the last one is.
    let seen = bridge.notebook.seen();
    let mut unsettled = 0_usize;
    for seen in &seen {
        use crate::support::bridge::Seen;
        match seen {
            Seen::Received(..) => unsettled += 1,
            Seen::Sent(..) => unsettled -= 1,
            Seen::Note(note) if note.name() == "undeliverable" => unsettled -= 1,
            Seen::Note(_) => {}
        }
        assert!(unsettled <= 256 + 1, "{unsettled} wait");
    }
}
