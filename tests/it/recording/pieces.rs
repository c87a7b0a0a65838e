//! Secrets that are sent in pieces, a few letters per message, however they are split; and prose
//! and code that are split in the same ways and must be kept.
//!
//! The texts are those of `tests/vectors/secrets`, and this project's own files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use acp_relay::jsonrpc::Kind;
use acp_relay::recording::redact::{Mode, RedactState, Redactor};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::vectors::PLACEHOLDERS;

/// So many successive characters of a secret may not be recorded: fewer do not show that it is one.
const BOUND: usize = 12;

/// The key in base64, without its maker's prefix: three characters of it are four here.
const PACKED: &str = "YWJjZGVmZ2gwMTIzNDU2Nzg5YWJjZGVmZ2g";

/// A text with secrets, and those.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    text: String,
    secrets: Vec<String>,
}

/// A kind of message with a text that is sent in pieces.
#[derive(Clone, Copy, Debug)]
enum Form {
    Chunk(&'static str, &'static str),
    /// Of a terminal, in `_meta`.
    Terminal,
    /// A chunk of the protocol before ACP.
    Old,
}

const FORMS: [Form; 5] = [
    Form::Chunk("agent_message_chunk", "s"),
    Form::Chunk("agent_thought_chunk", "s"),
    Form::Chunk("user_message_chunk", "t"),
    Form::Terminal,
    Form::Old,
];

impl Form {
    fn message(self, text: &str) -> Value {
        match self {
            Self::Chunk(kind, session) => json!({"jsonrpc": "2.0", "method": "session/update",
                "params": {"sessionId": session, "update":
                    {"sessionUpdate": kind, "content": {"type": "text", "text": text}}}}),
            Self::Terminal => json!({"jsonrpc": "2.0", "method": "session/update", "params":
                {"sessionId": "s", "update": {"sessionUpdate": "tool_call_update", "toolCallId":
                    "c", "_meta": {"terminal_output": {"terminal_id": "t", "data": text}}}}}),
            Self::Old => json!({"jsonrpc": "2.0", "method": "streamAssistantMessageChunk",
                "params": {"chunk": {"text": text}}}),
        }
    }

    fn text(self, message: &Value) -> String {
        let at = match self {
            Self::Chunk(..) => "/params/update/content/text",
            Self::Terminal => "/params/update/_meta/terminal_output/data",
            Self::Old => "/params/chunk/text",
        };
        message.pointer(at).unwrap().as_str().unwrap().to_owned()
    }
}

fn redactor() -> Redactor {
    Redactor::new(Mode::Default, Vec::new(), [1; 32])
}

/// One message as it is recorded.
fn recorded(redactor: &Redactor, flow: &mut RedactState, message: &Value) -> Value {
    let (bytes, kind) = (message.to_string(), Kind::Notification);
    match redactor.json_streamed(flow, bytes.as_bytes(), Some(kind), None) {
        Some(clean) => {
            assert!(!clean.places.is_empty() && clean.hits != Default::default());
            serde_json::from_slice(&clean.text).unwrap()
        }
        None => message.clone(),
    }
}

/// What is recorded of texts that are sent concurrently, each in its pieces.
fn recorded_texts(redactor: &Redactor, texts: &[(Form, Vec<&str>)]) -> Vec<String> {
    let (mut flow, mut all) = (RedactState::default(), vec![String::new(); texts.len()]);
    let longest = texts.iter().map(|(_, pieces)| pieces.len()).max();
    for at in 0..longest.unwrap_or(0) {
        for ((form, pieces), all) in texts.iter().zip(&mut all) {
            if let Some(piece) = pieces.get(at) {
                let message = recorded(redactor, &mut flow, &form.message(piece));
                *all += &form.text(&message);
            }
        }
        let usage = json!({"jsonrpc": "2.0", "method": "session/update", "params":
            {"sessionId": "s", "update": {"sessionUpdate": "usage_update", "used": at}}});
        assert_eq!(recorded(redactor, &mut flow, &usage), usage);
    }
    all
}

/// A text in pieces of `length` characters, the first one of `first`.
fn split_evenly(text: &str, first: usize, length: usize) -> Vec<&str> {
    let bounds = text.char_indices().map(|(at, _)| at).skip(first);
    let mut pieces = Vec::new();
    let mut from = 0;
    for at in bounds.step_by(length) {
        pieces.push(&text[from..at]);
        from = at;
    }
    pieces.push(&text[from..]);
    pieces
}

/// A text that is split at these fractions of its length.
fn split_at<'a>(text: &'a str, shares: &[f64]) -> Vec<&'a str> {
    let mut bounds: Vec<usize> = shares
        .iter()
        .map(|share| (text.len() as f64 * share) as usize)
        .map(|at| (0..=at).rfind(|at| text.is_char_boundary(*at)).unwrap_or(0))
        .collect();
    bounds.sort_unstable();
    bounds.insert(0, 0);
    bounds.push(text.len());
    let pieces = bounds.windows(2).map(|at| &text[at[0]..at[1]]);
    pieces.collect()
}

static CASES: LazyLock<Vec<Case>> = LazyLock::new(cases);

/// The vectors that are texts, or messages with a text.
fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/secrets");
    let (redactor, mut cases) = (redactor(), Vec::new());
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        for line in fs::read_to_string(&path).unwrap().lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            if row["kept"] == true {
                continue;
            }
            let filled = |text: &str| {
                let replaced = |text: String, (placeholder, value): &(&str, &str)| {
                    text.replace(placeholder, value)
                };
                PLACEHOLDERS.iter().fold(text.to_owned(), replaced)
            };
            let message = row["message"].as_str().map(filled);
            // Halves of surrogate pairs are no text that could be split.
            let message: Option<Value> = message.and_then(|text| serde_json::from_str(&text).ok());
            let text = match (&row["text"], &message) {
                (Value::String(text), _) => Some(filled(text)),
                (_, Some(message)) => ["/t", "/u", "/params/t"]
                    .iter()
                    .find_map(|at| Some(message.pointer(at)?.as_str()?.to_owned())),
                _ => None,
            };
            let Some(text) = text else { continue };
            let known = PLACEHOLDERS.iter().map(|(_, value)| *value).chain([PACKED]);
            let own = row["secret"].as_str();
            let own = own.filter(|own| !own.contains(&PACKED[..8]));
            let secrets = known.filter(|value| text.contains(value)).chain(own);
            let secrets = secrets.map(str::to_owned);
            let case = Case {
                name: format!("{}: {}", path.file_stem().unwrap().display(), row["name"]),
                secrets: secrets.collect(),
                text: format!("Here it is, as you like: {text}\n\nand that was it."),
            };
            // Secrets in JSON in a text are found by their places, which needs the whole text.
            let message = json!({"t": case.text}).to_string();
            let whole = redactor.json(message.as_bytes(), None);
            let whole = whole.map(|clean| String::from_utf8(clean.text).unwrap());
            if whole.is_some_and(|whole| remaining(&case, &whole).is_none()) {
                cases.push(case);
            }
        }
    }
    assert!(cases.len() > 80, "only {} vectors are texts", cases.len());
    cases
}

/// A part of a secret that was recorded and must not be.
fn remaining<'a>(case: &'a Case, recorded: &str) -> Option<&'a str> {
    let windows = case.secrets.iter().flat_map(|secret| {
        let bound = if secret == PACKED {
            BOUND / 3 * 4
        } else {
            BOUND
        };
        let length = bound.min(secret.len());
        (0..=secret.len() - length).map(move |at| &secret[at..at + length])
    });
    windows.into_iter().find(|window| recorded.contains(window))
}

#[test]
fn a_secret_in_even_pieces_is_found() {
    let redactor = redactor();
    let mut faults = Vec::new();
    for case in CASES.iter() {
        for length in [1, 2, 3, 4, 5, 7, 12, 17, 30] {
            // All offsets, but for long pieces.
            for first in (0..length).step_by(1 + length / 6) {
                let pieces = split_evenly(&case.text, first, length);
                let all = recorded_texts(&redactor, &[(FORMS[0], pieces)]);
                if let Some(window) = remaining(case, &all[0]) {
                    faults.push(format!(
                        "{} by {length}+{first}: {window} in {}",
                        case.name, all[0]
                    ));
                }
            }
        }
    }
    let count = faults.len();
    faults.truncate(40);
    assert!(faults.is_empty(), "{count}:\n{}\n", faults.join("\n"));
}

#[test]
fn a_secret_in_two_pieces_is_found_in_each_form() {
    let redactor = redactor();
    for case in CASES.iter() {
        let bounds = case.text.char_indices().map(|(at, _)| at);
        for at in bounds {
            let (one, two) = case.text.split_at(at);
            // Two of them concurrently, each form with each in turn.
            let forms = [at, at + 1 + at / FORMS.len() % (FORMS.len() - 1)];
            let texts = forms.map(|form| (FORMS[form % FORMS.len()], vec![one, two]));
            for all in recorded_texts(&redactor, &texts) {
                assert_eq!(remaining(case, &all), None, "{} at {at}: {all}", case.name);
            }
        }
    }
}

/// A secret at the end of a message does not continue in the next turn, nor in a message that
/// repeats its whole text so far.
#[test]
fn a_secret_ends_with_its_turn_and_with_its_text() {
    let (redactor, mut flow) = (redactor(), RedactState::default());
    let key = "sk-ant-api03-abcdefgh0123456789";
    for (method, session, continues) in [
        ("session/set_mode", "s", true),
        ("session/prompt", "other", true),
        ("session/prompt", "s", false),
    ] {
        let first = recorded(&redactor, &mut flow, &FORMS[0].message(key));
        assert!(!FORMS[0].text(&first).contains("0123"));
        flow.streams
            .answered(method.as_bytes(), Some(session.as_bytes()));
        let next = FORMS[0].message("Hello");
        let hello = recorded(&redactor, &mut flow, &next);
        assert_eq!(hello != next, continues, "{method} {session} {hello}");
    }
    let update = |text: &str| {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update":
            {"sessionUpdate": "tool_call_update", "toolCallId": "c", "content":
                [{"type": "content", "content": {"type": "text", "text": text}}]}}})
    };
    for text in [
        "$ cat it",
        "$ cat it\nsk-ant-",
        "$ cat it\nsk-ant-api03-abcdefgh01",
    ] {
        let message = recorded(&redactor, &mut flow, &update(text)).to_string();
        assert!(
            message.contains("$ cat it") && !message.contains("efgh01"),
            "{message}"
        );
    }
    let message = recorded(
        &redactor,
        &mut flow,
        &update("$ cat it\nsk-ant-api03-abcdefgh01234\n$"),
    );
    assert!(message.to_string().contains("$ cat it\\n"), "{message}");
}

/// Paragraphs of this project's own prose and code in which nothing is found.
fn paragraphs() -> Vec<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let files = [
        "README.md",
        "CHANGELOG.md",
        "src/ARCHITECTURE.md",
        "tests/README.md",
    ];
    let mut texts: Vec<String> = files
        .iter()
        .map(|file| fs::read_to_string(root.join(file)).unwrap())
        .collect();
    for module in [
        "conversation",
        "jsonrpc",
        "proxy",
        "recording",
        "cli",
        "auth",
    ] {
        for file in fs::read_dir(root.join("src").join(module)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|end| end == "rs") {
                texts.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    let redactor = redactor();
    // After that header a value counts from its first letter, before its length is known.
    let kept =
        |text: &&str| redactor.text(text.as_bytes()).is_none() && !text.contains("X-Api-Key: ");
    let all = texts.iter().flat_map(|text| text.split_inclusive("\n\n"));
    // Every fourth paragraph is enough.
    let some = all.filter(kept).step_by(4);
    some.map(str::to_owned).collect()
}

#[test]
fn prose_and_code_in_even_pieces_are_kept() {
    let redactor = redactor();
    let (mut faults, mut count) = (Vec::new(), 0);
    let paragraphs = paragraphs();
    assert!(paragraphs.len() > 300, "{}", paragraphs.len());
    for (at, text) in paragraphs.iter().enumerate() {
        for length in [1 + at % 4, 5 + at % 20] {
            count += 1;
            let pieces = split_evenly(text, at % length, length);
            let all = recorded_texts(&redactor, &[(FORMS[0], pieces)]);
            if all[0] != *text {
                faults.push(format!("by {length}: {}", all[0]));
            }
        }
    }
    let found = faults.len();
    faults.truncate(40);
    assert!(
        faults.is_empty(),
        "{found} of {count}:\n{}\n",
        faults.join("\n\n")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn a_secret_in_any_pieces_is_found(
        which in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
        shares in prop::collection::vec(0.0..1.0, 0..60),
        others in prop::collection::vec(0.0..1.0, 0..60),
        forms in prop::sample::subsequence(&FORMS[..], 2),
    ) {
        let redactor = redactor();
        let [one, two] = [which.get(&CASES[..]), other.get(&CASES[..])];
        let texts = [
            (forms[0], split_at(&one.text, &shares)),
            (forms[1], split_at(&two.text, &others)),
        ];
        let all = recorded_texts(&redactor, &texts);
        prop_assert_eq!(remaining(one, &all[0]), None, "{}: {}", one.name, all[0]);
        prop_assert_eq!(remaining(two, &all[1]), None, "{}: {}", two.name, all[1]);
    }
}

/// Prose and code that mention how a key begins.
#[test]
fn prose_about_keys_is_kept() {
    let redactor = redactor();
    for text in [
        r#"const PEM: &[u8] = b"-----BEGIN"; and so on, for long."#,
        "It looks for `-----BEGIN` and takes what follows, to the end.",
        "It looks for -----BEGIN and takes what follows, to the end.",
        "Put it behind `-----BEGIN PRIVATE KEY-----`, as ever.",
    ] {
        assert_eq!(redactor.text(text.as_bytes()), None, "{text}");
        for length in 1..20 {
            let pieces = split_evenly(text, 0, length);
            let all = recorded_texts(&redactor, &[(FORMS[0], pieces)]);
            // The piece in which the label ends is written before the next one is known.
            let stays = match text.contains("PRIVATE") {
                true => all[0].ends_with("`, as ever."),
                false => all[0] == text,
            };
            assert!(stays, "by {length}: {}", all[0]);
        }
    }
}

/// One message with many texts leaves the state of other texts alone.
#[test]
fn a_secret_in_pieces_is_found_across_a_message_of_many_texts() {
    let (redactor, mut flow) = (redactor(), RedactState::default());
    let many: Vec<Value> = (0..1000).map(|_| json!({"text": "a"})).collect();
    let many = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s",
        "update": {"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": many}}});
    let [begin, end] = ["so sk-ant-api03-abcd", "efgh0123456789 it is"];
    for message in [FORMS[0].message(begin), many] {
        recorded(&redactor, &mut flow, &message);
    }
    let next = recorded(&redactor, &mut flow, &FORMS[0].message(end));
    assert!(!next.to_string().contains("0123"), "{next}");
}
