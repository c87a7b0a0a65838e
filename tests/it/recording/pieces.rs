//! Secrets that are said in pieces, a few letters a message, however they are cut; and prose and
//! code that is cut in the same ways, of which nothing may be lost.
//!
//! The texts are those of `tests/vectors/secrets`, and this project's own files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use acp_relay::jsonrpc::Kind;
use acp_relay::recording::redact::{Mode, RedactState, Redactor};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::vectors::MEANT;

/// So many successive characters of a secret may not stand: before there are as many, nobody knows
/// that it is one.
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

/// What tells one text from another.
#[derive(Clone, Copy, Debug)]
enum Form {
    Chunk(&'static str, &'static str),
    /// Of a terminal, in `_meta`.
    Terminal,
    /// As it was before ACP was.
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

/// What is recorded of texts that are said side by side, each in its pieces.
fn reported(redactor: &Redactor, texts: &[(Form, Vec<&str>)]) -> Vec<String> {
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

/// A text in pieces of so many characters, the first one shorter.
fn even(text: &str, first: usize, length: usize) -> Vec<&str> {
    let borders = text.char_indices().map(|(at, _)| at).skip(first);
    let mut pieces = Vec::new();
    let mut from = 0;
    for at in borders.step_by(length) {
        pieces.push(&text[from..at]);
        from = at;
    }
    pieces.push(&text[from..]);
    pieces
}

/// A text that is cut where those shares of it end.
fn cut<'a>(text: &'a str, shares: &[f64]) -> Vec<&'a str> {
    let mut borders: Vec<usize> = shares
        .iter()
        .map(|share| (text.len() as f64 * share) as usize)
        .map(|at| (0..=at).rfind(|at| text.is_char_boundary(*at)).unwrap_or(0))
        .collect();
    borders.sort_unstable();
    borders.insert(0, 0);
    borders.push(text.len());
    let pieces = borders.windows(2).map(|at| &text[at[0]..at[1]]);
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
            let meant = |text: &str| {
                let whole = |text: String, (word, meant): &(&str, &str)| text.replace(word, meant);
                MEANT.iter().fold(text.to_owned(), whole)
            };
            let message = row["message"].as_str().map(meant);
            // Halves of surrogate pairs are no text that could be cut.
            let message: Option<Value> = message.and_then(|text| serde_json::from_str(&text).ok());
            let text = match (&row["text"], &message) {
                (Value::String(text), _) => Some(meant(text)),
                (_, Some(message)) => ["/t", "/u", "/params/t"]
                    .iter()
                    .find_map(|at| Some(message.pointer(at)?.as_str()?.to_owned())),
                _ => None,
            };
            let Some(text) = text else { continue };
            let known = MEANT.iter().map(|(_, meant)| *meant).chain([PACKED]);
            let own = row["secret"].as_str();
            let own = own.filter(|own| !own.contains(&PACKED[..8]));
            let secrets = known.filter(|meant| text.contains(meant)).chain(own);
            let secrets = secrets.map(str::to_owned);
            let case = Case {
                name: format!("{}: {}", path.file_stem().unwrap().display(), row["name"]),
                secrets: secrets.collect(),
                text: format!("Here it is, as you like: {text}\n\nand that was it."),
            };
            // JSON in a text is found by its places, which take all of it to know.
            let message = json!({"t": case.text}).to_string();
            let whole = redactor.json(message.as_bytes(), None);
            let whole = whole.map(|clean| String::from_utf8(clean.text).unwrap());
            if whole.is_some_and(|whole| left(&case, &whole).is_none()) {
                cases.push(case);
            }
        }
    }
    assert!(cases.len() > 80, "only {} vectors are texts", cases.len());
    cases
}

/// What stands of a secret that may not.
fn left<'a>(case: &'a Case, recorded: &str) -> Option<&'a str> {
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
            // In all ways, but for long pieces.
            for first in (0..length).step_by(1 + length / 6) {
                let pieces = even(&case.text, first, length);
                let all = reported(&redactor, &[(FORMS[0], pieces)]);
                if let Some(window) = left(case, &all[0]) {
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
        let borders = case.text.char_indices().map(|(at, _)| at);
        for at in borders {
            let (one, two) = case.text.split_at(at);
            // Two of them side by side, each with each in turn.
            let forms = [at, at + 1 + at / FORMS.len() % (FORMS.len() - 1)];
            let texts = forms.map(|form| (FORMS[form % FORMS.len()], vec![one, two]));
            for all in reported(&redactor, &texts) {
                assert_eq!(left(case, &all), None, "{} at {at}: {all}", case.name);
            }
        }
    }
}

/// What a secret at the end of a message goes on with is no part of the next turn, nor of another
/// message that is all of its text so far.
#[test]
fn a_secret_ends_with_its_turn_and_with_its_text() {
    let (redactor, mut flow) = (redactor(), RedactState::default());
    let key = "sk-ant-api03-abcdefgh0123456789";
    for (method, session, goes_on) in [
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
        assert_eq!(hello != next, goes_on, "{method} {session} {hello}");
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
        let reported = recorded(&redactor, &mut flow, &update(text)).to_string();
        assert!(
            reported.contains("$ cat it") && !reported.contains("efgh01"),
            "{reported}"
        );
    }
    let reported = recorded(
        &redactor,
        &mut flow,
        &update("$ cat it\nsk-ant-api03-abcdefgh01234\n$"),
    );
    assert!(reported.to_string().contains("$ cat it\\n"), "{reported}");
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
    for room in [
        "conversation",
        "jsonrpc",
        "proxy",
        "recording",
        "cli",
        "auth",
    ] {
        for file in fs::read_dir(root.join("src").join(room)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|end| end == "rs") {
                texts.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    let redactor = redactor();
    // After that header a value counts from its first letter, before it is known to be short.
    let kept =
        |text: &&str| redactor.text(text.as_bytes()).is_none() && !text.contains("X-Api-Key: ");
    let all = texts.iter().flat_map(|text| text.split_inclusive("\n\n"));
    // A part of them is enough, another one of each file.
    let some = all.filter(kept).step_by(4);
    some.map(str::to_owned).collect()
}

#[test]
fn prose_and_code_in_even_pieces_stay() {
    let redactor = redactor();
    let (mut faults, mut count) = (Vec::new(), 0);
    let paragraphs = paragraphs();
    assert!(paragraphs.len() > 300, "{}", paragraphs.len());
    for (at, text) in paragraphs.iter().enumerate() {
        for length in [1 + at % 4, 5 + at % 20] {
            count += 1;
            let all = reported(&redactor, &[(FORMS[0], even(text, at % length, length))]);
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
        let texts = [(forms[0], cut(&one.text, &shares)), (forms[1], cut(&two.text, &others))];
        let all = reported(&redactor, &texts);
        prop_assert_eq!(left(one, &all[0]), None, "{}: {}", one.name, all[0]);
        prop_assert_eq!(left(two, &all[1]), None, "{}: {}", two.name, all[1]);
    }
}

/// Prose and code that talk of how a key begins.
#[test]
fn who_talks_of_keys_loses_nothing() {
    let redactor = redactor();
    for text in [
        r#"const PEM: &[u8] = b"-----BEGIN"; and so on, for long."#,
        "It looks for `-----BEGIN` and takes what follows, to the end.",
        "It looks for -----BEGIN and takes what follows, to the end.",
        "Put it behind `-----BEGIN PRIVATE KEY-----`, as ever.",
    ] {
        assert_eq!(redactor.text(text.as_bytes()), None, "{text}");
        for length in 1..20 {
            let all = reported(&redactor, &[(FORMS[0], even(text, 0, length))]);
            // The piece in which the label ends is written before what follows is known.
            let stays = match text.contains("PRIVATE") {
                true => all[0].ends_with("`, as ever."),
                false => all[0] == text,
            };
            assert!(stays, "by {length}: {}", all[0]);
        }
    }
}

/// However many words there are that announce secrets, none is judged to the end of the text: that
/// would take minutes here.
#[test]
fn a_piece_of_nothing_but_announcements_is_looked_at_once() {
    let redactor = redactor();
    for unit in [
        "sk-ant-",
        "PASSWORD=",
        "--password=x",
        "PASSWORD=a.",
        "\"-----BEGIN ",
    ] {
        let message = FORMS[0].message(&unit.repeat(500_000 / unit.len()));
        recorded_if(&redactor, &mut RedactState::default(), &message);
    }
}

/// One message with many texts leaves the others known.
#[test]
fn a_message_of_many_texts_has_no_other_forgotten() {
    let (redactor, mut flow) = (redactor(), RedactState::default());
    let many: Vec<Value> = (0..1000).map(|_| json!({"text": "a"})).collect();
    let many = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s",
        "update": {"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": many}}});
    recorded_if(
        &redactor,
        &mut flow,
        &FORMS[0].message("so sk-ant-api03-abcd"),
    );
    recorded_if(&redactor, &mut flow, &many);
    let next = recorded(
        &redactor,
        &mut flow,
        &FORMS[0].message("efgh0123456789 it is"),
    );
    assert!(!next.to_string().contains("0123"), "{next}");
}

/// Has a message recorded, whatever becomes of it.
fn recorded_if(redactor: &Redactor, flow: &mut RedactState, message: &Value) {
    let bytes = message.to_string();
    let kind = Some(Kind::Notification);
    if let Some(clean) = redactor.json_streamed(flow, bytes.as_bytes(), kind, None) {
        assert!(serde_json::from_slice::<Value>(&clean.text).is_ok());
    }
}
