//! Lines with more than a message: what of them is delivered, at once and later.
//!
//! Each line of a file in `tests/vectors/dirty` is a case: requests that are `open`, the `lines` of
//! the agent (or of what `from` names) as bytes from U+0000 to U+00FF, what the other side gets
//! `now` and `later`, the notes, and how many messages go `back`.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_relay::conversation::{Conversation, DialectOptions, LinkTraits, Outbox};
use acp_relay::jsonrpc::framing::{Decoded, Decoder, Framing};
use acp_relay::jsonrpc::{Limits, Side};
use bytes::BytesMut;
use proptest::collection::vec;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

/// Longer than anything waits.
const LATER: Duration = Duration::from_secs(11);

#[derive(Debug, Deserialize)]
struct Case {
    about: String,
    #[serde(default)]
    from: Option<String>,
    /// The client is one of a listener.
    #[serde(default)]
    listener: bool,
    #[serde(default)]
    open: Vec<(Value, String)>,
    lines: Vec<String>,
    now: Vec<Value>,
    later: Vec<Value>,
    notes: Vec<String>,
    #[serde(default)]
    back: usize,
}

struct Stage {
    core: Conversation,
    out: Outbox,
    decoders: [Decoder; 2],
    now: Instant,
}

impl Stage {
    fn new(limits: Limits, client_on_stdio: bool) -> Self {
        let traits = LinkTraits {
            client_on_stdio,
            agent_is_child: true,
            ..LinkTraits::default()
        };
        let decoder = || Decoder::new(Some(Framing::Ndjson), usize::MAX >> 1, &limits);
        let mut stage = Self {
            decoders: [decoder(), decoder()],
            out: Outbox::new(&limits),
            core: Conversation::new(
                Arc::new(limits),
                traits,
                DialectOptions::canonical(),
                Instant::now(),
            ),
            now: Instant::now(),
        };
        for side in [Side::Client, Side::Agent] {
            stage.receive(side, br#"{"jsonrpc":"2.0","method":"_first"}"#);
            stage.sent(side.other());
        }
        stage
    }

    fn ask(&mut self, from: Side, id: &Value, method: &str) {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method}).to_string();
        self.receive(from, request.as_bytes());
        self.sent(from.other());
    }

    fn receive(&mut self, from: Side, line: &[u8]) {
        let mut bytes = BytesMut::from(line);
        bytes.extend_from_slice(b"\n");
        let decoder = &mut self.decoders[from as usize];
        while let Some(Decoded::Frame(frame)) = decoder.decode(&mut bytes).unwrap() {
            self.core.handle_frame(from, frame, self.now, &mut self.out);
        }
    }

    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.core.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.core.handle_timeout(self.now, &mut self.out);
        }
        self.now = end;
    }

    fn sent(&mut self, to: Side) -> Vec<String> {
        let frames = std::iter::from_fn(|| self.out.pop(to));
        let bytes = frames.map(|frame| frame.as_bytes().to_vec());
        bytes
            .map(|bytes| bytes.into_iter().map(char::from).collect())
            .collect()
    }

    fn notes(&mut self) -> Vec<&'static str> {
        let notes = std::iter::from_fn(|| self.out.pop_note());
        notes.map(|note| note.name()).collect()
    }
}

/// The bytes that stand in the vectors as characters.
fn bytes(text: &str) -> Vec<u8> {
    text.chars().map(|one| u8::try_from(one).unwrap()).collect()
}

/// An error stands in the vectors by its id and its code.
fn is_as(expected: &Value, got: &str) -> bool {
    expected.as_str().map_or_else(
        || {
            let got: Value = serde_json::from_str(got).unwrap();
            got["id"] == expected["id"] && got["error"]["code"] == expected["error"]
        },
        |expected| expected == got,
    )
}

fn differs(expected: &[Value], got: &[String]) -> bool {
    let are_equal = expected
        .iter()
        .zip(got)
        .all(|(expected, got)| is_as(expected, got));
    expected.len() != got.len() || !are_equal
}

#[test]
fn messages_in_dirty_lines_are_delivered_and_the_rest_is_output() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/dirty");
    let (mut count, mut faults) = (0, String::new());
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for line in text.lines() {
            let case: Case = serde_json::from_str(line).unwrap();
            let from = match case.from.as_deref() {
                Some("client") => Side::Client,
                _ => Side::Agent,
            };
            let mut stage = Stage::new(Limits::default(), !case.listener);
            for (id, method) in &case.open {
                stage.ask(from.other(), id, method);
            }
            for line in &case.lines {
                stage.receive(from, &bytes(line));
            }
            let now = stage.sent(from.other());
            stage.wait(LATER);
            let later = stage.sent(from.other());
            let back = stage.sent(from).len();
            let notes = stage.notes();
            let is_wrong = differs(&case.now, &now) || differs(&case.later, &later);
            if is_wrong || back != case.back || notes != case.notes {
                writeln!(
                    faults,
                    "{}: {now:?}, {later:?}, {back}, {notes:?}",
                    case.about
                )
                .unwrap();
            }
            count += 1;
        }
    }
    assert!(faults.is_empty(), "{faults}");
    assert!(count > 80, "{count} cases");
}

#[test]
fn a_thousand_lines_and_64_mib_that_are_never_complete_are_bounded() {
    let limits = || Limits {
        invalid_messages: usize::MAX,
        ..Limits::default()
    };
    let mut stage = Stage::new(limits(), true);
    stage.ask(Side::Client, &json!(0), "initialize");
    stage.receive(Side::Agent, b"{");
    for _ in 0..1500 {
        stage.receive(Side::Agent, b"\"a\": [1, 2],");
    }
    assert_eq!(stage.notes().len(), 1501);
    // The rest of 64 MiB is a line of its own.
    stage.receive(Side::Agent, b"{\"a\": [");
    let part = format!("\"{}\",", "x".repeat(4 << 20));
    for _ in 0..17 {
        stage.receive(Side::Agent, part.as_bytes());
    }
    assert_eq!(stage.notes().len(), 18);
    assert_eq!(stage.sent(Side::Client), Vec::<String>::new());
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#;
    stage.receive(Side::Agent, answer.as_bytes());
    assert_eq!(stage.sent(Side::Client), [answer]);
}

#[test]
fn an_answer_beside_text_beyond_those_that_may_wait_becomes_an_error() {
    let limits = Limits {
        invalid_messages: usize::MAX,
        ..Limits::default()
    };
    let mut stage = Stage::new(limits, true);
    for id in 0..67 {
        stage.ask(Side::Client, &json!(id), "session/prompt");
    }
    let answer =
        |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"stopReason":"end_turn"}}}}"#);
    let beside_text = |id| format!("{} (done)", answer(id));
    for id in 0..64 {
        stage.receive(Side::Agent, beside_text(id).as_bytes());
    }
    assert!(stage.sent(Side::Client).is_empty());
    let behind_text = format!("done: {}", answer(66));
    for (id, line) in [(64, beside_text(64)), (66, behind_text)] {
        stage.receive(Side::Agent, line.as_bytes());
        let sent = stage.sent(Side::Client);
        let error = json!({"id": id, "error": -32700});
        assert!(sent.len() == 1 && is_as(&error, &sent[0]), "{sent:?}");
    }
    // One whose answer has come in a line of its own takes no room.
    stage.receive(Side::Agent, answer(0).as_bytes());
    assert_eq!(stage.sent(Side::Client), [answer(0)]);
    stage.receive(Side::Agent, beside_text(65).as_bytes());
    assert!(stage.sent(Side::Client).is_empty());
    stage.wait(LATER);
    assert_eq!(stage.sent(Side::Client).len(), 64);
}

#[test]
fn a_line_of_many_objects_is_bounded() {
    let mut stage = Stage::new(Limits::default(), true);
    stage.receive(Side::Agent, &br#"{"method":"_a"}"#.repeat(100_000));
    assert!(stage.sent(Side::Client).len() <= 1000);
}

/// A part of a line.
#[derive(Clone, Debug)]
enum Part {
    Noise(usize),
    Text(usize),
    Notification(u16),
    /// To one of the open requests.
    Answer(u8, u16),
    Request(u16),
}

const NOISE: [&str; 8] = [
    "\u{1b}[32m",
    "\u{1b}]0;{\u{7}",
    "\0",
    "\u{c}",
    "\u{feff}",
    "\u{1b}(B",
    "\u{9b}1m",
    "\u{7}",
];
const TEXT: [&str; 6] = ["log: ", "é”", "[", "}", ": \"", "\\"];

impl Part {
    fn text(&self) -> String {
        match self {
            Self::Noise(at) => NOISE[*at].to_owned(),
            Self::Text(at) => TEXT[*at].to_owned(),
            Self::Notification(n) => {
                format!(r#"{{"jsonrpc":"2.0","method":"_n","params":{{"n":{n}}}}}"#)
            }
            Self::Answer(id, n) => {
                format!(r#"{{"id":{id},"result":{{"stopReason":"end_turn","n":{n}}}}}"#)
            }
            Self::Request(n) => format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"_r"}}"#),
        }
    }
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        3 => (0..NOISE.len()).prop_map(Part::Noise),
        1 => (0..TEXT.len()).prop_map(Part::Text),
        2 => any::<u16>().prop_map(Part::Notification),
        2 => (0..6_u8, any::<u16>()).prop_map(|(id, n)| Part::Answer(id, n)),
        1 => any::<u16>().prop_map(Part::Request),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn dirty_streams_lose_no_message_and_deliver_none_twice(lines in vec(vec(part(), 1..6), 1..12)) {
        let limits = Limits {
            invalid_messages: usize::MAX,
            ..Limits::default()
        };
        let mut stage = Stage::new(limits, true);
        for id in 0..6 {
            stage.ask(Side::Client, &json!(id), "session/prompt");
        }
        let mut answers = [0; 6];
        let (mut owed, mut asked) = ([true; 6], std::collections::HashSet::new());
        for line in &lines {
            let text: String = line.iter().map(Part::text).collect();
            stage.receive(Side::Agent, text.as_bytes());
            let sent = stage.sent(Side::Client);
            let is_clean = !line.iter().any(|part| matches!(part, Part::Text(_)));
            let mut expected = Vec::new();
            for part in line.iter().filter(|_| is_clean) {
                match part {
                    Part::Noise(_) | Part::Text(_) => continue,
                    Part::Answer(id, _) if !std::mem::take(&mut owed[usize::from(*id)]) => continue,
                    Part::Answer(id, _) => answers[usize::from(*id)] += 1,
                    Part::Request(n) if !asked.insert(*n) => continue,
                    Part::Request(_) | Part::Notification(_) => {}
                }
                expected.push(part.text());
            }
            prop_assert_eq!(sent, expected);
        }
        stage.wait(LATER);
        for late in stage.sent(Side::Client) {
            let late: Value = serde_json::from_str(&late).unwrap();
            answers[late["id"].as_u64().unwrap() as usize] += 1;
        }
        prop_assert!(answers.iter().all(|count| *count <= 1), "{:?}", answers);
    }
}
