//! What is recorded of a conversation, and what is not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::super::secrets::{Vector, vectors};
use crate::support::http::INITIALIZE;
use crate::support::link::run as block_on;
use crate::support::program::run_on;
use crate::support::program::{Program, run, words};

/// Records a conversation of this client with this agent, a script; returns its one file.
async fn record(folder: &Path, agent: &str, client: &str) -> PathBuf {
    let options = "--limit invalid-messages=100000 --client-dialect canonical \
                   --agent-dialect canonical --agent-framing ndjson --log error -- sh -c";
    let record = ["connect", "--record", folder.to_str().unwrap()];
    let args = [&record[..], &words(options), &[agent]].concat();
    let outcome = run(&args, client).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    recording(folder)
}

fn recording(folder: &Path) -> PathBuf {
    let mut files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let file = files.next().unwrap();
    assert_eq!(files.next(), None);
    file
}

async fn inspect(args: &[&str]) -> String {
    let outcome = run(&[&["inspect"], args].concat(), "").await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.stdout
}

#[test]
fn a_recording_name_ending_in_a_number_is_not_a_segment() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let [tapes, copies] = ["tapes", "copies"].map(|name| folder.path().join(name));
        fs::create_dir(&copies).unwrap();
        let file = record(&tapes, "cat >/dev/null", "{\"method\":\"x\"}\n").await;
        let names = [
            "agent-0.161",
            "agent-0.162",
            "agent-1.0",
            "agent.100",
            "agent.101",
        ];
        for name in names {
            fs::copy(&file, copies.join(format!("{name}.acpr"))).unwrap();
        }
        let listed = inspect(&["ls", "--json", copies.to_str().unwrap()]).await;
        let listed = listed.lines().map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            assert_eq!(row["segments"].as_array().unwrap().len(), 1, "{row}");
            row["name"].as_str().unwrap().to_owned()
        });
        let mut listed: Vec<String> = listed.collect();
        listed.sort();
        assert_eq!(listed, names);
    });
}

/// Answers without an id, with null and twice, and to the first of two requests with one id.
const ODD_ANSWERS: &str = r#"
send() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
read x; send '"id":1,"result":"first"'; send '"id":1,"result":"again"'
read x; send '"id":null,"result":"null"'; send '"error":{"code":1,"message":"none"}'; send '"id":2,"result":"second"'
read x; read x; send '"id":3,"result":"third"'"#;

#[test]
fn each_answer_is_recorded_with_its_request_only() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        // The fourth has the id of the third, which is open: the relay refuses it.
        let asked = [(1, "a"), (2, "b"), (3, "c"), (3, "d")].map(|(id, method)| {
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}\n")
        });
        let client = asked.concat() + "{\"jsonrpc\":\"2.0\",\"method\":\"e\"}\n";
        let file = record(folder.path(), ODD_ANSWERS, &client).await;
        let text = fs::read_to_string(file).unwrap();
        let mut answers: Vec<Value> = Vec::new();
        for line in text.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let body = &event["m"];
            if event["k"] == "msg" && body.get("method").is_none() {
                let result = body
                    .get("result")
                    .unwrap_or_else(|| &body["error"]["message"]);
                answers.push(json!([result, event.get("me")]));
            }
        }
        let expected = json!([
            ["a request with this id is still in flight", "d"],
            ["first", "a"],
            ["again", null],
            ["null", null],
            ["none", null],
            ["second", "b"],
            ["third", "c"]
        ]);
        assert_eq!(json!(answers), expected);
    });
}

#[test]
fn invalid_bytes_survive_captures_and_replays() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let odd = b"n\xff\xfe o\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n";
        let request = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\n";
        let agent = r#"read x; printf 'n\377\376 o\n{"jsonrpc":"2.0","id":1,"result":1}\n'"#;
        let file = record(folder.path(), agent, request).await;
        let capture = inspect(&["export", "--to", "capture", file.to_str().unwrap()]).await;
        let capture_file = folder.path().join("capture.jsonl");
        fs::write(&capture_file, capture).unwrap();
        let args = ["replay", "agent", capture_file.to_str().unwrap()];
        assert_eq!(run_on(&args, request.as_bytes()).stdout, odd);
        // A line with half of a surrogate pair is no message.
        let raw =
            r#"{"dir":"a2c","ts":0,"raw":"{\"id\":1,\"method\":\"x\",\"params\":\"\ud800\"}"}"#;
        fs::write(&capture_file, format!("{raw}\n")).unwrap();
        let copy = folder.path().join("copy.acpr");
        let args = [
            "import",
            "--json",
            capture_file.to_str().unwrap(),
            copy.to_str().unwrap(),
        ];
        let done: Value = serde_json::from_str(&inspect(&args).await).unwrap();
        assert_eq!(done["odd"], 1, "{done}");
    });
}

const KEY: &str = "abcdefgh0123456789abcdefgh";

#[test]
fn a_recording_lacks_the_secrets_of_the_vectors_and_keeps_the_rest() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let tapes = folder.path().join("tapes");
        let vectors = vectors();
        let lines = folder.path().join("lines");
        let printed = vectors.iter().map(|one| one.given.replace('\n', "\\n"));
        let printed: Vec<String> = printed.collect();
        fs::write(&lines, printed.join("\n") + "\n").unwrap();
        let answer = r#"{"jsonrpc":"2.0","id":0,"result":{}}"#;
        let agent = format!(
            "read x; echo '{answer}'; cat '{}'; cat >/dev/null",
            lines.display()
        );
        let file = record(&tapes, &agent, &format!("{INITIALIZE}\n")).await;
        let capture = inspect(&["export", "--to", "capture", file.to_str().unwrap()]).await;
        let kept: Vec<String> = capture
            .lines()
            .filter(|line| line.contains("\"a2c\""))
            .skip(1)
            .map(|line| match line.split_once("\"msg\":") {
                Some((_, message)) => message.strip_suffix('}').unwrap().to_owned(),
                None => {
                    let line: Value = serde_json::from_str(line).unwrap();
                    line["raw"].as_str().unwrap().to_owned()
                }
            })
            .collect();
        assert_eq!(kept.len(), vectors.len());
        for ((Vector { row, secrets, .. }, text), kept) in vectors.iter().zip(&printed).zip(&kept) {
            let name = &row["name"];
            if row["kept"] == true {
                assert_eq!(kept, text, "{name}");
                continue;
            }
            for secret in secrets {
                assert!(!kept.contains(secret), "{name}: {secret} is in {kept}");
            }
            let stays = row["stays"].as_str().unwrap_or_default();
            assert!(kept.contains(stays), "{name}: {stays} is not in {kept}");
        }
    });
}

#[test]
fn a_mark_has_no_secret_and_does_not_reopen_a_recording() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let mark = format!("look here: the key is sk-{KEY}");
        let tapes = folder.path().join("tapes");
        let file = record(&tapes, "cat >/dev/null", "").await;
        let name = file.to_str().unwrap();
        inspect(&["mark", name, &mark]).await;
        let report: Value =
            serde_json::from_str(&inspect(&["verify", "--json", name]).await).unwrap();
        assert_eq!(report["ended"], true, "{report}");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("look here") && !text.contains(KEY), "{text}");

        // While it is being written, no other file has the secret either.
        let tapes = folder.path().join("open");
        let agent = "echo '{\"method\":\"x\"}'; cat >/dev/null";
        let record = ["connect", "--record", tapes.to_str().unwrap()];
        let mut connect = Program::start(&[&record[..], &["--", "sh", "-c", agent]].concat());
        connect.line().await.unwrap();
        // The file is created for the first message, by another thread.
        while fs::read_dir(&tapes).unwrap().next().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let file = recording(&tapes);
        inspect(&["mark", file.to_str().unwrap(), &mark]).await;
        for sibling in fs::read_dir(&tapes).unwrap() {
            // The writer may have consumed the file by now.
            let text = fs::read_to_string(sibling.unwrap().path()).unwrap_or_default();
            assert!(!text.contains(KEY), "{text}");
        }
        connect.end();
        connect.exit().await;
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("look here") && !text.contains(KEY), "{text}");
    });
}
