//! The viewer's server: what it serves to its page, and that it serves no other client.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use acp_relay::jsonrpc::{Kind, Side};
use acp_relay::recording::write::{self, FrameInfo, Stamp};
use acp_relay::recording::{EventKind, Header, Passed, Payload, PeerInfo, pack};
use serde_json::{Value, json};

use crate::support::http::{Caller, Reply, unread_sockets};
use crate::support::link::run;
use crate::support::program::relay;

/// Longest time that anything here may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A viewer, ended with its test.
pub(crate) struct Viewer {
    child: Child,
    caller: Caller,
    path: String,
}

/// A recording that is being written.
pub(crate) struct TestRecording {
    pub(crate) text: Vec<u8>,
    n: u64,
    /// Microseconds of silence so far.
    silence: u64,
}

impl Viewer {
    pub(crate) fn of(place: &Path) -> Self {
        Self::keeping_files_in(&std::env::temp_dir(), place)
    }

    fn keeping_files_in(folder: &Path, place: &Path) -> Self {
        let mut child = relay(&["inspect".as_ref(), "open".as_ref(), place.as_os_str()])
            .env("TMPDIR", folder)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut address)
            .unwrap();
        let rest = address.trim_end().strip_prefix("http://").unwrap();
        let (host, path) = rest.split_once('/').unwrap();
        Self {
            caller: Caller::to(host),
            path: format!("/{path}"),
            child,
        }
    }

    /// Asks for a path under the token.
    pub(crate) fn ask(&self, path: &str) -> Reply {
        self.send("GET", &format!("{}{path}", self.path), &[], b"")
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        let answer = self.ask(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    }

    /// Drops files onto the page.
    pub(crate) fn drop_files(&self, headers: &[(&str, &str)], files: &[(&str, &[u8])]) -> Reply {
        let (mut query, mut body) = (String::new(), Vec::new());
        for (name, content) in files {
            query += &format!("&{name}={}", content.len());
            body.extend_from_slice(content);
        }
        let path = format!("{}api/dropped?{query}", self.path);
        self.send("POST", &path, headers, &body)
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        run(self.caller.ask(method, path, headers, body))
    }

    /// The state of the first recording, once `done` accepts it.
    fn wait(&self, done: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        let mut state = self.json("api/0/state");
        while !done(&state) {
            assert!(begun.elapsed() < PATIENCE, "it stays at {state}");
            state = self.json(&format!("api/0/state?after={}", state["revision"]));
        }
        state
    }

    /// Asserts that a path is answered with this status.
    pub(crate) fn assert_status(&self, path: &str, status: u16) -> String {
        let answer = self.ask(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        answer.body
    }

    /// The numbers of the events that a query finds.
    fn found(&self, question: &str) -> Vec<u64> {
        let answer = self.json(&format!("api/0/rows?{question}"));
        let rows = answer["rows"].as_array().unwrap().iter();
        rows.map(|row| row["line"]["n"].as_u64().unwrap_or(0))
            .collect()
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl TestRecording {
    pub(crate) fn new() -> Self {
        Self::segment(0)
    }

    fn segment(segment: u64) -> Self {
        let mut text = Vec::new();
        let header = Header {
            segment,
            id: "ab".repeat(16),
            began: 1_795_190_340_000_000,
            client: PeerInfo {
                name: "stdio:".to_owned(),
                dialect: "canonical".to_owned(),
            },
            ..Header::default()
        };
        write::header(&mut text, &header);
        Self {
            text,
            n: 0,
            silence: 0,
        }
    }

    fn stamp(&mut self) -> Stamp {
        self.n += 1;
        let t = self.n * 1_000 + self.silence;
        let w = 1_795_190_340_000_000 + t;
        Stamp { n: self.n, t, w }
    }

    fn what(&mut self, what: &EventKind) {
        let stamp = self.stamp();
        write::event(&mut self.text, stamp, what);
    }

    pub(crate) fn frame(&mut self, info: &FrameInfo<'_>, body: &str) {
        let stamp = self.stamp();
        write::frame(&mut self.text, stamp, info, &Payload::Json(body.as_bytes()));
    }

    /// A message received from a side; an answer names the request's event.
    pub(crate) fn message(
        &mut self,
        from: Side,
        kind: Kind,
        method: &str,
        id: Option<&str>,
        body: &Value,
    ) {
        let info = FrameInfo {
            kind: Some(kind),
            method: Some(method.as_bytes()),
            session: Some(b"s1"),
            id: id.map(str::as_bytes),
            answers: (kind == Kind::Result).then(|| self.n - 5),
            ..FrameInfo::new(from, from.other())
        };
        self.frame(&info, &body.to_string());
    }

    pub(crate) fn passed(&mut self, to: Side, count: u64) {
        let (first, last) = (self.n + 1 - count, self.n);
        self.what(&EventKind::Passed(Passed {
            to,
            first,
            last,
            count,
        }));
    }

    /// A turn of 7 events: prompt, passed, three chunks, passed, answer.
    pub(crate) fn turn(&mut self) {
        let prompt = json!({"params": {"prompt": [{"type": "text", "text": "Hello there"}]}});
        self.message(
            Side::Client,
            Kind::Request,
            "session/prompt",
            Some("7"),
            &prompt,
        );
        self.passed(Side::Agent, 1);
        for word in ["one", "two", "three"] {
            let update = json!({"params": {"update": {"sessionUpdate": "agent_message_chunk",
                "content": {"type": "text", "text": word}}}});
            self.message(
                Side::Agent,
                Kind::Notification,
                "session/update",
                None,
                &update,
            );
        }
        self.passed(Side::Client, 3);
        let result = json!({"id": 7, "result": {"stopReason": "end_turn"}});
        self.message(
            Side::Agent,
            Kind::Result,
            "session/prompt",
            Some("7"),
            &result,
        );
    }

    /// An update of a tool call.
    fn tool(&mut self, id: &str, status: &str, title: Option<&str>) {
        let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id,
            "status": status, "title": title});
        let body = json!({"params": {"update": update}});
        self.message(
            Side::Agent,
            Kind::Notification,
            "session/update",
            None,
            &body,
        );
    }

    /// A turn, and the end.
    pub(crate) fn last_turn(&mut self) {
        self.turn();
        self.end(false);
    }

    pub(crate) fn end(&mut self, rotated: bool) {
        self.what(&EventKind::End {
            rotated,
            reason: "over".to_owned(),
            digest: String::new(),
        });
    }
}

/// How many findings of a rule a state has.
fn findings(state: &Value, id: &str) -> u64 {
    let mut rules = state["lint"]["rules"].as_array().unwrap().iter();
    let rule = rules.find(|rule| rule["id"] == id);
    rule.map_or(0, |rule| rule["count"].as_u64().unwrap())
}

/// A folder with one recording of ten turns.
pub(crate) fn recorded() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = TestRecording::new();
    for _ in 0..10 {
        recording.turn();
    }
    recording.end(false);
    fs::write(folder.path().join("a.000.acpr"), &recording.text).unwrap();
    folder
}

#[test]
fn the_page_gets_windows_of_folded_filtered_and_ranged_rows() {
    let folder = recorded();
    let viewer = Viewer::of(folder.path());
    let state = viewer.wait(|state| state["ended"] == true);
    assert_eq!(state["events"], 71);
    assert_eq!(state["turns"], 10);
    assert_eq!(state["bytes"], state["total"]);
    assert_eq!(state["header"]["client"]["name"], "stdio:");
    assert_eq!(state["writing"], false);
    assert_eq!(state["spans"].as_array().unwrap().len(), 10);
    assert_eq!(state["spans"][1], json!([8_000, 14_000]));
    let path = folder.path().canonicalize().unwrap().join("a.000.acpr");
    assert_eq!(state["path"], path.to_str().unwrap());
    for (query, found) in [
        // Folded: the prompt, the head of the chunks, the answer.
        ("count=4", &[1, 3, 7, 8][..]),
        ("from=2&count=2", &[7, 8]),
        ("all=1&count=4", &[1, 2, 3, 4]),
        ("t0=8000&t1=12000", &[8, 10]),
        ("q=kind%3aresult&count=3", &[7, 14, 21]),
        ("q=TWO+method:session/update&count=2", &[4, 11]),
        ("q=not+method:session/*+not+zzz", &[71]),
        ("q=dur%3E5ms+kind:request&count=2", &[1, 8]),
        ("q=dur%3E7ms", &[]),
        ("q=%22hello%20there%22&count=1", &[1]),
        ("q=%22there%20hello%22", &[]),
    ] {
        assert_eq!(viewer.found(query), found, "{query}");
    }
    // A wrong filter is refused with place and reason.
    let fault = viewer.assert_status("api/0/rows?q=n:1+and", 400);
    assert!(fault.contains("missing at the end"), "{fault}");
    let rows = viewer.json("api/0/rows?count=3&n=14");
    assert_eq!((&rows["total"], &rows["place"]), (&json!(31), &json!(5)));
    let prompt = &rows["rows"][0];
    assert_eq!(
        (&prompt["answer"], &prompt["duration"]),
        (&json!(7), &json!(6_000))
    );
    assert_eq!(prompt["forwarded"], true);
    let run = &rows["rows"][1];
    assert_eq!(
        (&run["run"], &run["text"]),
        (&json!(3), &json!("onetwothree"))
    );
    assert_eq!(rows["rows"][2]["request"], 1);
    let turns = viewer.json("api/0/turns?from=8");
    assert_eq!(turns["turns"].as_array().unwrap().len(), 2);
    assert_eq!(turns["turns"][0]["end"]["n"], 63);
}

#[test]
fn rows_are_sorted_by_a_column_and_silence_is_marked() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = TestRecording::new();
    recording.turn();
    recording.silence += 3_700_000;
    recording.message(
        Side::Client,
        Kind::Request,
        "session/load",
        Some("8"),
        &json!({"id": 8}),
    );
    recording.end(false);
    fs::write(folder.path().join("a.000.acpr"), &recording.text).unwrap();
    let viewer = Viewer::of(folder.path());
    viewer.wait(|state| state["ended"] == true);
    for (query, found) in [
        ("", &[1, 3, 7, 8, 9][..]),
        ("sort=-time", &[9, 8, 7, 3, 1]),
        // An event without a duration stands last; equal ones stay in the order of time.
        ("sort=duration", &[1, 7, 3, 8, 9]),
        ("sort=-duration", &[1, 7, 3, 8, 9]),
        ("sort=method", &[3, 8, 1, 7, 9]),
        // Without an answer, answered, an answer, other.
        ("sort=status", &[8, 1, 7, 3, 9]),
        ("sort=side&count=3", &[1, 8, 3]),
        ("sort=-size&count=1&q=session/prompt+or+Hello", &[1]),
        ("sort=-time&q=kind:request&from=1", &[1]),
    ] {
        assert_eq!(viewer.found(query), found, "{query}");
    }
    let rows = viewer.json("api/0/rows?sort=-time&n=7&q=kind:message");
    assert_eq!((&rows["place"], &rows["sorted"]), (&json!(1), &json!(true)));
    let rows = viewer.json("api/0/rows");
    let silences = rows["rows"].as_array().unwrap().iter();
    let silences: Vec<_> = silences.map(|row| &row["silence"]).collect();
    assert_eq!(silences[3], 3_701_000);
    assert_eq!(
        silences.iter().filter(|silence| silence.is_null()).count(),
        4
    );
    assert!(rows["sorted"].is_null());
}

/// The page and the command have the same figures.
#[test]
fn figures_are_those_of_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = TestRecording::new();
    for _ in 0..4 {
        recording.turn();
    }
    recording.tool("a", "pending", Some("Read"));
    recording.tool("b", "pending", None);
    recording.tool("c", "in_progress", Some("never ends"));
    recording.silence += 40_000;
    recording.tool("b", "failed", Some("Run"));
    recording.silence += 100_000;
    recording.tool("a", "completed", None);
    recording.tool("a", "completed", Some("again"));
    recording.passed(Side::Client, 6);
    recording.end(false);
    let path = folder.path().join("a.000.acpr");
    fs::write(&path, &recording.text).unwrap();
    let viewer = Viewer::of(folder.path());
    viewer.wait(|state| state["ended"] == true);
    let figures = viewer.json("api/0/figures");
    let args = [
        "inspect",
        "stats",
        "--at=received",
        "--json",
        path.to_str().unwrap(),
    ];
    let printed = relay(&args).output().unwrap().stdout;
    let stats: Value = serde_json::from_slice(&printed).unwrap();
    let seconds = |times: &Value| {
        let mut times = times.clone();
        for name in ["p50", "p90", "p99", "max"] {
            times[name] = json!(times[name].as_u64().map(|micros| micros as f64 / 1e6));
        }
        times
    };
    assert_eq!(seconds(&figures["turns"]), stats["turns"]);
    assert_eq!(
        figures["turns"],
        json!({"count": 4, "p50": 6_000, "p90": 6_000, "p99": 6_000, "max": 6_000})
    );
    assert_eq!(seconds(&figures["first_update"]), stats["first_update"]);
    let [method] = figures["methods"].as_array().unwrap().as_slice() else {
        panic!("{figures}");
    };
    assert_eq!(seconds(&method["took"]), stats["methods"][1]["took"]);
    assert_eq!(stats["methods"][1]["method"], method["method"]);
    let firsts = figures["firsts"].as_array().unwrap();
    assert_eq!(firsts[3], json!({"turn": 4, "n": 22, "first": 2_000}));
    assert_eq!(viewer.json("api/0/turns")["turns"][3]["first"], 2_000);
    // The slowest first, with its last title; one without an end is not among them.
    let slowest = figures["slowest"].as_array().unwrap();
    assert_eq!(slowest.len(), 2, "{figures}");
    assert_eq!(
        slowest[0],
        json!({"n": 29, "id": "a", "title": "Read", "lasted": 144_000})
    );
    assert_eq!(
        slowest[1],
        json!({"n": 30, "id": "b", "title": "Run", "lasted": 42_000})
    );
    assert_eq!(stats["slowest"][0]["lasted"], 0.144);
}

#[test]
fn the_schema_is_served_as_members_with_descriptions() {
    let viewer = Viewer::of(recorded().path());
    for (version, notification, kind) in [
        (1, "SessionNotification", "ToolCallUpdate"),
        (2, "UpdateSessionNotification", "ToolCallUpdate"),
    ] {
        let path = format!("api/schema?version={version}");
        assert!(viewer.ask(&path).body.len() < 100_000);
        let schema = viewer.json(&path);
        assert_eq!(
            schema["methods"]["session/update"],
            json!([notification, null])
        );
        let types = schema["types"].as_object().unwrap();
        assert!(types.contains_key("Error") && types.contains_key(kind));
        // Each type that is named is there.
        let mut named = Vec::new();
        for (name, of) in types {
            assert!(of["members"].is_object(), "{name}: {of}");
            let members = of["members"].as_object().into_iter().flatten();
            let variants = of["variants"].as_object().into_iter().flatten();
            named.extend(
                members
                    .chain(variants)
                    .filter_map(|(_, member)| member[1].as_str()),
            );
            named.extend(
                of["others"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str),
            );
        }
        assert!(named.len() > 100);
        assert!(named.iter().all(|name| types.contains_key(*name)));
        let update = &types[notification]["members"]["update"][1];
        let update = &types[update.as_str().unwrap()];
        assert_eq!(update["tag"], "sessionUpdate");
        let call = &update["variants"]["tool_call_update"];
        let members = &types[call[1].as_str().unwrap()]["members"];
        assert!(
            members["toolCallId"][0]
                .as_str()
                .unwrap()
                .contains("tool call"),
            "{members}"
        );
        assert!(!members["title"][0].as_str().unwrap().is_empty());
    }
    viewer.assert_status("api/schema?version=3", 404);
    viewer.assert_status("api/schema", 404);
}

#[test]
fn outages_have_their_side_and_their_times() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = TestRecording::new();
    for (side, event) in [
        (Side::Client, "open"),
        (Side::Client, "lost"),
        (Side::Agent, "lost"),
        (Side::Agent, "resumed"),
        (Side::Client, "resumed"),
        (Side::Agent, "lost"),
    ] {
        recording.what(&EventKind::Link {
            side,
            event: event.to_owned(),
            detail: String::new(),
        });
    }
    recording.end(false);
    fs::write(folder.path().join("a.000.acpr"), &recording.text).unwrap();
    let viewer = Viewer::of(folder.path());
    let state = viewer.wait(|state| state["ended"] == true);
    // The longest first; the last one was not over.
    let expected = json!([
        [2_000, 5_000, "client"],
        [3_000, 4_000, "agent"],
        [6_000, null, "agent"],
    ]);
    assert_eq!(state["outages"], expected);
}

#[test]
fn events_recorded_meanwhile_reach_a_waiting_page() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = TestRecording::new();
    recording.turn();
    let path = folder.path().join("a.000.acpr");
    let mut file = File::create(&path).unwrap();
    file.write_all(&recording.text).unwrap();
    let viewer = Viewer::of(&path);
    viewer.wait(|state| state["events"] == 7);
    let written = recording.text.len();
    recording.turn();
    // Half a line is not an event.
    let (whole, rest) = recording.text[written..].split_at(40);
    file.write_all(whole).unwrap();
    file.write_all(rest).unwrap();
    viewer.wait(|state| state["events"] == 14 && state["turns"] == 2);
    let written = recording.text.len();
    recording.end(true);
    file.write_all(&recording.text[written..]).unwrap();
    let mut next = TestRecording::segment(1);
    next.n = recording.n;
    next.last_turn();
    // The next segment is found, also when it is packed.
    let packed = File::create(folder.path().join("a.001.acpr.zst")).unwrap();
    pack(&next.text[..], packed, 1).unwrap();
    let state = viewer.wait(|state| state["ended"] == true);
    assert_eq!(state["events"], 23);
    assert_eq!(viewer.found("q=kind:result"), [7, 14, 22]);
}

#[test]
fn a_recording_without_its_next_segment_is_not_being_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = TestRecording::new();
    recording.turn();
    recording.end(true);
    let path = folder.path().join("a.000.acpr");
    fs::write(&path, &recording.text).unwrap();
    let viewer = Viewer::of(&path);
    let state = viewer.wait(|state| state["events"] == 8 && state["writing"] == false);
    assert_eq!(
        (&state["ended"], &state["rotated"]),
        (&json!(false), &json!(true))
    );
    // It may have been moved away, and moved back.
    let mut next = TestRecording::segment(1);
    next.n = recording.n;
    next.last_turn();
    fs::write(folder.path().join("a.001.acpr"), &next.text).unwrap();
    let state = viewer.wait(|state| state["ended"] == true);
    assert_eq!(
        (&state["events"], &state["rotated"], &state["writing"]),
        (&json!(16), &json!(false), &json!(false))
    );
}

#[test]
fn lint_findings_are_listed_by_row_and_by_rule() {
    let folder = recorded();
    let viewer = Viewer::of(folder.path());
    let state = viewer.wait(|state| state["lint"]["checked"] == 71);
    let rules = state["lint"]["rules"].as_array().unwrap();
    let severities = rules.iter().map(|rule| {
        let known = ["error", "warning", "hint"];
        known.iter().position(|known| rule["severity"] == *known)
    });
    assert!(severities.is_sorted());
    // Ten prompts before any handshake.
    assert_eq!(findings(&state, "not-initialized"), 10);
    let list = viewer.json("api/0/findings?id=not-initialized&from=8");
    let numbers: Vec<_> = (list["findings"].as_array().unwrap().iter())
        .map(|finding| finding["n"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [57, 64]);
    assert_eq!(viewer.found("q=lint:not-init*&count=2"), [1, 8]);
    let row = &viewer.json("api/0/rows?count=1")["rows"][0];
    let about: Vec<&str> = (row["lint"].as_array().unwrap().iter())
        .filter_map(|finding| finding["id"].as_str())
        .collect();
    assert!(about.contains(&"not-initialized"), "{about:?}");
}

#[test]
fn the_linter_checks_every_segment() {
    let folder = tempfile::tempdir().unwrap();
    let write = |segment: u64, recording: &TestRecording| {
        let name = format!("talk.{segment:03}.acpr");
        fs::write(folder.path().join(name), &recording.text).unwrap();
    };
    let ask = |recording: &mut TestRecording, id: &str| {
        recording.message(
            Side::Client,
            Kind::Request,
            "_x",
            Some(id),
            &json!({"method": "_x"}),
        );
    };
    let mut first = TestRecording::segment(0);
    ask(&mut first, "1");
    first.end(true);
    write(0, &first);
    let found = |seen: u64| {
        let viewer = Viewer::of(folder.path());
        // Open requests are found a moment after the rest.
        let settled = |state: &Value| {
            state["lint"]["checked"] == seen && (seen == 2 || findings(state, "unanswered") > 0)
        };
        let state = viewer.wait(settled);
        ["unanswered", "duplicate-id", "not-initialized"].map(|id| findings(&state, id))
    };
    // An open request may be answered in the next segment.
    assert_eq!(found(2), [0, 0, 1]);
    // The next segment exists, and has no writer.
    let mut second = TestRecording::segment(1);
    second.n = first.n;
    ask(&mut second, "2");
    write(1, &second);
    assert_eq!(found(3), [2, 0, 2]);
    // The segment is missing, and may have contained the answers.
    fs::remove_file(folder.path().join("talk.001.acpr")).unwrap();
    let mut third = TestRecording::segment(2);
    third.n = second.n;
    ask(&mut third, "1");
    write(2, &third);
    assert_eq!(found(3), [1, 0, 1]);
}

#[test]
fn a_filter_uses_values_that_become_known_later() {
    let unanswered = |state: &Value| findings(state, "unanswered") > 0;
    let folder = tempfile::tempdir().unwrap();
    let mut recording = TestRecording::new();
    recording.turn();
    let whole = recording.text.len();
    let answer = recording.text[..whole - 1]
        .iter()
        .rposition(|b| *b == b'\n')
        .unwrap()
        + 1;
    let path = folder.path().join("a.000.acpr");
    let mut file = File::create(&path).unwrap();
    file.lock().unwrap();
    file.write_all(&recording.text[..answer]).unwrap();
    let viewer = Viewer::of(&path);
    let state = viewer.wait(|state| state["lint"]["checked"] == 6);
    assert_eq!(state["writing"], true);
    let asked = "q=dur%3E1ms+or+lint:unanswered";
    assert!(viewer.found(asked).is_empty());
    // Without a writer, an unanswered request is final, unless another writer continues.
    file.unlock().unwrap();
    let state = viewer.wait(unanswered);
    assert_eq!(state["writing"], false);
    assert_eq!(viewer.found(asked), [1]);
    file.lock().unwrap();
    file.write_all(&recording.text[answer..]).unwrap();
    let state = viewer.wait(|state| state["lint"]["checked"] == 7);
    assert!(!unanswered(&state), "{state}");
    assert_eq!(viewer.found(asked), [1, 7]);
    // A request that was never answered is known as such when the recording ends.
    let written = recording.text.len();
    let cancel = json!({"jsonrpc": "2.0", "id": 9, "method": "session/cancel"});
    recording.message(
        Side::Client,
        Kind::Request,
        "session/cancel",
        Some("9"),
        &cancel,
    );
    recording.end(false);
    file.write_all(&recording.text[written..]).unwrap();
    viewer.wait(unanswered);
    assert_eq!(viewer.found(asked), [1, 7, 8]);
}

#[test]
fn an_event_is_served_byte_for_byte_or_truncated() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = TestRecording::new();
    let info = FrameInfo::new(Side::Client, Side::Agent);
    let long = json!({"params": {"text": "x".repeat(100_000)}}).to_string();
    recording.frame(&info, &long);
    let from = recording
        .text
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    fs::write(folder.path().join("a.acpr"), &recording.text).unwrap();
    let viewer = Viewer::of(folder.path());
    viewer.wait(|state| state["events"] == 1);
    // A long body is not in the row.
    let row = &viewer.json("api/0/rows")["rows"][0];
    assert_eq!(
        (&row["short"], &row["line"]["z"]),
        (&json!(true), &json!(long.len()))
    );
    let line = &recording.text[from..];
    assert_eq!(viewer.ask("api/0/event?i=0").body.as_bytes(), line);
    let part = viewer.ask("api/0/event?i=0&most=10");
    assert_eq!(part.body.as_bytes(), &line[..10]);
    assert_eq!(part.field("event-length"), line.len().to_string());
    assert_eq!(viewer.ask("api/0/event?i=1").status, 404);
}

#[test]
fn damaged_and_forged_lines_are_shown_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = TestRecording::new();
    recording.turn();
    recording
        .text
        .extend_from_slice(b"<script>alert(1)</script>\n");
    // Its checksum is right, and it is not JSON.
    recording.frame(&FrameInfo::new(Side::Agent, Side::Client), "{\"a\":<b>}");
    recording.end(false);
    fs::write(folder.path().join("a.acpr"), &recording.text).unwrap();
    let viewer = Viewer::of(folder.path());
    let state = viewer.wait(|state| state["ended"] == true);
    assert_eq!(state["damaged"], 1);
    let rows = viewer.json("api/0/rows?from=3");
    let faults: Vec<bool> = (rows["rows"].as_array().unwrap().iter())
        .map(|row| row["fault"].is_string())
        .collect();
    assert_eq!(faults, [true, true, false]);
}

#[test]
fn every_answer_has_the_security_headers() {
    let folder = recorded();
    let viewer = Viewer::of(folder.path());
    for path in [
        "",
        "page.js",
        "page.css",
        "api/0/state",
        "nothing",
        "api/9/state",
    ] {
        let answer = viewer.ask(path);
        let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
        for (name, value) in [
            ("content-security-policy", policy),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(answer.field(name), value, "{path}");
        }
    }
}

#[test]
fn the_page_is_answered_while_many_sockets_are_not_read() {
    let folder = recorded();
    let viewer = Viewer::of(folder.path());
    let unread = unread_sockets(&viewer.caller.host, &viewer.path);
    for _ in 0..3 {
        assert_eq!(viewer.ask("").status, 200);
    }
    drop(unread);
}

#[test]
fn other_origins_and_unknown_paths_get_nothing() {
    let folder = recorded();
    fs::write(folder.path().join("secret.txt"), "secret").unwrap();
    let viewer = Viewer::of(folder.path());
    let state = format!("{}api/0/state", viewer.path);
    let status = |method, path: &str, headers: &[_]| viewer.send(method, path, headers, b"").status;
    assert_eq!(status("GET", &state, &[]), 200);
    assert_eq!(status("HEAD", &state, &[]), 200);
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        assert_eq!(status(method, &state, &[]), 405, "{method}");
    }
    for headers in [
        [("host", "evil.example")],
        [("host", "127.0.0.1:1")],
        [("origin", "https://evil.example")],
        [("origin", "null")],
        [("sec-fetch-site", "cross-site")],
        [("sec-fetch-site", "same-site")],
    ] {
        for path in ["0/state", "recordings", "search?q=x", "compare?a=0&b=0"] {
            let path = format!("{}api/{path}", viewer.path);
            assert_eq!(status("GET", &path, &headers), 403, "{path}: {headers:?}");
        }
    }
    let other_token = format!("/{}/api/0/state", "A".repeat(viewer.path.len() - 2));
    let search = other_token.replace("0/state", "search?q=x");
    for path in ["/", "/api/0/state", "/favicon.ico", &other_token, &search] {
        assert_eq!(status("GET", path, &[]), 404, "{path}");
    }
    for path in [
        "secret.txt",
        "../secret.txt",
        "api/0/../../secret.txt",
        "api/..%2fsecret.txt/state",
        "api/0/secret.txt",
        "api/-1/state",
        "api/0/event?i=../../etc/passwd",
        "%2e%2e/secret.txt",
    ] {
        let answer = viewer.ask(path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(!answer.body.contains("secret.txt"), "{path}");
    }
}

/// A folder of temporary files has what was dropped, until the viewer ends; the recordings' has not.
#[test]
fn dropped_files_are_unpacked_and_linted_and_deleted_at_the_end() {
    let (folder, kept) = (recorded(), tempfile::tempdir().unwrap());
    let mut viewer = Viewer::keeping_files_in(kept.path(), folder.path());
    let whole = fs::read(folder.path().join("a.000.acpr")).unwrap();
    let mut packed = Vec::new();
    pack(&whole[..], &mut packed, 1).unwrap();
    let dropped = viewer.drop_files(&[], &[("b.000.acpr.zst", &packed), ("c", &whole)]);
    assert_eq!((dropped.status.as_u16(), &*dropped.body), (200, "[1,2]"));
    for at in [1, 2] {
        let rows = |query: &str| viewer.json(&format!("api/{at}/rows?{query}"))["events"].clone();
        let begun = Instant::now();
        while rows("q=lint:not-initialized") != 71 {
            assert!(begun.elapsed() < PATIENCE);
        }
    }
    let state = viewer.json("api/1/state");
    assert_eq!(state["path"], "b.000.acpr.zst");
    let names = |list: Value| -> Vec<String> {
        let rows = list["rows"].as_array().unwrap().iter();
        let mut names: Vec<_> =
            (rows.map(|row| row["name"].as_str().unwrap().to_owned())).collect();
        names.sort();
        names
    };
    assert_eq!(names(viewer.json("api/recordings")), ["a", "b", "c"]);
    let status = |files: &[(&str, &[u8])]| viewer.drop_files(&[], files).status;
    assert_eq!(status(&[("capture.jsonl", b"no recording")]), 415);
    assert_eq!(status(&[("x.acpr", &whole), ("empty.acpr", b"")]), 415);
    for name in ["..%2fx.acpr", "..", "", "%2fx.acpr"] {
        assert_eq!(status(&[(name, &whole)]), 400, "{name}");
    }
    // More or less than was announced, and more than a viewer keeps.
    for (announced, expected) in [("70", 400), ("70000000", 400), ("9999999999", 413)] {
        let path = format!("{}api/dropped?x.acpr={announced}", viewer.path);
        let answer = viewer.send("POST", &path, &[], &whole);
        assert_eq!(answer.status, expected, "{announced}: {}", answer.body);
    }
    for foreign in [
        ("host", "evil.example"),
        ("origin", "https://evil.example"),
        ("sec-fetch-site", "cross-site"),
    ] {
        assert_eq!(viewer.drop_files(&[foreign], &[("x", &whole)]).status, 403);
    }
    let other_token = "/AAAA/api/dropped?x=1";
    assert_eq!(viewer.send("POST", other_token, &[], b"x").status, 404);
    let count = |folder: &Path| fs::read_dir(folder).unwrap().count();
    assert_eq!((count(kept.path()), count(folder.path())), (1, 1));
    assert_eq!(names(viewer.json("api/recordings")).len(), 3);
    let id = rustix::process::Pid::from_child(&viewer.child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    viewer.child.wait().unwrap();
    assert_eq!(count(kept.path()), 0);
}

#[test]
fn the_page_can_be_written_to_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("viewer.html");
    let args = ["inspect", "open", "--page", path.to_str().unwrap()];
    let done = relay(&args).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let page = fs::read_to_string(path).unwrap();
    assert!(page.len() <= 260_000, "{} bytes", page.len());
    assert!(page.contains("default-src 'none'; script-src 'sha256-"));
    assert!(!page.contains("src=\"") && !page.contains("href=\""));
    for word in ["http://", "https://", "innerHTML", "eval(", "//# source"] {
        assert!(!page.contains(word), "the page has {word}");
    }
    assert!(page.contains("This page has no findings."));
    // The scripts share one scope, in which a second definition would replace the first silently.
    let (_, script) = page.rsplit_once("<script>").unwrap();
    let mut names = HashSet::new();
    for line in script.lines() {
        let line = line.strip_prefix("async ").unwrap_or(line);
        let declared = ["function* ", "function ", "const ", "let ", "class "];
        let Some(rest) = declared.iter().find_map(|word| line.strip_prefix(word)) else {
            continue;
        };
        let name = rest.split(['(', ' ', ';']).next().unwrap_or_default();
        assert!(names.insert(name), "{name} is there twice");
    }
    assert!(names.len() > 100, "{}", names.len());
    assert_eq!(
        script.matches("</").count(),
        3,
        "a part would end its element"
    );
}

#[test]
fn stderr_text_is_found_and_served_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = TestRecording::new();
    let text = "\u{1b}[31mred\u{202e}\n";
    recording.what(&EventKind::Stderr(Payload::Text(text.into())));
    fs::write(folder.path().join("a.acpr"), &recording.text).unwrap();
    let viewer = Viewer::of(folder.path());
    viewer.wait(|state| state["events"] == 1);
    assert_eq!(viewer.found("q=kind:stderr+RED"), [1]);
    let rows = viewer.json("api/0/rows");
    assert_eq!(rows["rows"][0]["line"]["b"], text);
}

/// A recording of an agent that spells the kinds of updates its own way.
#[test]
fn the_viewer_has_the_whole_of_a_translated_turn() {
    let viewer = Viewer::of("tests/vectors/commands/inspect.in/turn.acpr".as_ref());
    let state =
        viewer.wait(|state| state["ended"] == true && state["lint"]["checked"] == state["events"]);
    let turns = viewer.json("api/0/turns");
    let (from, end) = (&turns["turns"][0]["i"], &turns["turns"][0]["end"]["i"]);
    let rows = viewer.json(&format!("api/0/rows?all=1&i0={from}&i1={end}&count=100"));
    let lines = rows["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["line"]);
    let kinds = lines.filter_map(|line| {
        let kind = line.pointer("/m/params/update/sessionUpdate")?.as_str()?;
        Some((line["h"].as_str()?, kind))
    });
    // Each update as it was received, followed by what the client was sent.
    let expected = [
        ("agent", "agentThoughtChunk"),
        ("client", "agent_thought_chunk"),
        ("agent", "agentMessageChunk"),
        ("client", "agent_message_chunk"),
        ("agent", "agentMessageChunk"),
        ("client", "agent_message_chunk"),
    ];
    assert_eq!(kinds.collect::<Vec<_>>(), expected, "{rows}");
    // The findings are those that the command prints.
    let rules = state["lint"]["rules"].as_array().unwrap();
    let ids: Vec<_> = rules.iter().map(|rule| &rule["id"]).collect();
    // `models` are forwarded beside the options, for clients that know only them.
    assert_eq!(ids, ["schema-unknown-member", "schema-repaired"], "{state}");
}
