//! The recorder: everything observed is written, in order, and a recording delays the conversation
//! for a limited time only.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use acp_relay::conversation::Note;
use acp_relay::dialect::FiredRule;
use acp_relay::jsonrpc::{Exit, Frame, Kind, Side};
use acp_relay::observe::recorder::{OverflowPolicy, RecordingOutcome};
use acp_relay::observe::{Event, Observer};
use acp_relay::recording::redact::Mode;
use acp_relay::recording::{EventKind, Message, RecordedEvent};
use proptest::prelude::*;

use super::stage::{RecorderSetup, TestRecording, events, frames};

use Side::{Agent, Client};

const ASK: &[u8] =
    br#"{"jsonrpc":"2.0","id":0,"method":"session/prompt","params":{"sessionId":"s1"}}"#;
const ANSWER: &[u8] = br#"{"jsonrpc":"2.0","id":0,"result":{"stopReason":"end_turn"}}"#;

fn messages(events: &[RecordedEvent]) -> Vec<&Message> {
    events.iter().filter_map(RecordedEvent::message).collect()
}

#[test]
fn a_turn_is_written_once_and_paired() {
    let mut recording = RecorderSetup::default().start();
    recording.forward(Client, ASK);
    for _ in 0..3 {
        recording.forward(
            Agent,
            br#"{"method":"session/update","params":{"sessionId":"s1"}}"#,
        );
    }
    // The other side's request has the same id.
    recording.forward(Agent, ASK);
    recording.forward(Client, ANSWER);
    recording.forward(Agent, ANSWER);
    recording.handle.stderr(b"warn\n");
    let (outcome, segments) = recording.end();
    assert_eq!(outcome, RecordingOutcome::Kept("memory".to_owned()));
    let all = events(segments.concat());
    let numbers: Vec<u64> = all.iter().map(|event| event.n).collect();
    assert_eq!(numbers, (1..=all.len() as u64).collect::<Vec<_>>());
    assert!(all.windows(2).all(|pair| pair[0].t <= pair[1].t));
    let all_messages = messages(&all);
    assert_eq!(all_messages.len(), 7);
    let [ask, .., reverse, back, answer] = all_messages[..] else {
        panic!("{all:?}");
    };
    assert_eq!(ask.method.as_deref(), Some("session/prompt"));
    assert_eq!((back.answers, back.edge), (Some(5), Client));
    assert_eq!(
        (answer.answers, answer.session.as_deref()),
        (Some(1), Some("s1"))
    );
    assert_eq!(answer.method.as_deref(), Some("session/prompt"));
    assert_eq!(reverse.kind, Some(Kind::Request));
    let passed: u64 = all
        .iter()
        .map(|event| match &event.kind {
            EventKind::Passed(passed) => passed.count,
            _ => 0,
        })
        .sum();
    assert_eq!(passed, 7);
    assert!(matches!(
        all.last().unwrap().kind,
        EventKind::End { rotated: false, .. }
    ));
}

fn translated(dialect: &str, rule: &str) -> Note {
    let (dialect, rule) = (dialect.into(), rule.into());
    Note::Translated {
        side: Agent,
        method: "session/prompt".into(),
        rules: vec![FiredRule { dialect, rule }].into(),
    }
}

#[test]
fn a_translated_frame_names_its_origin_its_rules_and_the_difference() {
    let mut recording = RecorderSetup {
        dialect: "goose-v1",
        ..RecorderSetup::default()
    }
    .start();
    recording.forward(Client, ASK);
    let received = Frame::from(r#"{"jsonrpc":"2.0","id":0,"result":{"stop":"end"}}"#);
    let sent = Frame::from(r#"{"jsonrpc":"2.0","id":0,"result":{"stopReason":"end_turn"}}"#);
    let note = translated("goose-v1", "stop");
    recording.translate(Agent, &received, &[note], &sent);
    let all = recording.events();
    let all = messages(&all);
    let [_, received, sent] = all[..] else {
        panic!("{all:?}");
    };
    assert_eq!((received.source, sent.source), (None, Some(2)));
    assert_eq!(sent.rules, ["goose-v1/stop"]);
    assert_eq!((received.answers, sent.answers), (Some(1), Some(1)));
    let patch = sent.patch.as_ref().unwrap().to_string();
    assert!(patch.contains(r#""path":"/result/stop""#), "{patch}");
}

#[test]
fn rules_that_drop_a_message_are_recorded() {
    let mut recording = RecorderSetup::default().start();
    let received = Frame::from(r#"{"method":"_x/noise"}"#);
    recording
        .recorder
        .on_event(&Event::Received(Agent, &received));
    recording
        .recorder
        .on_event(&Event::Note(&translated("x", "drop")));
    recording.recorder.on_event(&Event::Settled([0; 2]));
    let all = recording.events();
    let expected = EventKind::Note {
        name: "translated".to_owned(),
        text: "x/drop".to_owned(),
        source: Some(1),
    };
    assert_eq!(all[1].kind, expected);
}

#[test]
fn a_dropped_message_is_not_recorded_as_passed() {
    let mut recording = RecorderSetup::default().start();
    recording.forward(Agent, br#"{"method":"a"}"#);
    let stray = Frame::from("Ready.");
    recording.recorder.on_event(&Event::Received(Agent, &stray));
    recording.recorder.on_event(&Event::Note(&Note::Stray {
        bytes: 6,
        excerpt: "Ready.".into(),
    }));
    recording.recorder.on_event(&Event::Settled([0; 2]));
    recording.forward(Agent, br#"{"method":"b"}"#);
    let mut passed = Vec::new();
    for event in recording.events() {
        if let EventKind::Passed(run) = event.kind {
            passed.push((run.first, run.last, run.count));
        }
    }
    assert_eq!(passed, [(1, 1, 1), (4, 4, 1)]);
}

/// Whether the recorder is not ready for more.
async fn is_behind(recording: &mut TestRecording) -> bool {
    poll_fn(|cx| std::task::Poll::Ready(recording.recorder.poll_ready(cx).is_pending())).await
}

#[tokio::test]
async fn a_lossless_recorder_with_a_full_queue_pauses_the_relay_and_wakes_it() {
    let mut recording = RecorderSetup::default().start();
    let big = format!(r#"{{"method":"x","params":"{}"}}"#, "y".repeat(1 << 20));
    let mut count = 0;
    let mut waited = false;
    while !waited && count < 1000 {
        recording.forward(Agent, big.as_bytes());
        count += 1;
        waited = is_behind(&mut recording).await;
    }
    assert!(waited, "1 GiB was accepted without a pause");
    let ready = poll_fn(|cx| recording.recorder.poll_ready(cx));
    tokio::time::timeout(Duration::from_secs(60), ready)
        .await
        .unwrap();
    let all = recording.events();
    assert_eq!(messages(&all).len(), count);
    assert!(
        !all.iter()
            .any(|event| matches!(event.kind, EventKind::Gap { .. }))
    );
}

#[test]
fn a_lossy_recorder_counts_what_it_omits() {
    let mut recording = RecorderSetup {
        policy: OverflowPolicy::Lossy,
        ..RecorderSetup::default()
    }
    .start();
    let sent = 200_000_u64;
    for _ in 0..sent {
        recording.forward(Agent, br#"{"method":"x"}"#);
    }
    let all = recording.events();
    let lost: u64 = all
        .iter()
        .map(|event| match &event.kind {
            EventKind::Gap { events, .. } => *events,
            _ => 0,
        })
        .sum();
    // A frame that is lost as received is lost as sent.
    let received = messages(&all)
        .iter()
        .filter(|message| message.is_received())
        .count() as u64;
    let alone = messages(&all).len() as u64 - received;
    assert_eq!(alone, 0);
    assert!(received + lost >= sent, "{received} received, {lost} lost");
}

#[test]
fn the_bytes_that_wait_for_a_slow_disk_are_counted_and_limited() {
    let mut recording = RecorderSetup::default().start();
    let (disk, stats) = (recording.written.0.clone(), Arc::clone(&recording.stats));
    let held = disk.lock().unwrap();
    let text = format!(r#"{{"method":"x","params":"{}"}}"#, "y".repeat(1 << 10));
    // The writer thread may wait for the disk with the first of it; the rest waits in the queue.
    let mut sent = 0;
    while stats.waiting().0 < 64 << 10 {
        recording.forward(Agent, text.as_bytes());
        sent += 1;
    }
    let (bytes, room) = stats.waiting();
    assert!(bytes < room, "{bytes} of {room}");
    drop(held);
    assert_eq!(messages(&recording.events()).len(), sent);
    assert_eq!(stats.waiting().0, 0);
    assert!(stats.totals().bytes > 64 << 10);
}

#[test]
fn observing_a_message_takes_no_allocation_of_its_own() {
    let mut recording = RecorderSetup::default().start();
    let frame = Frame::from(format!(
        r#"{{"method":"x","params":"{}"}}"#,
        "y".repeat(200)
    ));
    let frames = 20_000;
    let counted = allocation_counter::measure(|| {
        for _ in 0..frames {
            recording.translate(Agent, &frame, &[], &frame);
        }
    });
    // The batches grow by doubling, once or with every few that the writer thread takes.
    assert!(counted.count_total < frames / 50, "{counted:?}");
    assert_eq!(messages(&recording.events()).len() as u64, frames);
}

#[test]
fn on_error_nothing_is_written_before_an_error() {
    let quiet = || {
        let setup = RecorderSetup {
            on_error: true,
            ..RecorderSetup::default()
        };
        let mut recording = setup.start();
        recording.forward(Client, ASK);
        recording.forward(Agent, ANSWER);
        recording
    };
    let (outcome, segments) = quiet().end();
    assert_eq!((outcome, segments.len()), (RecordingOutcome::Dropped, 0));

    let mut recording = quiet();
    recording.forward(Client, ASK);
    recording.forward(Agent, br#"{"id":0,"error":{"code":-1,"message":"no"}}"#);
    assert_eq!(messages(&recording.events()).len(), 4);

    let mut recording = quiet();
    let exit = Exit::Signal(11);
    recording
        .recorder
        .on_event(&Event::Note(&Note::AgentExited { exit }));
    assert_eq!(messages(&recording.events()).len(), 2);
}

#[test]
fn meta_keeps_no_bodies_and_structure_no_texts() {
    for mode in [Mode::Meta, Mode::Structure] {
        let mut recording = RecorderSetup {
            mode,
            ..RecorderSetup::default()
        }
        .start();
        recording.forward(
            Client,
            br#"{"id":1,"method":"session/prompt","params":{"prompt":[{"type":"text","text":"my plan"}]}}"#,
        );
        recording.forward(Agent, b"my plan, loosely");
        recording.handle.stderr(b"my plan fails\n");
        let (_, segments) = recording.end();
        let text = String::from_utf8(segments.concat()).unwrap();
        assert!(!text.contains("my plan"), "{text}");
        assert!(text.contains(r#""me":"session/prompt""#));
        assert_eq!(text.contains(r#""type":"text""#), mode == Mode::Structure);
    }
}

/// Records frames without redaction, and compares them with what was recorded.
fn keeps_bytes(frames_sent: &[(bool, Vec<u8>)]) {
    let setup = RecorderSetup {
        mode: Mode::Full,
        ..RecorderSetup::default()
    };
    let mut recording = setup.start();
    let mut expected = Vec::new();
    for (client, text) in frames_sent {
        let from = if *client { Client } else { Agent };
        recording.forward(from, text);
        expected.push((from, from.other(), text.clone()));
    }
    assert_eq!(frames(&recording.events()), expected);
}

#[test]
fn frames_that_look_like_the_format_keep_their_bytes() {
    let frames = [
        &b""[..],
        b"{}",
        b" {} ",
        b"{}\n",
        b"{\n  \"a\": 1\n}",
        b"{\"a\":1}\r",
        b"\"crc\"",
        br#"{"crc":"00000000"}"#,
        br#"{"m":{},"crc":"00000000"}"#,
        br#"{"a":1},"crc":"00000000"}"#,
        b"{\"a\":\"\\ud83d\",\"b\":1e400,\"b\":2}",
        b"\xef\xbb\xbf{}",
        b"\xff\xfe\0",
        b"a\x1b[31m\"\\",
        "\u{2028}\u{feff}\u{202e}".as_bytes(),
        b"[[[[",
    ];
    keeps_bytes(&frames.map(|frame| (true, frame.to_vec())));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_frames_are_recorded_byte_for_byte(
        frames_sent in prop::collection::vec(
            (any::<bool>(), prop::collection::vec(any::<u8>(), 0..6000)), 1..40),
    ) {
        keeps_bytes(&frames_sent);
    }
}
