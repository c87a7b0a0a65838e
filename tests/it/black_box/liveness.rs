//! Peers that go silent while their connection stays open.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::time::sleep;

use super::support_ws::{WebSocket, connected, request, serve};
use crate::support::link::run as block_on;

/// A second of silence, and a second for the answer to a ping; TCP would wait an hour.
const SHORT: &str = "--limit http-keepalive=1s --limit tcp-user-timeout=3600";

/// The same for a test that has to answer pings in time.
const LONGER: &str = "--limit http-keepalive=4s --limit tcp-user-timeout=3600";

#[test]
fn connect_ends_when_a_websocket_server_goes_silent() {
    block_on(async {
        // The server's socket stays open, and its kernel acknowledges all data.
        let (mut connect, _socket) = connected(SHORT).await;
        connect.write(&format!("{}\n", request(1, "x"))).await;
        let answer = connect.json().await;
        let stated = answer["error"]["message"].as_str().unwrap();
        assert_eq!(answer["id"], 1);
        assert!(stated.contains("silent for 2s"), "{answer}");
        let line = connect.complaint().await.unwrap();
        assert!(
            line.contains("silent for 2s") && line.contains("tunnel"),
            "{line}"
        );
        assert_ne!(connect.exit().await.code(), Some(0));
    });
}

#[test]
fn serve_stops_the_agent_of_a_websocket_client_that_goes_silent() {
    let silent = async |scheme| {
        let (_serve, address) = serve(scheme, LONGER).await;
        let mut client = WebSocket::open(&address, "").await;
        let pid = client.agent_pid().await;
        // A ping comes first; it is not answered.
        while let Some((opcode, _)) = client.next().await {
            assert!([8, 9, 10].contains(&opcode), "{opcode}");
        }
        while fs::exists(Path::new("/proc").join(pid.to_string())).unwrap() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    block_on(async { tokio::join!(silent("ws"), silent("http")) });
}

#[test]
fn a_websocket_peer_that_answers_pings_stays_connected() {
    block_on(async {
        let (_serve, address) = serve("ws", LONGER).await;
        let mut client = WebSocket::open(&address, "").await;
        let pid = client.agent_pid().await;
        for _ in 0..3 {
            client.next_of(9).await;
            client.frame(10, b"").await;
        }
        assert_eq!(client.agent_pid().await, pid);
    });
}

#[test]
fn a_websocket_server_survives_a_long_pause_of_its_reader() {
    block_on(async {
        // Messages wait for an editor that does not read them: more than `connect` queues.
        let options = format!("{SHORT} --limit queue-frames=1 --limit queue-bytes=1");
        let (mut connect, mut socket) = connected(&options).await;
        let text = format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, "x".repeat(900));
        let length = u16::try_from(text.len()).unwrap().to_be_bytes();
        let message = [&[0x81, 126, length[0], length[1]], text.as_bytes()].concat();
        let count = 3000;
        socket.0.write_all(&message.repeat(count)).await.unwrap();
        // It still answers pings, long after a silent peer would be lost.
        for _ in 0..5 {
            socket.next_of(10).await;
        }
        for _ in 0..count {
            assert_eq!(connect.line().await.as_deref(), Some(&*text));
        }
    });
}

#[test]
fn a_websocket_frame_longer_than_the_limit_ends_the_connection_at_once() {
    // 2^62 bytes in one frame, and 16 MiB behind a fragment.
    let whole = (0x81, (1_u64 << 62), &b""[..]);
    let part = (0x80, (16_u64 << 20), &[0x01, 0x01, b'x'][..]);
    block_on(async {
        for (first, length, before) in [whole, part] {
            let (mut connect, mut socket) = connected("").await;
            connect.write(&format!("{}\n", request(1, "x"))).await;
            let head = [before, &[first, 127], &length.to_be_bytes()].concat();
            // Once the request has arrived.
            socket.next_of(1).await;
            socket.0.write_all(&head).await.unwrap();
            let answer = connect.json().await;
            assert_eq!(answer["id"], 1);
            let stated = answer["error"]["message"].as_str().unwrap();
            assert!(stated.contains("frame-from-network"), "{answer}");
            assert_ne!(connect.exit().await.code(), Some(0));
        }
    });
}
