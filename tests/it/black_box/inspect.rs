//! Recordings of translated conversations, as `inspect` and `check` report them.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::link::run as on_runtime;
use crate::support::program::{self, Program};

/// An agent that spells the kinds of updates its own way, has modes and models and no options, and
/// writes a whole turn at once. No rule matches the update `mystery`.
const AGENT: &str = r#"
while read -r line; do case $line in
*'"initialize"'*) cat <<'E'
{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"odd","version":"1"},"authMethods":[]}}
E
;; *'"session/new"'*) cat <<'E'
{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]},"models":{"currentModelId":"a","availableModels":[{"modelId":"a","name":"A"}]}}}
E
;; *'"session/set_mode"'*) cat <<'E'
{"jsonrpc":"2.0","id":2,"result":{}}
E
;; *'"session/prompt"'*) cat <<'E'
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agentThoughtChunk","content":{"type":"text","text":"hmm"}}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agentMessageChunk","content":{"type":"text","text":"Hello "}}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agentMessageChunk","content":{"type":"text","text":"there."}}}}
{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}
E
;; *'"session/cancel"'*) cat <<'E'
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"mystery"}}}
E
;; esac; done
"#;

const CLIENT: [&str; 4] = [
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"session/set_config_option","params":{"sessionId":"s","configId":"_acp-relay.mode","value":"code"}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}}"#,
];

/// Records a conversation; with `mystery`, also an update that no rule repairs.
async fn recorded(mystery: bool) -> (TempDir, String) {
    let folder = tempdir().unwrap();
    let into = folder.path().to_str().unwrap();
    let mut relay = Program::start(&["connect", "--record", into, "--", "sh", "-c", AGENT]);
    for (id, message) in CLIENT.iter().enumerate() {
        relay.write(&format!("{message}\n")).await;
        while relay.json().await["id"] != id {}
    }
    if mystery {
        let cancel =
            json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}});
        relay.write(&format!("{cancel}\n")).await;
        relay.json().await;
    }
    relay.end();
    relay.exit().await;
    let mut files = std::fs::read_dir(folder.path()).unwrap();
    let file = files.next().unwrap().unwrap().path();
    (folder, file.to_str().unwrap().to_owned())
}

/// What a subcommand prints; its exit code has to be `code`.
async fn printed(args: &[&str], code: i32) -> String {
    let done = program::run(args, "").await;
    let all = format!("{}{}", done.stdout, done.stderr);
    assert_eq!(done.code, Some(code), "{args:?}: {all}");
    done.stdout
}

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

#[test]
fn an_answer_is_checked_against_the_method_its_side_received() {
    on_runtime(async {
        let (_folder, file) = recorded(false).await;
        for args in [
            ["inspect", "lint", "--json", "--fail-on=hint", &file].as_slice(),
            ["check", "--json", &file].as_slice(),
        ] {
            let found = printed(args, 1).await;
            assert!(!found.contains("/result/configOptions"), "{found}");
        }
    });
}

#[test]
fn a_deviation_that_a_rule_repaired_is_a_hint_that_names_the_rule() {
    on_runtime(async {
        let (_folder, file) = recorded(false).await;
        let found = lines(&printed(&["inspect", "lint", "--json", &file], 0).await);
        let repaired = found.iter().any(|one| {
            let reports = one["what"].as_str().unwrap_or_default();
            one["id"] == "schema-repaired"
                && one["severity"] == "hint"
                && reports.starts_with("repaired by ")
                && reports.contains("/updates: ")
                && reports.contains("agentThoughtChunk")
        });
        assert!(repaired, "{found:?}");
        let stated = printed(&["inspect", "lint", "--fail-on", "hint", &file], 1).await;
        assert!(
            stated.contains("\n0 errors, 0 warnings, 4 hints"),
            "{stated}"
        );
        let args = ["inspect", "lint", &file, "lint:schema-unknown-variant"];
        let chosen = printed(&args, 0).await;
        assert!(chosen.starts_with("0 errors"), "{chosen}");
        printed(&["check", "--fail-on", "unrepaired", &file], 0).await;
        // What no rule repaired stays an error.
        let (_folder, file) = recorded(true).await;
        let stated = printed(&["inspect", "lint", &file], 1).await;
        assert!(stated.contains("mystery"), "{stated}");
        assert!(stated.contains("\n1 errors"), "{stated}");
    });
}

#[test]
fn transcripts_and_stats_show_what_the_client_received() {
    on_runtime(async {
        let (_folder, file) = recorded(false).await;
        let cases: [(&[&str], &[&str]); 3] = [
            (
                &["export", "--to", "md"],
                &["> hmm", "> Hello there.", "end\\_turn"],
            ),
            (
                &["export", "--to", "mermaid"],
                &["agent_thought_chunk: hmm", "Hello there."],
            ),
            (
                &["stats"],
                &["agent_message_chunk 2, agent_thought_chunk 1"],
            ),
        ];
        for (args, expected) in cases {
            let stated = printed(&[&["inspect"], args, &[file.as_str()]].concat(), 0).await;
            for words in expected {
                assert!(stated.contains(words), "{args:?} lacks {words}: {stated}");
            }
        }
        let stats = printed(&["inspect", "stats", "--json", &file], 0).await;
        assert_eq!(lines(&stats)[0]["first_update"]["count"], 1, "{stats}");
        let args = ["inspect", "export", "--to", "md", "--at", "received", &file];
        let received = printed(&args, 0).await;
        assert!(!received.contains("Hello"), "{received}");
    });
}

#[test]
fn a_transcript_of_an_incomplete_recording_has_its_last_answer() {
    on_runtime(async {
        let (folder, file) = recorded(false).await;
        let text = std::fs::read_to_string(&file).unwrap();
        // All messages, without the events that forwarded the last of them.
        let last = |line: &&str| line.contains("\"k\":\"msg\"");
        let end = text.lines().rfind(last).unwrap();
        let kept = text.split_inclusive('\n').filter(|line| {
            let passed = line.contains("\"k\":\"passed\",\"h\":\"client\"");
            line.as_ptr() <= end.as_ptr() && !passed
        });
        let torn = folder.path().join("torn.acpr");
        std::fs::write(&torn, kept.collect::<String>()).unwrap();
        let torn = torn.to_str().unwrap();
        let stated = printed(&["inspect", "export", "--to", "md", torn], 0).await;
        assert!(stated.contains("> Hello there."), "{stated}");
        assert!(stated.contains("end\\_turn"), "{stated}");
    });
}

#[test]
fn messages_are_listed_in_the_order_each_side_received_them() {
    on_runtime(async {
        let (_folder, file) = recorded(false).await;
        let shown = printed(&["inspect", "show", &file], 0).await;
        in_order(
            &shown,
            &[
                "agentThoughtChunk",
                "client ← agent_thought_chunk (3 B): hmm",
                "agentMessageChunk Hello",
                "client ← agent_message_chunk (6 B): Hello",
                "client ← agent_message_chunk (6 B): there.",
                "session/prompt [3] result",
            ],
        );
        let drawn = printed(&["inspect", "export", "--to", "mermaid", &file], 0).await;
        in_order(
            &drawn,
            &["hi", "thought_chunk", "message_chunk", "prompt result"],
        );
        let rows = Viewer::of(&file).await.rows("all=1&count=100").await;
        let rows: Vec<String> = rows.iter().map(|row| row["line"].to_string()).collect();
        in_order(
            &rows.join("\n"),
            &[
                "agentThoughtChunk",
                "agent_thought_chunk",
                "agentMessageChunk",
                "agent_message_chunk",
                "\"stopReason\"",
            ],
        );
    });
}

#[test]
fn the_viewer_has_the_whole_of_a_translated_turn() {
    on_runtime(async {
        let (_folder, file) = recorded(false).await;
        let viewer = Viewer::of(&file).await;
        viewer.rows("count=0").await;
        let turns = viewer.get("api/0/turns").await;
        let (from, end) = (&turns["turns"][0]["i"], &turns["turns"][0]["end"]["i"]);
        let query = format!("all=1&i0={from}&i1={end}&count=100");
        let rows = viewer.rows(&query).await;
        let sent = |row: &&Value| row["line"]["h"] == "client" && row["line"]["d"] == "<";
        let kind = |row: &Value| {
            let kind = row["line"].pointer("/m/params/update/sessionUpdate");
            kind.and_then(Value::as_str).map(str::to_owned)
        };
        let kinds: Vec<_> = rows.iter().filter(sent).filter_map(kind).collect();
        let expected = [
            "agent_thought_chunk",
            "agent_message_chunk",
            "agent_message_chunk",
        ];
        assert_eq!(kinds, expected, "{rows:?}");
        // The findings are those that the command prints.
        let mut state = viewer.get("api/0/state").await;
        while state["lint"]["checked"] != state["events"] {
            state = viewer.get("api/0/state").await;
        }
        let rules = state["lint"]["rules"].as_array().unwrap();
        let ids: Vec<_> = rules.iter().map(|rule| &rule["id"]).collect();
        // `models` are forwarded beside the options, for clients that know only them.
        assert_eq!(ids, ["schema-unknown-member", "schema-repaired"], "{state}");
    });
}

#[test]
fn open_prints_a_remedy_for_a_capture_and_for_a_missing_path() {
    on_runtime(async {
        let folder = tempdir().unwrap();
        let capture = folder.path().join("capture.jsonl");
        let line = r#"{"dir":"c2a","ts":0,"msg":{"jsonrpc":"2.0","id":0,"method":"initialize"}}"#;
        std::fs::write(&capture, format!("{line}\n{line}\n")).unwrap();
        let missing = folder.path().join("no-such-folder/x.acpr");
        for (path, expected) in [
            (&capture, "`acp-relay inspect import` makes one"),
            (
                &missing,
                "no-such-folder does not exist; `acp-relay inspect ls",
            ),
        ] {
            let done = program::run(&["inspect", "open", path.to_str().unwrap()], "").await;
            let reported = done.stderr;
            assert_eq!(
                (done.code, done.stdout.as_str()),
                (Some(66), ""),
                "{reported}"
            );
            let head = format!("acp-relay: {}: ", path.display());
            assert!(
                reported.starts_with(&head) && reported.contains(expected),
                "{reported}"
            );
            assert_eq!(reported.lines().count(), 1, "{reported}");
        }
    });
}

#[test]
fn a_line_that_is_not_json_is_logged_with_its_beginning_and_without_secrets() {
    on_runtime(async {
        let key = format!("sk-ant-api03-{}AA", "x7Qd".repeat(23));
        let long = "word ".repeat(40);
        // In the last line, the key crosses the cut.
        let agent = format!(
            "printf 'Loading \\033[1mmodel\\007\\n'; echo '{long}'; echo 'a key {key}'; \
             echo '{}{key}'; cat",
            "y ".repeat(30)
        );
        let done = program::run(&["connect", "--", "sh", "-c", &agent], "").await;
        let reported = done.stderr;
        for expected in [
            "not forwarded: Loading \\u{1b}[1mmodel\\u{7}",
            &format!("not forwarded: {} … ", &long[..80]),
            "not forwarded: a key ",
            "not forwarded: y y y ",
        ] {
            assert!(reported.contains(expected), "no {expected}: {reported}");
        }
        assert!(
            !reported.contains("sk-ant") && !reported.contains("x7Qd"),
            "{reported}"
        );
    });
}

/// The text contains these words, in this order.
fn in_order(text: &str, words: &[&str]) {
    let mut from = 0;
    for word in words {
        let at = text[from..].find(word);
        from += at.unwrap_or_else(|| panic!("no {word} in its place: {text}")) + word.len();
    }
}

/// A viewer of one recording.
struct Viewer {
    _program: Program,
    host: String,
    path: String,
}

impl Viewer {
    async fn of(file: &str) -> Self {
        assert!(Path::new(file).is_file());
        let mut program = Program::start(&["inspect", "open", file]);
        let address = program.line().await.unwrap();
        let rest = address.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_once('/').unwrap();
        Self {
            _program: program,
            host: host.to_owned(),
            path: format!("/{path}"),
        }
    }

    async fn get(&self, what: &str) -> Value {
        let mut socket = TcpStream::connect(&self.host).await.unwrap();
        let (path, host) = (&self.path, &self.host);
        let ask = format!("GET {path}{what} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        socket.write_all(ask.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|fault| panic!("{fault}: {head}"))
    }

    /// The rows, once all is read.
    async fn rows(&self, query: &str) -> Vec<Value> {
        while self.get("api/0/state").await["ended"] != true {}
        let rows = self.get(&format!("api/0/rows?{query}")).await;
        rows["rows"].as_array().unwrap().clone()
    }
}
