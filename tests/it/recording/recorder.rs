//! The recorder: all that is seen is written, in order, and a recording never holds anything up
//! but for a while.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use acp_relay::conversation::Note;
use acp_relay::dialect::FiredRule;
use acp_relay::jsonrpc::{Exit, Frame, Kind, Side};
use acp_relay::observe::recorder::{OverflowPolicy, RecordingOutcome};
use acp_relay::observe::{Event, Observer};
use acp_relay::recording::redact::Mode;
use acp_relay::recording::{EventKind, Message, Parsed, RecordedEvent, parse_line};
use proptest::prelude::*;

use super::stage::{Scene, Stage, events, frames};

use Side::{Agent, Client};

const ASK: &[u8] =
    br#"{"jsonrpc":"2.0","id":0,"method":"session/prompt","params":{"sessionId":"s1"}}"#;
const ANSWER: &[u8] = br#"{"jsonrpc":"2.0","id":0,"result":{"stopReason":"end_turn"}}"#;

fn messages(events: &[RecordedEvent]) -> Vec<&Message> {
    let message = |event: &RecordedEvent| matches!(event.kind, EventKind::Message(_));
    let all = events.iter().filter(|event| message(event));
    all.map(|event| match &event.kind {
        EventKind::Message(message) => &**message,
        _ => unreachable!("they were filtered"),
    })
    .collect()
}

#[test]
fn a_turn_is_written_once_and_paired() {
    let mut stage = Scene::default().set();
    stage.pass(Client, ASK);
    for _ in 0..3 {
        stage.pass(
            Agent,
            br#"{"method":"session/update","params":{"sessionId":"s1"}}"#,
        );
    }
    // The other side's request has the same id.
    stage.pass(Agent, ASK);
    stage.pass(Client, ANSWER);
    stage.pass(Agent, ANSWER);
    stage.remarks.stderr(b"warn\n");
    let (outcome, segments) = stage.end();
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
    let mut stage = Scene {
        dialect: "goose-v1",
        ..Scene::default()
    }
    .set();
    stage.pass(Client, ASK);
    let received = Frame::from(r#"{"jsonrpc":"2.0","id":0,"result":{"stop":"end"}}"#);
    let reported = Frame::from(r#"{"jsonrpc":"2.0","id":0,"result":{"stopReason":"end_turn"}}"#);
    let note = translated("goose-v1", "stop");
    stage.lead(Agent, &received, &[note], &reported);
    let all = stage.events();
    let all = messages(&all);
    let [_, received, reported] = all[..] else {
        panic!("{all:?}");
    };
    assert_eq!((received.source, reported.source), (None, Some(2)));
    assert_eq!(reported.rules, ["goose-v1/stop"]);
    assert_eq!((received.answers, reported.answers), (Some(1), Some(1)));
    let patch = reported.patch.as_ref().unwrap().to_string();
    assert!(patch.contains(r#""path":"/result/stop""#), "{patch}");
}

#[test]
fn rules_that_leave_nothing_of_a_message_are_reported_all_the_same() {
    let mut stage = Scene::default().set();
    let received = Frame::from(r#"{"method":"_x/noise"}"#);
    stage.recorder.on_event(&Event::Received(Agent, &received));
    stage
        .recorder
        .on_event(&Event::Note(&translated("x", "drop")));
    stage.recorder.on_event(&Event::Settled([0; 2]));
    let all = stage.events();
    let expected = EventKind::Note {
        name: "translated".to_owned(),
        text: "x/drop".to_owned(),
        source: Some(1),
    };
    assert_eq!(all[1].kind, expected);
}

#[test]
fn a_message_that_is_dropped_is_not_reported_to_have_passed() {
    let mut stage = Scene::default().set();
    stage.pass(Agent, br#"{"method":"a"}"#);
    let stray = Frame::from("Ready.");
    stage.recorder.on_event(&Event::Received(Agent, &stray));
    stage.recorder.on_event(&Event::Note(&Note::Stray {
        bytes: 6,
        excerpt: "Ready.".into(),
    }));
    stage.recorder.on_event(&Event::Settled([0; 2]));
    stage.pass(Agent, br#"{"method":"b"}"#);
    let mut passed = Vec::new();
    for event in stage.events() {
        if let EventKind::Passed(run) = event.kind {
            passed.push((run.first, run.last, run.count));
        }
    }
    assert_eq!(passed, [(1, 1, 1), (4, 4, 1)]);
}

/// Whether the recorder wants nothing more.
async fn is_behind(stage: &mut Stage) -> bool {
    poll_fn(|cx| std::task::Poll::Ready(stage.recorder.poll_ready(cx).is_pending())).await
}

#[tokio::test]
async fn a_lossless_recorder_that_is_behind_has_the_relay_wait_and_wakes_it() {
    let mut stage = Scene::default().set();
    let big = format!(r#"{{"method":"x","params":"{}"}}"#, "y".repeat(1 << 20));
    let mut count = 0;
    let mut waited = false;
    while !waited && count < 1000 {
        stage.pass(Agent, big.as_bytes());
        count += 1;
        waited = is_behind(&mut stage).await;
    }
    assert!(waited, "1 GiB was taken without a pause");
    let room = poll_fn(|cx| stage.recorder.poll_ready(cx));
    tokio::time::timeout(Duration::from_secs(60), room)
        .await
        .unwrap();
    let all = stage.events();
    assert_eq!(messages(&all).len(), count);
    assert!(
        !all.iter()
            .any(|event| matches!(event.kind, EventKind::Gap { .. }))
    );
}

#[test]
fn a_lossy_recorder_counts_what_it_leaves_out() {
    let mut stage = Scene {
        policy: OverflowPolicy::Lossy,
        ..Scene::default()
    }
    .set();
    let reported = 200_000_u64;
    for _ in 0..reported {
        stage.pass(Agent, br#"{"method":"x"}"#);
    }
    let all = stage.events();
    let lost: u64 = all
        .iter()
        .map(|event| match &event.kind {
            EventKind::Gap { events, .. } => *events,
            _ => 0,
        })
        .sum();
    // What is lost as heard is lost as said.
    let received = messages(&all)
        .iter()
        .filter(|message| message.is_received())
        .count() as u64;
    let alone = messages(&all).len() as u64 - received;
    assert_eq!(alone, 0);
    assert!(received + lost >= reported, "{received} heard, {lost} lost");
}

#[test]
fn what_waits_for_a_slow_disk_is_reported_with_its_bound() {
    let mut stage = Scene::default().set();
    let (disk, tally) = (stage.paper.0.clone(), Arc::clone(&stage.tally));
    let held = disk.lock().unwrap();
    let text = format!(r#"{{"method":"x","params":"{}"}}"#, "y".repeat(1 << 10));
    // The desk may take the first of it and stand before the disk; what follows waits.
    let mut reported = 0;
    while tally.waiting().0 < 64 << 10 {
        stage.pass(Agent, text.as_bytes());
        reported += 1;
    }
    let (bytes, room) = tally.waiting();
    assert!(bytes < room, "{bytes} of {room}");
    drop(held);
    assert_eq!(messages(&stage.events()).len(), reported);
    assert_eq!(tally.waiting().0, 0);
    assert!(tally.bytes() > 64 << 10);
}

#[test]
fn what_is_seen_costs_no_allocation_of_its_own() {
    let mut stage = Scene::default().set();
    let frame = Frame::from(format!(
        r#"{{"method":"x","params":"{}"}}"#,
        "y".repeat(200)
    ));
    let frames = 20_000;
    let counted = allocation_counter::measure(|| {
        for _ in 0..frames {
            stage.lead(Agent, &frame, &[], &frame);
        }
    });
    // The batches grow by doubling, once or with every few that the desk takes.
    assert!(counted.count_total < frames / 50, "{counted:?}");
    assert_eq!(messages(&stage.events()).len() as u64, frames);
}

#[test]
fn on_error_nothing_is_written_until_something_goes_wrong() {
    let quiet = || {
        let scene = Scene {
            on_error: true,
            ..Scene::default()
        };
        let mut stage = scene.set();
        stage.pass(Client, ASK);
        stage.pass(Agent, ANSWER);
        stage
    };
    let (outcome, segments) = quiet().end();
    assert_eq!((outcome, segments.len()), (RecordingOutcome::Dropped, 0));

    let mut stage = quiet();
    stage.pass(Client, ASK);
    stage.pass(Agent, br#"{"id":0,"error":{"code":-1,"message":"no"}}"#);
    assert_eq!(messages(&stage.events()).len(), 4);

    let mut stage = quiet();
    let exit = Exit::Signal(11);
    stage
        .recorder
        .on_event(&Event::Note(&Note::AgentExited { exit }));
    assert_eq!(messages(&stage.events()).len(), 2);
}

#[test]
fn a_full_disk_stops_the_recording_and_nothing_else() {
    let mut whole = Scene::default().set();
    whole.pass(Client, ASK);
    whole.pass(Agent, ANSWER);
    let length = whole.end().1.concat().len();
    // The header alone has to fit, or there is no recording to begin with.
    let header = length - Scene::default().set().end().1.concat().len();
    let least = length - header;
    for room in least..length {
        let mut stage = Scene {
            room,
            ..Scene::default()
        }
        .set();
        stage.pass(Client, ASK);
        stage.pass(Agent, ANSWER);
        for _ in 0..100 {
            stage.pass(Agent, br#"{"method":"more"}"#);
        }
        let (outcome, segments) = stage.end();
        let text = &segments[0];
        assert_eq!(text.len(), room);
        assert!(
            matches!(&outcome, RecordingOutcome::Failed(why) if why.contains("memory")),
            "{outcome:?}"
        );
        let whole_lines = text.split_inclusive(|byte| *byte == b'\n');
        let broken = whole_lines
            .filter(|text| matches!(parse_line(&text.to_vec().into()), Parsed::Invalid(_)))
            .count();
        assert!(broken <= 1, "{broken} broken lines with room for {room}");
    }
}

#[test]
fn meta_keeps_no_bodies_and_structure_no_texts() {
    for mode in [Mode::Meta, Mode::Structure] {
        let mut stage = Scene {
            mode,
            ..Scene::default()
        }
        .set();
        stage.pass(
            Client,
            br#"{"id":1,"method":"session/prompt","params":{"prompt":[{"type":"text","text":"my plan"}]}}"#,
        );
        stage.pass(Agent, b"my plan, loosely");
        stage.remarks.stderr(b"my plan fails\n");
        let (_, segments) = stage.end();
        let text = String::from_utf8(segments.concat()).unwrap();
        assert!(!text.contains("my plan"), "{text}");
        assert!(text.contains(r#""me":"session/prompt""#));
        assert_eq!(text.contains(r#""type":"text""#), mode == Mode::Structure);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_frames_are_recorded_byte_for_byte(
        reported in prop::collection::vec(
            (any::<bool>(), prop::collection::vec(any::<u8>(), 0..6000)), 1..40),
    ) {
        let mut stage = Scene { mode: Mode::Full, ..Scene::default() }.set();
        let mut expected = Vec::new();
        for (client, text) in &reported {
            let from = if *client { Client } else { Agent };
            stage.pass(from, text);
            expected.push((from, from.other(), text.clone()));
        }
        prop_assert_eq!(frames(&stage.events()), expected);
    }
}
