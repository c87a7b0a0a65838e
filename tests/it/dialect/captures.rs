//! Captures of real agents under `auto`.
//!
//! Each message is read on the side it came from, as `auto` does it: with tolerant reading, until
//! the dialect of the side is recognised. Messages that `check` accepts keep their bytes; deviating
//! ones come out canonical. Exceptions are listed with the reason in
//! `vectors/detect/captures.jsonl`, and each listed exception occurs.

use std::collections::BTreeSet;

use acp_relay::acp::{CheckedMessage, Checker, Violation};
use acp_relay::conversation::{DialectChoice, DialectOptions};
use acp_relay::jsonrpc::{Frame, Kind, Side};
use serde_json::Value;

use super::detect::{transcript, vectors};
use super::line::scanned;

/// The canonical form of a message of one side, which the other side then receives.
fn receive(
    auto: &mut DialectOptions,
    from: Side,
    frame: &Frame,
    asked: Option<&str>,
) -> Vec<Frame> {
    let at = scanned(frame);
    auto.detect(from, frame, &at, asked.map(str::as_bytes));
    let read = auto.read(from, frame, &at).frames(frame);
    for canonical in &read {
        auto.write(from.other(), canonical, &scanned(canonical));
    }
    read
}

/// A place with `*` for array indexes.
fn plain(deviation: &Violation) -> String {
    let names = deviation.pointer.split('/').map(|name| {
        let number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        if number { "*" } else { name }
    });
    names.collect::<Vec<_>>().join("/")
}

fn method(verdict: &CheckedMessage) -> &str {
    verdict.method.as_deref().unwrap_or("-")
}

#[test]
fn canonical_messages_keep_their_bytes_and_others_become_canonical() {
    let listed = vectors("detect", "captures.jsonl");
    let mut unused: BTreeSet<usize> = (0..listed.len()).collect();
    let mut excepted = |file: &str, what: &str, method: &str, place: &str| {
        let found = listed.iter().position(|line| {
            line["transcript"] == file
                && line["what"] == what
                && line["method"] == method
                && line["place"] == place
        });
        found.inspect(|at| {
            unused.remove(at);
        })
    };
    let mut wrong = Vec::new();
    let mut counts = [0_usize; 3];
    let files: BTreeSet<&str> = listed
        .iter()
        .map(|line| line["transcript"].as_str().unwrap())
        .collect();
    for file in files {
        let auto = DialectChoice::Auto;
        let mut auto = DialectOptions::new(super::library(), &auto, &auto).unwrap();
        let mut before = Checker::new(false);
        let mut after = Checker::new(false);
        for (number, (from, message)) in transcript(file).into_iter().enumerate() {
            let frame = Frame::from(message.to_string());
            let verdict = before.check(Some(from), &frame);
            let answers = verdict.kind.is_some_and(Kind::is_answer);
            let asked = verdict.method.as_deref().filter(|_| answers);
            let read = receive(&mut auto, from, &frame, asked);
            let verdicts: Vec<CheckedMessage> = read
                .iter()
                .map(|frame| after.check(Some(from), frame))
                .collect();
            let method = method(&verdict);
            let place = format!("{file}, message {}: {method}", number + 1);
            if verdict.violations.is_empty() {
                counts[0] += 1;
                if read.len() == 1 && read[0].as_bytes() == frame.as_bytes() {
                    continue;
                }
                // A message that is preceded by another is the same by value.
                let last: Option<Value> = read
                    .last()
                    .map(|last| serde_json::from_slice(last.as_bytes()).unwrap());
                let what = if read.len() > 1 && last.as_ref() == Some(&message) {
                    "preceded"
                } else {
                    "turned"
                };
                if excepted(file, what, method, "").is_none() {
                    wrong.push(format!("{place} was canonical and became {read:?}"));
                }
            } else {
                counts[1] += 1;
            }
            let left = verdicts.iter().flat_map(|verdict| &verdict.violations);
            for deviation in left {
                if excepted(file, "kept", method, &plain(deviation)).is_none() {
                    wrong.push(format!(
                        "{place} keeps {} {}",
                        deviation.kind, deviation.pointer
                    ));
                }
                counts[2] += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(counts[0] > 700 && counts[1] > 30, "{counts:?}");
    let unused: Vec<&Value> = unused.into_iter().map(|at| &listed[at]).collect();
    assert!(
        unused.is_empty(),
        "these exceptions do not occur: {unused:?}"
    );
}
