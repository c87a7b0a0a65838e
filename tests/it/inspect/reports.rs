//! What stats, lint and diff print of real captures: `tests/vectors/inspect/*.txt`.
//!
//! With `ACP_RELAY_BLESS=1` the files are rewritten; check the diff.

use std::fs;

use serde_json::Value;

use super::{CAPTURES, answer, capture, import, inspect, recording, vectors};

#[test]
fn stats_and_lint_of_real_captures_are_as_stored() {
    let folder = tempfile::tempdir().unwrap();
    for name in CAPTURES {
        let file = import(folder.path(), &capture(name), name);
        let fails = i32::from(name.starts_with("codex"));
        for (what, args, code) in [
            ("stats", ["stats", &file], 0),
            ("lint", ["lint", &file], fails),
        ] {
            let found = answer(&args, code);
            let path = vectors().join(format!("inspect/{name}.{what}.txt"));
            if std::env::var_os("ACP_RELAY_BLESS").is_some() {
                fs::write(&path, &found).unwrap();
            }
            let known = fs::read_to_string(&path).unwrap_or_default();
            assert!(found == known, "{}: now\n{found}", path.display());
        }
        let stats = answer(&["stats", "--json", &file], 0);
        let stats: Value = serde_json::from_str(&stats).unwrap();
        assert!(stats["turns"]["count"].as_u64() > Some(2), "{name}");
    }
}

#[test]
fn a_line_fits_into_eighty_columns() {
    let folder = tempfile::tempdir().unwrap();
    let file = import(folder.path(), &capture(CAPTURES[0]), "x");
    for line in answer(&["stats", &file], 0).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn a_difference_is_printed_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(capture(CAPTURES[4])).unwrap();
    let left = recording(folder.path(), "left", &text);
    let other = text.replacen("end_turn", "refusal", 1);
    let right = recording(folder.path(), "right", &other);
    let found = answer(&["diff", &left, &right], 1);
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 4, "{found}");
    assert!(
        lines[0].contains("agent result session/prompt #1 ‹session 1›"),
        "{found}"
    );
    assert_eq!(lines[1].trim(), r#"- /body/stopReason: "end_turn""#);
    assert_eq!(lines[2].trim(), r#"+ /body/stopReason: "refusal""#);
    let patch: Value =
        serde_json::from_str(answer(&["diff", "--json", &left, &right], 1).trim()).unwrap();
    assert_eq!(patch["patch"][0]["value"], "refusal");
    answer(&["diff", &left, &right, "--ignore", "/stopReason"], 0);
    answer(&["diff", &left, "/nowhere.acpr"], 66);
}

#[test]
fn requests_and_answers_name_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"dir":"c2a","ts":1,"msg":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}}
{"dir":"a2c","ts":3.5,"msg":{"jsonrpc":"2.0","id":1,"result":{}}}
{"dir":"a2c","ts":4,"msg":{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{}}}
"#;
    let file = recording(folder.path(), "x", text);
    let shown = answer(&["show", &file, "kind:message"], 0);
    let lines: Vec<&str> = shown.lines().skip(1).collect();
    assert!(lines[0].ends_with("B, answer 4 after 2.50 s)"), "{shown}");
    assert!(lines[1].contains("result after 2.50 s") && lines[1].ends_with("request 2)"));
    assert!(lines[2].ends_with("B, no answer)"), "{shown}");
    // It has ended, so following it ends; an open request may still be answered.
    let followed = answer(&["follow", &file, "kind:request"], 0);
    assert!(followed.contains("answer 4 after 2.50 s") && !followed.contains("no answer"));
    let slow = answer(&["follow", &file, "dur>2s"], 0);
    assert_eq!(
        slow.lines()
            .filter(|line| line.contains("initialize"))
            .count(),
        2,
        "{slow}"
    );
}

#[test]
fn scrub_and_mark_report_their_results_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"dir":"c2a","ts":0,"msg":{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[{"name":"x","command":"y","args":[],"env":[{"name":"KEY","value":"canary-4711"}]}]}}}"#;
    let file = recording(folder.path(), "x", text);
    let copy = folder.path().join("copy.acpr");
    let copy = copy.to_str().unwrap();
    let reported = answer(&["scrub", "--json", &file, copy], 0);
    let reported: Value = serde_json::from_str(&reported).unwrap();
    assert_eq!(
        (&reported["file"], &reported["events"]),
        (&copy.into(), &4.into())
    );
    assert_eq!(
        (&reported["mode"], &reported["redacted"]),
        (&"default".into(), &1.into())
    );
    let reported = answer(&["mark", "--json", &file, "here"], 0);
    let reported: Value = serde_json::from_str(&reported).unwrap();
    // First the end, then the resumption, then the mark.
    assert_eq!(
        (&reported["by"], &reported["n"]),
        (&"mark".into(), &6.into())
    );
    let marks = answer(&["show", &file, "n:6"], 0);
    assert!(marks.contains("mark: here"), "{marks}");
}

#[test]
fn grep_finds_text_across_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let chunk = |session: &str, text: &str| {
        format!(
            r#"{{"dir":"a2c","ts":1,"msg":{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}}}"#
        )
    };
    // Two sessions with interleaved chunks.
    let lines = [
        chunk("a", "the se"),
        chunk("b", "cret of b"),
        chunk("a", "cret is é"),
        chunk("a", " and more"),
        chunk("b", ", secret"),
    ];
    let file = recording(folder.path(), "x", &lines.join("\n"));
    let found = answer(&["grep", "--json", "secret", &file], 0);
    let found: Vec<Value> = found
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(
        (&found[0]["text"], &found[0]["n"]),
        (&", secret".into(), &6.into())
    );
    assert_eq!(found[1]["text"], "the secret is é and more");
    assert_eq!(
        (&found[1]["n"], &found[1]["chunks"]),
        (&2.into(), &3.into())
    );
    answer(&["grep", "é and", &file], 0);
    answer(&["grep", "cret of b, s", &file], 0);
    answer(&["grep", "the secret of b", &file], 1);
}

#[test]
fn a_filter_without_matches_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = import(folder.path(), &capture(CAPTURES[0]), "x");
    let reported = |filter: &str| {
        let output = inspect(&["show", &file, filter]);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    };
    let nothing = "acp-relay: no event matches the filter\n";
    assert_eq!(reported("method:unknown/asks"), nothing);
    assert_eq!(reported("method:initialize"), "");
}

#[test]
fn ignore_case_matches_capitals() {
    let folder = tempfile::tempdir().unwrap();
    let file = import(folder.path(), &capture(CAPTURES[2]), "x");
    answer(&["grep", "PROTOCOLversion|LOG IN WITH", &file], 1);
    let found = answer(&["grep", "-i", "LOG IN WITH", &file], 0);
    assert!(found.contains("Log in with Google"), "{found}");
    assert_eq!(
        answer(&["grep", "--ignore-case", "LOG IN WITH", &file], 0),
        found
    );
}

#[test]
fn unusable_files_are_reported_without_os_errors() {
    let folder = tempfile::tempdir().unwrap();
    let file = import(folder.path(), &capture(CAPTURES[0]), "x");
    let from = capture(CAPTURES[0]);
    let missing = folder.path().join("none.acpr");
    let missing = missing.to_str().unwrap();
    let run = |args: &[&str]| {
        let program = env!("CARGO_BIN_EXE_acp-relay");
        let output = std::process::Command::new(program).args(args).output();
        String::from_utf8(output.unwrap().stderr).unwrap()
    };
    for (args, why) in [
        (
            &["replay", "client", missing, "--", "true"][..],
            "there is no such file",
        ),
        (&["bisect", missing, "--", "true"], "there is no such file"),
        (&["inspect", "scrub", &file, &file], "it exists already"),
        (
            &["inspect", "import", from.to_str().unwrap(), &file],
            "it exists already",
        ),
    ] {
        let reported = run(args);
        assert!(
            reported.contains(why) && !reported.contains("os error"),
            "{args:?}: {reported}"
        );
    }
}
