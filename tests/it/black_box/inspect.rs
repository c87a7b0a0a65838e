//! Recordings of translated conversations in the viewer. `vectors/commands/inspect.trycmd` has what
//! the subcommands print of the same ones.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::link::run as on_runtime;
use crate::support::program::{self, Program};

/// A recording of an agent that spells the kinds of updates its own way.
const TURN: &str = "tests/vectors/commands/inspect.in/turn.acpr";

#[test]
fn the_viewer_has_the_whole_of_a_translated_turn() {
    on_runtime(async {
        let viewer = Viewer::of(TURN).await;
        let rows = viewer.rows("all=1&count=100").await;
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
