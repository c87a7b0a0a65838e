//! Secrets stay out of recordings.
//!
//! The messages are the vectors of `tests/vectors/secrets`: each in a prompt, in a message of its
//! own shape, in chunks of three characters, in the output of a tool and on stderr.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::program::{Program, run};

/// An agent that prints the contents of files, and then answers requests.
const AGENT: &str = r#"
import json, sys
folder = sys.argv[1]
for line in open(folder + "/stderr", encoding="utf-8"):
    sys.stderr.write(json.loads(line) + "\n")
sys.stderr.flush()
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "say":
        for text in open(folder + "/" + asked["params"]["file"], encoding="utf-8"):
            sys.stdout.write(text)
    elif "method" not in asked:
        asked = {"id": 0, "answer": asked.get("result")}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"done": True}}) + "\n")
    sys.stdout.flush()
"#;

/// A row of a file in `tests/vectors/secrets`.
pub(super) struct Vector {
    /// The name of the file.
    kind: String,
    pub(super) row: Value,
    /// Its text or message, with values in place of its placeholders.
    pub(super) given: String,
    pub(super) secrets: Vec<String>,
}

/// All vectors; the values are different in each.
pub(super) fn vectors() -> Vec<Vector> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/secrets");
    let mut vectors = Vec::new();
    let files = fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    for path in files {
        for line in fs::read_to_string(&path).unwrap().lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let template = row["message"].as_str().or_else(|| row["text"].as_str());
            let number = vectors.len();
            let key = format!("abcdefgh{:010}abcdefgh", 1_234_567_890 + 7919 * number);
            let weak = format!("hunter{number:03}swordfish");
            let given = template
                .unwrap()
                .replace("K3Y", &key)
                .replace("WEAK", &weak);
            let mut secrets = vec![key, weak];
            secrets.retain(|meant| given.contains(meant));
            secrets.extend(row["secret"].as_str().map(str::to_owned));
            vectors.push(Vector {
                kind: path.file_stem().unwrap().to_string_lossy().into_owned(),
                row,
                given,
                secrets,
            });
        }
    }
    vectors
}

/// A text or a message with secrets, and the secrets.
struct Case {
    name: String,
    message: Option<Value>,
    text: String,
    secrets: Vec<String>,
}

fn cases() -> Vec<Case> {
    let mut vectors = vectors();
    // An `authenticate` message is known by its method alone.
    vectors.retain(|one| {
        one.row["kept"] != true && !one.secrets.is_empty() && one.kind != "authenticate"
    });
    assert!(vectors.len() > 400, "only {} vectors", vectors.len());
    let case = |vector: Vector| Case {
        name: format!("{}: {}", vector.kind, vector.row["name"]),
        message: match vector.row["message"] {
            Value::String(_) => serde_json::from_str(&vector.given).ok(),
            _ => None,
        },
        text: vector.given,
        secrets: vector.secrets,
    };
    vectors.into_iter().map(case).collect()
}

/// A folder with the agent and its input.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("secrets-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("recordings")).unwrap();
    fs::write(folder.join("agent.py"), AGENT).unwrap();
    fs::write(folder.join("stderr"), "").unwrap();
    folder
}

fn connect(folder: &Path) -> Program {
    let [records, agent] = ["recordings", "agent.py"].map(|name| folder.join(name));
    let args = [
        "connect",
        "--record",
        records.to_str().unwrap(),
        "--",
        "python3",
    ];
    let mut args: Vec<String> = args.map(str::to_owned).to_vec();
    args.extend([&agent, folder].map(|path| path.to_str().unwrap().to_owned()));
    Program::start(&args)
}

/// Everything recorded, as `inspect export` prints it and as it is on the disk.
async fn recorded(folder: &Path) -> String {
    let mut all = String::new();
    for file in fs::read_dir(folder.join("recordings")).unwrap() {
        let path = file.unwrap().path();
        all += &String::from_utf8_lossy(&fs::read(&path).unwrap());
        let shown = run(
            &[
                "inspect",
                "export",
                "--to",
                "ndjson",
                path.to_str().unwrap(),
            ],
            "",
        )
        .await;
        all += &shown.stdout;
    }
    all
}

fn update(session: &str, update: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update",
        "params": {"sessionId": session, "update": update}})
}

/// Sends all of it on one connection; what is recorded, and the relay's stderr.
async fn reported(
    name: &str,
    stderr: &[String],
    lines: &[String],
    asked: &[Value],
) -> (String, String) {
    let folder = folder(name);
    let quoted: Vec<String> = stderr
        .iter()
        .map(|line| json!(line).to_string() + "\n")
        .collect();
    fs::write(folder.join("stderr"), quoted.concat()).unwrap();
    fs::write(folder.join("said"), lines.join("\n") + "\n").unwrap();
    let mut program = connect(&folder);
    let send = json!({"jsonrpc": "2.0", "id": 1, "method": "say", "params": {"file": "said"}});
    for message in [&send].into_iter().chain(asked) {
        program.write(&(message.to_string() + "\n")).await;
        while program.json().await["result"]["done"] != true {}
    }
    program.end();
    while program.line().await.is_some() {}
    program.exit().await;
    let mut log = String::new();
    while let Some(line) = program.complaint().await {
        log += &line;
    }
    (recorded(&folder).await, log)
}

#[tokio::test]
async fn no_secret_of_a_vector_is_recorded_whichever_way_it_was_sent() {
    let (mut lines, mut asked, mut stderr) = (Vec::new(), Vec::new(), Vec::new());
    let cases = cases();
    for (at, case) in cases.iter().enumerate() {
        if let Some(message) = &case.message {
            let message = json!({"jsonrpc": "2.0", "method": "_x", "params": message});
            lines.push(message.to_string());
        }
        let text = match &case.message {
            Some(message) => message.pointer("/t").and_then(Value::as_str),
            None => Some(case.text.as_str()),
        };
        let Some(text) = text else { continue };
        if !text.contains(['\n', '\r']) {
            stderr.push(text.to_owned());
        }
        // Positions of JSON inside a message's text are not searched.
        if case.name.starts_with("broken") {
            continue;
        }
        let whole = json!({"type": "text", "text": text});
        let tool = json!({"sessionUpdate": "tool_call_update", "toolCallId": at.to_string(),
            "content": [{"type": "content", "content": whole}], "rawOutput": {"out": text}});
        lines.push(update("s", &tool).to_string());
        let session = at.to_string();
        let letters: Vec<char> = text.chars().collect();
        // Input piped into a program is known once the program is named.
        for piece in letters
            .chunks(3)
            .filter(|_| !case.name.starts_with("piped"))
        {
            let piece: String = piece.iter().collect();
            let chunk = json!({"sessionUpdate": "agent_message_chunk",
                "content": {"type": "text", "text": piece}});
            lines.push(update(&session, &chunk).to_string());
        }
        asked.push(
            json!({"jsonrpc": "2.0", "id": 2, "method": "session/prompt",
            "params": {"sessionId": session, "prompt": [whole]}}),
        );
    }
    let (recorded, log) = reported("vectors", &stderr, &lines, &asked).await;
    assert!(recorded.contains("redacted:"), "nothing was recorded");
    let left: Vec<String> = cases
        .iter()
        .flat_map(|case| case.secrets.iter().map(move |secret| (case, secret)))
        // Short secrets also occur in texts that have to stay.
        .filter(|(_, secret)| secret.len() > 6)
        .filter(|(_, secret)| recorded.contains(secret.as_str()))
        .map(|(case, secret)| {
            let at = recorded.find(secret.as_str()).unwrap();
            let from = recorded.floor_char_boundary(at.saturating_sub(80));
            let to = recorded.ceil_char_boundary(recorded.len().min(at + 60));
            format!("{}: {secret} in {}", case.name, &recorded[from..to])
        })
        .collect();
    assert!(left.is_empty(), "{} left:\n{}", left.len(), left.join("\n"));
    let stated = cases
        .iter()
        .flat_map(|case| &case.secrets)
        .filter(|secret| secret.len() > 6);
    for secret in stated {
        assert!(
            !log.contains(secret.as_str())
                || stderr.iter().any(|line| line.contains(secret.as_str()))
        );
    }
}

#[tokio::test]
async fn answers_to_a_form_for_a_secret_are_not_recorded_and_others_are() {
    let forms = [
        (
            json!({"properties": {"value": {"type": "string", "format": "password"}, "n": {"type": "string"}}}),
            "Go on",
        ),
        (
            json!({"properties": {"value": {"type": "string", "writeOnly": true}, "n": {"type": "string"}}}),
            "Go on",
        ),
        (
            json!({"properties": {"value": {"type": "string", "title": "GitHub token"}, "n": {"type": "string"}}}),
            "Go on",
        ),
        (
            json!({"properties": {"value": {"type": "string"}, "kind": {"enum": ["a"]}}}),
            "Your database password?",
        ),
        (
            json!({"properties": {"otp": {"type": "string"}, "n": {"type": "string"}}}),
            "Go on",
        ),
    ];
    for (number, (schema, message)) in forms.iter().enumerate() {
        let folder = folder(&format!("form-{number}"));
        let form = json!({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params":
            {"mode": "form", "sessionId": "s", "message": message, "requestedSchema": schema}});
        fs::write(folder.join("said"), form.to_string() + "\n").unwrap();
        let mut program = connect(&folder);
        let send = json!({"jsonrpc": "2.0", "id": 1, "method": "say", "params": {"file": "said"}});
        program.write(&(send.to_string() + "\n")).await;
        while program.json().await["result"]["done"] != true {}
        let answer = json!({"jsonrpc": "2.0", "id": 7, "result": {"action": "accept",
            "content": {"value": "correct horse", "otp": "correct horse", "n": "an ordinary answer", "kind": "a"}}});
        program.write(&(answer.to_string() + "\n")).await;
        let ask = json!({"jsonrpc": "2.0", "id": 2, "method": "session/list", "params": {}});
        program.write(&(ask.to_string() + "\n")).await;
        while program.json().await["id"] != 2 {}
        program.end();
        while program.line().await.is_some() {}
        program.exit().await;
        let recorded = recorded(&folder).await;
        let field = if number == 4 { "otp" } else { "value" };
        assert!(
            !recorded.contains(&format!(r#""{field}":"correct horse"#)),
            "{schema}: {recorded}"
        );
        assert!(
            recorded.contains("an ordinary answer"),
            "{schema}: {recorded}"
        );
    }
}
