//! Which request an answer is recorded to be for: `tests/vectors/inspect/pairs.txt`.

use std::collections::HashMap;
use std::path::Path;

use acp_relay::conversation::Note;
use acp_relay::jsonrpc::{Frame, IdBuf, Kind, Limits, Scanned, Side, scan};
use acp_relay::observe::{Event, Observer};
use acp_relay::recording::{EventKind, Exchanges, Message, RecordedEvent};

use super::stage::{Scene, Stage};

use Side::{Agent, Client};

/// A message of a case.
struct Line {
    from: Side,
    fate: char,
    received: String,
    reported: Option<String>,
    /// The line that it answers.
    answers: Option<usize>,
}

fn cases() -> Vec<(String, Vec<Line>)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/inspect/pairs.txt");
    let text = std::fs::read_to_string(file).unwrap();
    let cases = text.split("\n## ").skip(1).map(|case| {
        let (name, lines) = case.split_once('\n').unwrap();
        let lines = lines.lines().filter(|line| !line.is_empty());
        (name.to_owned(), lines.map(line).collect())
    });
    cases.collect()
}

fn line(text: &str) -> Line {
    let (arrow, rest) = text.split_once(' ').unwrap();
    let mut arrow = arrow.chars();
    let from = match arrow.next() {
        Some('>') => Client,
        Some('<') => Agent,
        other => panic!("{other:?} is no side"),
    };
    let (rest, answers) = match rest.rsplit_once(" = ") {
        Some((rest, line)) => (rest, line.parse().ok()),
        None => (rest, None),
    };
    let (received, reported) = match rest.split_once(" => ") {
        Some((received, reported)) => (received, Some(reported.to_owned())),
        None => (rest, None),
    };
    Line {
        from,
        fate: arrow.next().unwrap_or(' '),
        received: received.to_owned(),
        reported,
        answers,
    }
}

/// Has the recorder see one line as the relay would show it.
fn show(stage: &mut Stage, line: &Line) {
    let received = Frame::from(line.received.clone());
    match line.fate {
        ' ' => stage.lead(line.from, &received, &[], &received.clone()),
        '~' => {
            let other = || line.received.replacen('{', "{\"other\":1,", 1);
            let reported = Frame::from(line.reported.clone().unwrap_or_else(other));
            stage.lead(line.from, &received, &[], &reported);
        }
        fate => {
            stage
                .recorder
                .on_event(&Event::Received(line.from, &received));
            if let Scanned::Message(envelope) = scan(&received, &Limits::default()) {
                stage.recorder.on_event(&Event::Parsed(&envelope));
            }
            if fate == 'x' {
                stage.recorder.on_event(&Event::Settled([0; 2]));
                return;
            }
            let (from, id) = (line.from, IdBuf::Null);
            stage
                .recorder
                .on_event(&Event::Note(&Note::ReusedId { from, id }));
            let mut waiting = [0; 2];
            waiting[from as usize] = 1;
            stage.recorder.on_event(&Event::Settled(waiting));
            let id = &line.received[..line.received.find(",\"method\"").unwrap()];
            let refusal = format!("{id},\"error\":{{\"code\":-32600,\"message\":\"in flight\"}}}}");
            let refusal = Frame::from(refusal);
            stage.recorder.on_event(&Event::Sent(from, &refusal));
            stage.recorder.on_event(&Event::Settled([0; 2]));
        }
    }
}

fn message(event: &RecordedEvent) -> Option<&Message> {
    match &event.kind {
        EventKind::Message(message) => Some(message),
        _ => None,
    }
}

#[test]
fn answers_are_for_what_they_answer() {
    for (name, lines) in cases() {
        let mut stage = Scene::default().set();
        for line in &lines {
            show(&mut stage, line);
        }
        let events = stage.events();
        // The line of each event: heard in their order, and what was said because of them.
        let mut line_of = HashMap::new();
        let mut received = 0;
        for event in &events {
            let Some(message) = message(event) else {
                continue;
            };
            let line = match message.source {
                Some(of) => line_of[&of],
                None => {
                    received += 1;
                    received
                }
            };
            line_of.insert(event.n, line);
        }
        assert_eq!(received, lines.len(), "{name}");
        let mut known = Exchanges::default();
        for event in &events {
            known.add(event);
            let Some(message) = message(event) else {
                continue;
            };
            let at = line_of[&event.n];
            let line = &lines[at - 1];
            let is_answer = message.kind.is_some_and(Kind::is_answer);
            // A refusal answers its own line.
            let wanted = match line.fate {
                '!' => Some(at),
                _ => line.answers,
            };
            let wanted = wanted.filter(|_| is_answer);
            let found = message.answers.map(|n| line_of[&n]);
            assert_eq!(found, wanted, "{name}, line {at}: {}", line.received);
            if is_answer {
                let method = wanted.map(|asked| {
                    let asked: serde_json::Value =
                        serde_json::from_str(&lines[asked - 1].received).unwrap();
                    asked["method"].as_str().unwrap().to_owned()
                });
                assert_eq!(message.method, method, "{name}, line {at}");
                // Readers go by what was recorded.
                let exchange = known.exchange(event.n);
                let found = exchange.map(|exchange| line_of[&exchange.n]);
                assert_eq!(found, wanted, "{name}, line {at}, read");
            }
        }
    }
}
