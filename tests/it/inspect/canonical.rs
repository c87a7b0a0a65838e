//! The canonical form: which differences count between two conversations, and which do not.

use acp_relay::recording::canonical::{Difference, Step, compare, side_by_side, steps};
use acp_relay::recording::{RecordedEvent, Recording, View};

use super::{CAPTURES, answer, capture, import, recording};

fn read(file: &str, view: View) -> Vec<Step> {
    let recording = Recording::of(file.as_ref()).unwrap();
    let events: Vec<RecordedEvent> = recording.events().collect::<std::io::Result<_>>().unwrap();
    steps(view, &events)
}

/// Compares two conversations of captures' lines (without their `jsonrpc`).
fn differ(left: &[&str], right: &[&str]) -> Vec<Difference> {
    let (left, right) = canonical(left, right);
    compare(&left, &right)
}

fn canonical(left: &[&str], right: &[&str]) -> (Vec<Step>, Vec<Step>) {
    let folder = tempfile::tempdir().unwrap();
    let of = |name, lines: &[&str]| {
        let line = |(at, line): (usize, &&str)| {
            let (dir, message) = line.split_once(' ').unwrap();
            let dir = if dir == ">" { "c2a" } else { "a2c" };
            format!("{{\"dir\":\"{dir}\",\"ts\":{at},\"msg\":{message}}}\n")
        };
        let text: String = lines.iter().enumerate().map(line).collect();
        read(&recording(folder.path(), name, &text), View::Received)
    };
    (of("left", left), of("right", right))
}

fn chunk(session: &str, text: &str) -> String {
    format!(
        r#"< {{"method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
    )
}

const ASK: &str = r#"> {"id":1,"method":"session/new","params":{"cwd":"/tmp/one-folder"}}"#;
const ASK_ELSEWHERE: &str = r#"> {"id":"x","method":"session/new","params":{"cwd":"/tmp/other"}}"#;
const ANSWER: &str = r#"< {"id":1,"result":{"sessionId":"aaaa-aaaa","at":"/tmp/one-folder/x"}}"#;
const ANSWER_ELSEWHERE: &str = r#"< {"id":"x","result":{"at":"/tmp/other/x","sessionId":"b"}}"#;
const USAGE: &str = r#"< {"method":"session/update","params":{"sessionId":"b","update":{"sessionUpdate":"usage_update","used":1}}}"#;

#[test]
fn chunks_of_different_types_are_not_joined() {
    let (one, two) = (chunk("a", "Hel"), chunk("a", "lo"));
    let both = [one.as_str(), two.as_str()];
    for other in [
        two.replace(r#""type":"text""#, r#""type":"audio""#),
        two.replace(
            r#""type":"text""#,
            r#""type":"text","annotations":{"priority":1}"#,
        ),
    ] {
        assert_eq!(differ(&both, &[&one, &other]).len(), 2, "{other}");
    }
    let with_meta = two.replace(r#""type":"text""#, r#""type":"text","_meta":{"seq":2}"#);
    assert_eq!(differ(&both, &[&one, &with_meta]), []);
}

/// Steps of the second conversation alone stand where they were there, of either side.
#[test]
fn side_by_side_has_every_step_once_and_in_order() {
    let [a, b, c, d] = ["_a", "_b", "_c", "_d"].map(|name| format!(r#"{{"method":"{name}"}}"#));
    let [a, b, c, d] = [
        format!("> {a}"),
        format!("< {b}"),
        format!("> {c}"),
        format!("< {d}"),
    ];
    let (left, right) = canonical(&[&a, &b, &a, &d], &[&c, &a, &b, &c, &a, &b]);
    let pairs = side_by_side(&left, &right);
    let pairs: Vec<_> = (pairs.iter())
        .map(|pair| (pair.left, pair.right, pair.same))
        .collect();
    assert_eq!(
        pairs,
        [
            (None, Some(0), false),
            (Some(0), Some(1), true),
            (Some(1), Some(2), true),
            (None, Some(3), false),
            (Some(2), Some(4), true),
            (None, Some(5), false),
            (Some(3), None, false),
        ]
    );
}

#[test]
fn ids_folders_chunks_and_races_do_not_count() {
    let cases: [(Vec<String>, Vec<String>); 4] = [
        (
            vec![ASK.into(), ANSWER.into()],
            vec![ASK_ELSEWHERE.into(), ANSWER_ELSEWHERE.into()],
        ),
        (
            vec![chunk("a", "Hello, "), chunk("a", "world")],
            vec![chunk("b", "Hel"), chunk("b", "lo, wor"), chunk("b", "ld")],
        ),
        // A split emoji, and an update between its halves.
        (
            vec![USAGE.into(), chunk("b", "a😀b")],
            vec![chunk("b", r"a\ud83d"), USAGE.into(), chunk("b", r"\ude00b")],
        ),
        // Simultaneous messages of both sides have no order.
        (
            vec![r#"> {"method":"_x"}"#.into(), r#"< {"method":"_y"}"#.into()],
            vec![r#"< {"method":"_y"}"#.into(), r#"> {"method":"_x"}"#.into()],
        ),
    ];
    for (left, right) in cases {
        let text = |lines: &[String]| lines.to_vec();
        let (left, right) = (text(&left), text(&right));
        let refs = |lines: &'static [String]| lines.iter().map(String::as_str).collect::<Vec<_>>();
        let (left, right): (&'static [_], &'static [_]) = (left.leak(), right.leak());
        assert_eq!(differ(&refs(left), &refs(right)), [], "{left:?} {right:?}");
    }
}

#[test]
fn different_messages_are_differences() {
    let x = r#"> {"method":"_x"}"#;
    let y = r#"> {"method":"_y"}"#;
    let z = r#"> {"method":"_x","params":{"a":1}}"#;
    assert_eq!(differ(&[x, y], &[x]), [Difference::Missing(1)]);
    assert_eq!(differ(&[y], &[x, y]), [Difference::Extra(0)]);
    assert!(matches!(
        differ(&[y, x], &[y, z])[..],
        [Difference::Changed {
            left: 1,
            right: 1,
            ..
        }]
    ));
    assert_eq!(differ(&[x, y], &[y, x]).len(), 2);
    // The session of an answer, and which of two requests it answers.
    let ask = |id| format!(r#"> {{"id":{id},"method":"_ask"}}"#);
    let result = |id| format!(r#"< {{"id":{id},"result":{{}}}}"#);
    let (a, b, ra, rb) = (ask(1), ask(2), result(1), result(2));
    assert_eq!(differ(&[&a, &b, &ra, &rb], &[&a, &b, &ra, &rb]), []);
    assert!(!differ(&[&a, &b, &ra], &[&a, &b, &rb]).is_empty());
}

#[test]
fn real_captures_equal_only_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let files = CAPTURES.map(|name| import(folder.path(), &capture(name), &name.replace('.', "-")));
    let all: Vec<_> = files
        .iter()
        .map(|file| read(file, View::Received))
        .collect();
    for (at, left) in all.iter().enumerate() {
        for (other, right) in all.iter().enumerate() {
            assert_eq!(compare(left, right).is_empty(), at == other);
        }
    }
    // Messages forwarded unchanged are the same in each view.
    for (file, received) in files.iter().zip(&all) {
        for view in ["client", "agent"] {
            let reported = answer(&["export", file, "--to", "ndjson", "--at", view], 0);
            let all: u64 = received.iter().map(|step| step.frames).sum();
            assert_eq!(reported.lines().count() as u64, all);
        }
    }
}
