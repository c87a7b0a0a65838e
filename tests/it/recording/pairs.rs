//! Which request a recorded answer belongs to: `tests/vectors/inspect/pairs.txt`.

use std::collections::HashMap;
use std::path::Path;

use acp_relay::conversation::Note;
use acp_relay::jsonrpc::{Frame, Id, Kind, Limits, Scanned, Side, scan};
use acp_relay::observe::{Event, Observer};
use acp_relay::recording::Exchanges;

use super::stage::{RecorderSetup, TestRecording};

use Side::{Agent, Client};

/// A message of a case.
struct Line {
    from: Side,
    /// What the relay does with it: a character of the file.
    outcome: char,
    received: String,
    sent: Option<String>,
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
    let (received, sent) = match rest.split_once(" => ") {
        Some((received, sent)) => (received, Some(sent.to_owned())),
        None => (rest, None),
    };
    Line {
        from,
        outcome: arrow.next().unwrap_or(' '),
        received: received.to_owned(),
        sent,
        answers,
    }
}

/// Gives one line to the recorder as the relay does.
fn observe(recording: &mut TestRecording, line: &Line) {
    let received = Frame::from(line.received.clone());
    match line.outcome {
        ' ' => recording.translate(line.from, &received, &[], &received.clone()),
        '~' => {
            let other = || line.received.replacen('{', "{\"other\":1,", 1);
            let sent = Frame::from(line.sent.clone().unwrap_or_else(other));
            recording.translate(line.from, &received, &[], &sent);
        }
        outcome => {
            recording
                .recorder
                .on_event(&Event::Received(line.from, &received));
            if let Scanned::Message(envelope) = scan(&received, &Limits::default()) {
                recording.recorder.on_event(&Event::Parsed(&envelope));
            }
            if outcome == 'x' {
                recording.recorder.on_event(&Event::Settled([0; 2]));
                return;
            }
            let (from, id) = (line.from, Id::Null.to_owned());
            recording
                .recorder
                .on_event(&Event::Note(&Note::ReusedId { from, id }));
            let mut waiting = [0; 2];
            waiting[from as usize] = 1;
            recording.recorder.on_event(&Event::Settled(waiting));
            let id = &line.received[..line.received.find(",\"method\"").unwrap()];
            let refusal = format!("{id},\"error\":{{\"code\":-32600,\"message\":\"in flight\"}}}}");
            let refusal = Frame::from(refusal);
            recording.recorder.on_event(&Event::Sent(from, &refusal));
            recording.recorder.on_event(&Event::Settled([0; 2]));
        }
    }
}

#[test]
fn each_recorded_answer_belongs_to_the_request_it_answers() {
    for (name, lines) in cases() {
        let mut recording = RecorderSetup::default().start();
        for line in &lines {
            observe(&mut recording, line);
        }
        let events = recording.events();
        // The line of each event: received messages in their order, sent ones by their source.
        let mut line_of = HashMap::new();
        let mut received = 0;
        for event in &events {
            let Some(message) = event.message() else {
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
            let Some(message) = event.message() else {
                continue;
            };
            let at = line_of[&event.n];
            let line = &lines[at - 1];
            let is_answer = message.kind.is_some_and(Kind::is_answer);
            // A refusal answers its own line.
            let expected = match line.outcome {
                '!' => Some(at),
                _ => line.answers,
            };
            let expected = expected.filter(|_| is_answer);
            let found = message.answers.map(|n| line_of[&n]);
            assert_eq!(found, expected, "{name}, line {at}: {}", line.received);
            if is_answer {
                let method = expected.map(|asked| {
                    let asked: serde_json::Value =
                        serde_json::from_str(&lines[asked - 1].received).unwrap();
                    asked["method"].as_str().unwrap().to_owned()
                });
                assert_eq!(message.method, method, "{name}, line {at}");
                // Readers use what was recorded.
                let exchange = known.exchange(event.n);
                let found = exchange.map(|exchange| line_of[&exchange.n]);
                assert_eq!(found, expected, "{name}, line {at}, read");
            }
        }
    }
}
