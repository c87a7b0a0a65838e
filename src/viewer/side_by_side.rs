//! Two recordings side by side, as `recording::canonical` aligns them.

use std::io;
use std::ops::Range;

use serde_json::{Value, json};
use similar::{Algorithm, DiffTag, capture_diff_slices};

use super::bounded::each_line;
use jsonrpc::{Kind, Side};
use recording::canonical::{Pair, Step, side_by_side, steps};
use recording::{RecordedEvent, Recording, View, patch};

/// Maximum bytes of each recording.
const MAX_READ: u64 = 64 << 20;

/// Maximum rows, and changes of one row.
const MAX_ROWS: usize = 10_000;
const MAX_CHANGES: usize = 20;

/// Maximum characters of a step's text, and of a changed value.
const MAX_TEXT: usize = 200;
const MAX_VALUE: usize = 4_000;

/// Characters of a changed value before its first difference.
const BEFORE: usize = 120;

/// The steps of two recordings as the page shows them: in `rows`, each with its turn and its step on
/// the `left`, on the `right` or on both, with `changes` if they differ there.
///
/// # Errors
/// One is too long or cannot be read.
pub(super) fn compare(left: &Recording, right: &Recording) -> io::Result<Value> {
    let (left_header, left) = load(left)?;
    let (right_header, right) = load(right)?;
    let pairs = side_by_side(&left, &right);
    let (mut turn, mut same, mut changed, mut only_left, mut only_right) = (0, 0, 0, 0, 0);
    let mut rows = Vec::new();
    for pair in &pairs {
        let sides = [
            pair.left.and_then(|at| left.get(at)),
            pair.right.and_then(|at| right.get(at)),
        ];
        turn += usize::from(sides.iter().flatten().any(|step| is_prompt(step)));
        *match sides {
            _ if pair.same => &mut same,
            [Some(_), Some(_)] => &mut changed,
            [Some(_), None] => &mut only_left,
            _ => &mut only_right,
        } += 1;
        if rows.len() < MAX_ROWS {
            rows.push(row(pair, turn, sides));
        }
    }
    Ok(json!({
        "left": left_header, "right": right_header,
        "same": same, "changed": changed, "only_left": only_left, "only_right": only_right,
        "omitted": pairs.len() - rows.len(),
        "rows": rows,
    }))
}

/// The header of a recording, and its steps as its client saw them.
fn load(recording: &Recording) -> io::Result<(Value, Vec<Step>)> {
    let mut events: Vec<RecordedEvent> = Vec::new();
    let whole = each_line(recording, MAX_READ, |entry| {
        events.extend(entry.parsed.event().cloned());
        true
    })?;
    if !whole {
        let why = format!(
            "{} is longer than {} MiB, which is too much for a page; `acp-relay inspect diff` compares \
             it",
            recording.name,
            MAX_READ >> 20
        );
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    let began = recording.header().map(|header| header.began);
    let shown = json!({"name": recording.name, "began": began});
    let mut steps = steps(View::At(Side::Client), &events);
    steps.iter_mut().for_each(Step::forget_counts);
    Ok((shown, steps))
}

fn row(pair: &Pair, turn: usize, sides: [Option<&Step>; 2]) -> Value {
    let [left, right] = sides.map(|step| step.map(shown));
    if let ([Some(a), Some(b)], false) = (sides, pair.same) {
        let tree = a.json();
        let changes = patch::changes(&tree, &patch::between(&tree, &b.json()));
        let more = changes.len().saturating_sub(MAX_CHANGES);
        let changes = changes.iter().take(MAX_CHANGES).map(|change| {
            let at = change.at.strip_prefix("/body").unwrap_or(&change.at);
            let parts = parts(change.before.as_ref(), change.after.as_ref());
            json!({"at": at, "parts": parts})
        });
        let changes: Value = changes.collect();
        return json!({
            "turn": turn, "left": left, "right": right, "same": false,
            "more": more, "changes": changes,
        });
    }
    json!({"turn": turn, "left": left, "right": right, "same": pair.same})
}

fn is_prompt(step: &Step) -> bool {
    step.from == Side::Client && step.kind == Some(Kind::Request) && step.method == "session/prompt"
}

/// A step in one line.
fn shown(step: &Step) -> Value {
    let pointers = [
        "/update/content/text",
        "/update/title",
        "/prompt/0/text",
        "/toolCall/title",
        "/stopReason",
        "/outcome/optionId",
        "/message",
        "/path",
        "/command",
        "/update/status",
    ];
    let mut texts = pointers
        .iter()
        .filter_map(|at| step.body.pointer(at)?.as_str());
    let text = texts.next().or(step.body.as_str()).unwrap_or_default();
    json!({
        "n": step.n,
        "from": step.from.name(),
        "kind": step.kind.map(Kind::name),
        "title": step.update().unwrap_or(&step.method),
        "text": text.chars().take(MAX_TEXT).collect::<String>(),
    })
}

/// Two values word by word, each word with its sign: ` `, `-` (only before) or `+` (only after).
/// Long values begin shortly before their first difference, and are cut.
fn parts(before: Option<&Value>, after: Option<&Value>) -> Vec<(char, String)> {
    let text = |value: Option<&Value>| match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    let (before, after) = (text(before), text(after));
    let alike = (before.chars().zip(after.chars())).take_while(|(a, b)| a == b);
    let skipped = alike.count().saturating_sub(BEFORE);
    let cut = |text: &str| -> String { text.chars().skip(skipped).take(MAX_VALUE).collect() };
    let (before, after) = (cut(&before), cut(&after));
    let (a, b) = (words(&before), words(&after));
    let mut parts: Vec<(char, String)> = Vec::new();
    if skipped > 0 {
        parts.push((' ', "…".to_owned()));
    }
    for op in capture_diff_slices(Algorithm::Myers, &a, &b) {
        let of =
            |words: &[&str], range: Range<usize>| words.get(range).unwrap_or_default().concat();
        let (old, new) = (of(&a, op.old_range()), of(&b, op.new_range()));
        match op.tag() {
            DiffTag::Equal => parts.push((' ', old)),
            _ => parts.extend([('-', old), ('+', new)]),
        }
    }
    parts.retain(|(_, text)| !text.is_empty());
    parts
}

/// The words of a text, and what is behind each.
fn words(text: &str) -> Vec<&str> {
    let is_other = |c: char| !c.is_alphanumeric();
    let parts = text.split_inclusive(is_other).flat_map(|part| {
        let (word, other) = part.split_at(part.trim_end_matches(is_other).len());
        [word, other]
    });
    parts.filter(|part| !part.is_empty()).collect()
}
