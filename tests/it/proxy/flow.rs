//! The flow while both sides are healthy: every byte, in order, and within the queue limits.

use acp_relay::conversation::Cause;
use acp_relay::jsonrpc::Side;

use crate::support::bridge::{Bridge, Plan, TestPeer};

/// Messages that a parser and a printer would change.
const ODD: [&str; 9] = [
    r#"{"jsonrpc":"2.0","method":"plain"}"#,
    r#"  {  "method" : "spaced" ,  "jsonrpc" : "2.0"  }  "#,
    r#"{"jsonrpc":"2.0","method":"numbers","params":[1.0,1e400,-0,9007199254740993,1E5]}"#,
    r#"{"jsonrpc":"2.0","method":"escapes","params":"\u00e9\/\ud83d\ude00\u0000"}"#,
    r#"{"jsonrpc":"2.0","method":"lone","params":"\ud800"}"#,
    "{\"jsonrpc\":\"2.0\",\"method\":\"raw\",\"params\":\"ünï \u{2028}\u{1F600}\"}",
    r#"{"params":{"b":1,"a":2,"b":3},"method":"order","jsonrpc":"2.0"}"#,
    r#"{"jsonrpc":"2.0","method":"_vendor/unknown","params":{},"extra":[[],{}]}"#,
    r#"{"method":"no version"}"#,
];

fn update(number: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"n":{number}}}}}"#)
}

#[tokio::test(start_paused = true)]
async fn messages_are_forwarded_byte_for_byte_and_in_order() {
    let mut bridge = Bridge::over(&Plan::default());
    for text in ODD {
        bridge.client.send(text).await;
        bridge.agent.send(text).await;
    }
    for text in ODD {
        assert_eq!(bridge.agent.receive().await.unwrap(), text);
        assert_eq!(bridge.client.receive().await.unwrap(), text);
    }
    // Requests of both sides under one id, answered crosswise.
    let ask = r#"{"jsonrpc":"2.0","id":0,"method":"ask","params":[1.0]}"#;
    let answer = r#"{"id":0,"jsonrpc":"2.0","result":{"z":1,"a":1.10}}"#;
    bridge.client.pass(&mut bridge.agent, ask).await;
    bridge.agent.pass(&mut bridge.client, ask).await;
    bridge.agent.pass(&mut bridge.client, answer).await;
    bridge.client.pass(&mut bridge.agent, answer).await;

    bridge.client.end().await;
    assert_eq!(bridge.agent.receive().await, None);
    bridge.agent.end().await;
    assert_eq!(bridge.client.receive().await, None);
    let end = bridge.end().await;
    assert_eq!(end.cause, Cause::ClientLeft);
    let bytes: usize = ODD.iter().map(|text| text.len()).sum::<usize>() + ask.len() + answer.len();
    for side in [Side::Client, Side::Agent] {
        for flow in [end.counts.received(side), end.counts.sent(side)] {
            assert_eq!((flow.frames, flow.bytes), (11, bytes as u64));
        }
    }
    assert_eq!(end.counts.notes().collect::<Vec<_>>(), [("ended", 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_reader_pauses_the_other_sides_writer() {
    for writer in [Side::Client, Side::Agent] {
        let mut bridge = Bridge::over(&Plan::narrow(64));
        let (from, to) = match writer {
            Side::Client => (&mut bridge.client, &mut bridge.agent),
            Side::Agent => (&mut bridge.agent, &mut bridge.client),
        };
        let mut accepted = 0;
        while from.try_send(&update(accepted)).await {
            accepted += 1;
            assert!(accepted < 10_000, "the {writer} is never paused");
        }
        // 256 in each link, 64 between them.
        assert!((64..=2 * 256 + 64 + 1).contains(&accepted), "{accepted}");
        for number in 0..accepted {
            assert_eq!(to.receive().await.unwrap(), update(number));
        }
        // It continues.
        from.pass(to, &update(accepted)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_queue_limit_counts_bytes_and_one_message_of_any_size_fits() {
    let mut plan = Plan::default();
    plan.limits.queue_bytes = 4096;
    let mut bridge = Bridge::over(&plan);
    let pad = "x".repeat(100_000);
    let large = format!(r#"{{"method":"large","params":"{pad}"}}"#);
    let mut accepted = 0;
    while bridge.agent.try_send(&large).await {
        accepted += 1;
        assert!(accepted < 100, "the agent is never paused");
    }
    assert!((1..=3).contains(&accepted), "{accepted}");
    for _ in 0..accepted {
        assert_eq!(bridge.client.receive().await.unwrap(), large);
    }
}

#[tokio::test(start_paused = true)]
async fn two_peers_that_write_before_they_read_do_not_deadlock() {
    for room in [1, 2, 64, 1024] {
        let mut bridge = Bridge::over(&Plan::narrow(room));
        // As much as fits without a reader: a link on each side of the queue between them.
        let much = 2 * 256 + room - 1;
        let (client, agent) = (&mut bridge.client, &mut bridge.agent);
        let write = async |peer: &mut TestPeer| {
            for number in 0..much {
                peer.send(&update(number)).await;
            }
        };
        tokio::join!(write(client), write(agent));
        let read = async |peer: &mut TestPeer| {
            for number in 0..much {
                assert_eq!(peer.receive().await.unwrap(), update(number));
            }
        };
        tokio::join!(read(client), read(agent));
    }
}

#[tokio::test(start_paused = true)]
async fn the_third_oversized_message_ends_the_conversation() {
    for sender in [Side::Client, Side::Agent] {
        let mut plan = Plan::default();
        plan.limits.frame_from_network = 200;
        let mut bridge = Bridge::over(&plan);
        let (from, to) = match sender {
            Side::Client => (&mut bridge.client, &mut bridge.agent),
            Side::Agent => (&mut bridge.agent, &mut bridge.client),
        };
        let pad = "x".repeat(200);
        let long = format!(r#"{{"jsonrpc":"2.0","method":"a","params":"{pad}"}}"#);
        for number in 0..3 {
            from.send(&long).await;
            // Messages between them are forwarded.
            if number < 2 {
                from.pass(to, ODD[0]).await;
            }
            if (sender, number) != (Side::Agent, 2) {
                assert_eq!(from.receive_json().await["error"]["code"], -32056);
            }
        }
        if sender == Side::Client {
            assert_eq!(from.receive().await, None);
            assert_eq!(to.receive().await, None);
            to.end().await;
        } else {
            assert_eq!(to.receive().await, None);
        }
        let end = bridge.end().await;
        assert_eq!(end.cause, Cause::Violation(sender));
        assert_eq!(end.counts.note("refused"), 3);
    }
}
