//! `replay:` as an endpoint: its grammar, and a link to a recording.

use std::path::PathBuf;
use std::time::Duration;

use acp_relay::transport::{CloseReason, Endpoint, registry};
use tokio::time::Instant;

use super::played::talk;
use crate::support::bridge::within;
use crate::support::link::{PATIENCE, close, next, received, send, setup};

/// The conversation as a capture, one second per line.
pub(super) fn capture(dir: &tempfile::TempDir) -> PathBuf {
    let talk = talk();
    let lines = talk.lines().filter(|line| !line.is_empty());
    let text: String = (1..)
        .zip(lines)
        .map(|(n, line)| {
            let (arrow, message) = line.split_once(' ').unwrap();
            let dir = if arrow == ">" { "c2a" } else { "a2c" };
            format!("{{\"dir\":\"{dir}\",\"ts\":{n}.0,\"msg\":{message}}}\n")
        })
        .collect();
    let path = dir.path().join("talk.jsonl");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_replay_endpoint_is_printed_as_it_was_written() {
    for text in [
        "replay:talk.acpr",
        "replay:/a b/talk.acpr.zst?match=order",
        "replay:t?match=shape&speed=2.5&max-idle=1500ms&unmatched=nearest&fault=f.txt&edge=agent",
        "replay:t?speed=1&forward=tcp://localhost:1",
        "replay:t?forward=replay:u?match=order&speed=1",
    ] {
        let endpoint: Endpoint = text.parse().unwrap();
        assert_eq!(endpoint.to_string(), text);
        assert_eq!(endpoint.to_string().parse(), Ok(endpoint));
    }
    for (text, why) in [
        ("replay:", "names no recording"),
        ("replay:t?match=loose", "expected strict, shape, order"),
        ("replay:t?speed=0", "is no speed"),
        ("replay:t?idle=1s", "is not an option; expected match="),
        ("replay:t?unmatched=forward", "named by forward=ENDPOINT"),
        ("replay:t?max-idle=5", "is no duration"),
    ] {
        let error = text.parse::<Endpoint>().unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_link_keeps_the_recorded_times() {
    let dir = tempfile::tempdir().unwrap();
    let path = capture(&dir);
    let to = format!("replay:{}?speed=1", path.display())
        .parse()
        .unwrap();
    let mut link = registry::connect(&to, &setup()).await.unwrap();
    let began = Instant::now();
    let long = r#"{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s-old","prompt":[{"type":"text","text":"long"}]}}"#;
    within(send(&mut *link.tx, long)).await.unwrap();
    within(received(&mut *link.rx)).await;
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    // A day later the client cancels.
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s-old"}}"#;
    within(send(&mut *link.tx, cancel)).await.unwrap();
    within(received(&mut *link.rx)).await;
    let answer = within(received(&mut *link.rx)).await;
    assert!(format!("{answer:?}").contains("cancelled"));
    assert_eq!(began.elapsed(), Duration::from_secs(86_400 + 1 + 2));
    within(close(&mut *link.tx, CloseReason::Done))
        .await
        .unwrap();
    assert!(within(next(&mut *link.rx)).await.is_none());
}

#[tokio::test]
async fn unmatched_requests_can_be_forwarded_to_another_recording() {
    let dir = tempfile::tempdir().unwrap();
    let path = capture(&dir);
    let path = path.display();
    let to = format!("replay:{path}?forward=replay:{path}")
        .parse()
        .unwrap();
    let mut link = registry::connect(&to, &setup()).await.unwrap();
    let initialize =
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    // The first request is answered by one recording, the second by the other.
    for _ in 0..2 {
        within(send(&mut *link.tx, initialize)).await.unwrap();
        let answer = within(received(&mut *link.rx)).await;
        assert!(
            format!("{answer:?}").contains("protocolVersion"),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_played_is_reported_before_a_client_connects() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let check = |text: String| {
        let to: Endpoint = text.parse().unwrap();
        registry::check(&to, &setup()).unwrap_err().to_string()
    };
    let there = |path: &std::path::Path| format!("replay:{}", path.display());
    assert!(check(there(&path)).contains("No such file"));
    std::fs::write(&path, "hello\n").unwrap();
    assert!(check(there(&path)).contains("neither a recording"));
    let fault = format!("{}?fault={}", there(&capture(&dir)), path.display());
    assert!(check(fault).contains("is no fault; expected `after EVENT`"));
    let to = there(&capture(&dir)).parse().unwrap();
    let Err(error) = registry::listen(&to, &setup()).await else {
        panic!("a recording cannot be listened at");
    };
    assert!(error.to_string().contains("replay client"), "{error}");
}

/// Whether the live agent has answered, has ended, or has a request open.
#[tokio::test]
async fn the_link_ends_with_the_client_even_if_the_live_agent_has_not_answered() {
    let dir = tempfile::tempdir().unwrap();
    let path = capture(&dir);
    let path = path.display();
    let fork = r#"{"jsonrpc":"2.0","id":9,"method":"session/fork","params":{}}"#;
    for (behind, expected) in [
        (format!("replay:{path}"), "not recorded"),
        ("exec:true".to_owned(), "is gone"),
        ("exec:cat".to_owned(), "session/fork"),
    ] {
        let to = format!("replay:{path}?forward={behind}").parse().unwrap();
        let mut link = registry::connect(&to, &setup()).await.unwrap();
        within(send(&mut *link.tx, fork)).await.unwrap();
        let answer = within(received(&mut *link.rx)).await;
        assert!(
            format!("{answer:?}").contains(expected),
            "{behind}: {answer:?}"
        );
        within(close(&mut *link.tx, CloseReason::Done))
            .await
            .unwrap();
        let rest = async { while next(&mut *link.rx).await.is_some() {} };
        let ended = tokio::time::timeout(PATIENCE, rest).await;
        assert!(ended.is_ok(), "{behind}: the link does not end");
    }
}
