//! Recordings that no relay has written, with valid checksums: every reader of recordings goes on.

use acp_relay::recording::{LineError, Parsed, parse_line};
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::link::run;
use crate::support::program::relay;
use crate::support::viewed::{folder, sealed, view};

/// A line with the number and time `n`.
fn event(n: usize, rest: &str) -> String {
    sealed(&format!(
        r#"{{"n":{n},"t":{n}.000000,"w":1795190340.000000,{rest}"#
    ))
}

/// A message at the edge `h` in the direction `d`.
fn message(n: usize, [h, d, is]: [&str; 3], method: &str, body: &str) -> String {
    let parts = format!(r#""k":"msg","h":"{h}","d":"{d}","id":"1","me":"{method}","is":"{is}""#);
    event(n, &format!(r#"{parts},"m":{body}"#))
}

fn reason(line: String) -> String {
    match parse_line(&line.into()) {
        Parsed::Invalid(error @ LineError::Malformed(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn events_that_cannot_be_are_damaged_lines_with_a_reason() {
    for passed in [
        r#""from":99,"to":99"#,
        r#""from":3,"to":2"#,
        r#""from":1,"to":5"#,
        r#""from":18446744073709551615,"to":18446744073709551615"#,
    ] {
        let line = event(
            5,
            &format!(r#""k":"passed","h":"agent",{passed},"count":1"#),
        );
        let why = reason(line);
        assert!(why.contains("not before it"), "{passed}: {why}");
    }
    let good = event(5, r#""k":"passed","h":"agent","from":4,"to":4,"count":1"#);
    assert!(parse_line(&good.into()).event().is_some());
    for t in ["18446744073709.551615", "3200000000.0"] {
        let line = sealed(&format!(r#"{{"n":1,"t":{t},"w":0.0,"k":"resume""#));
        let why = reason(line);
        assert!(why.contains("beyond a century"), "{t}: {why}");
    }
}

#[test]
fn hostile_recordings_end_no_reader() {
    let to_agent = ["agent", ">", "request"];
    let passed = |from: &str| {
        let rest = format!(r#""k":"passed","h":"client","from":{from},"to":{from},"count":1"#);
        vec![event(1, &rest), event(2, &rest)]
    };
    let late = sealed(r#"{"n":2,"t":18446744073709.551615,"w":0.0,"k":"resume""#);
    let mut cases = vec![
        passed("99"),
        passed("0"),
        passed("18446744073709551615"),
        vec![event(1, r#""k":"resume""#), late],
    ];
    for member in ["[]", "5", r#""x""#, "null", r#"{"clientCapabilities":[]}"#] {
        let asked =
            format!(r#"{{"jsonrpc":"2.0","id":"1","method":"initialize","params":{member}}}"#);
        let result = format!(r#"{{"jsonrpc":"2.0","id":"1","result":{member}}}"#);
        let v2 = r#"{"jsonrpc":"2.0","id":"1","result":{"protocolVersion":2,"info":{}}}"#;
        let v1 = r#"{"jsonrpc":"2.0","id":"1","result":{"protocolVersion":1}}"#;
        let received = ["agent", "<", "result"];
        let sent = ["client", "<", "result"];
        cases.push(vec![
            message(1, ["client", ">", "request"], "initialize", &asked),
            message(2, to_agent, "initialize", &asked),
            message(3, received, "initialize", &result),
            message(4, sent, "initialize", &result),
        ]);
        for (agent, client) in [(v1, v2), (v2, v1)] {
            cases.push(vec![
                message(1, to_agent, "initialize", &asked),
                message(2, received, "initialize", agent),
                message(3, sent, "initialize", client),
                message(4, sent, "initialize", &result),
                message(5, to_agent, "session/new", &asked),
                message(6, received, "session/new", &result),
            ]);
        }
    }
    // Numbers and times that do not grow.
    cases.push(vec![
        message(3, ["client", ">", "request"], "session/prompt", "{}"),
        message(1, ["client", "<", "result"], "session/prompt", "[]"),
        message(3, ["agent", "<", "notification"], "session/update", "5"),
        event(
            0,
            r#""k":"gap","events":18446744073709551615,"bytes":18446744073709551615"#,
        ),
        event(usize::MAX, r#""k":"gap","events":18446744073709551615"#),
    ]);
    for lines in &cases {
        let folder = folder(lines);
        let file = folder.path().join("hostile.acpr");
        let file = file.to_str().unwrap();
        for command in ["lint", "stats", "show", "verify", "check"] {
            let done = relay(&["inspect", command, file]).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(!said.contains("panicked"), "{command} {lines:?}: {said}");
            assert!(done.status.code().is_some(), "{command} {lines:?}: {said}");
        }
        run(view(folder.path()));
    }
}

/// A value of a member, often one that does not belong there.
fn value() -> impl Strategy<Value = String> {
    select(
        [
            "null", "true", "5", "-1", "1e300", r#""""#, r#""x""#, "[]", "[[]]", "{}", r#"[{"":[]}]"#,
            r#"{"protocolVersion":1}"#,
            r#"{"protocolVersion":2,"info":{},"capabilities":{}}"#,
            r#"{"sessionId":"s","clientCapabilities":[],"agentCapabilities":5}"#,
            r#"{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}}}"#,
            r#"{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"","status":"completed"}}"#,
            r#"{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"pending","locations":[[]]}}"#,
            r#"{"sessionId":"s","update":[]}"#,
            r#"{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[{"optionId":"o"},5]}"#,
            r#"{"outcome":{"outcome":"selected","optionId":"o"}}"#,
            r#"{"stopReason":"\ud800","prompt":[]}"#,
        ]
        .map(str::to_owned)
        .to_vec(),
    )
}

/// A number of an event: near others, or far out.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0_u64..30, 1 => select(vec![u64::MAX, u64::MAX - 1, 1 << 63, 1 << 32])]
}

/// One line.
fn hostile_line() -> impl Strategy<Value = String> {
    let methods = [
        "initialize",
        "session/new",
        "session/load",
        "session/prompt",
        "session/update",
        "session/cancel",
        "session/request_permission",
        "fs/read_text_file",
        "",
    ];
    let kinds = ["request", "notification", "result", "error"];
    let message = (
        select(vec!["client", "agent"]),
        select(vec!["<", ">"]),
        select(methods.to_vec()),
        select(kinds.to_vec()),
        0_u8..4,
        number(),
        value(),
    );
    let message = message.prop_map(|(h, d, me, is, id, of, value)| {
        let body = match is {
            "request" | "notification" => format!(r#""method":"{me}","params":{value}"#),
            is => format!(r#""{is}":{value}"#),
        };
        let links = match id {
            0 => format!(r#","of":{of},"rules":["r"],"p":[{{"op":"remove","path":"/x/9"}}]"#),
            1 => format!(r#","re":{of},"s":"s""#),
            _ => r#","s":"s""#.to_owned(),
        };
        format!(
            r#""k":"msg","h":"{h}","d":"{d}","id":"{id}","me":"{me}","is":"{is}"{links},"m":{{"jsonrpc":"2.0","id":"{id}",{body}}}"#
        )
    });
    let others = (number(), number(), number(), 0_u8..8).prop_map(|(a, b, c, kind)| match kind {
        0 | 1 => format!(r#""k":"passed","h":"client","from":{a},"to":{b},"count":{c}"#),
        2 => format!(r#""k":"gap","events":{a},"bytes":{b},"why":"x""#),
        3 => format!(r#""k":"note","name":"translated","of":{a},"text":"untranslatable x""#),
        4 => format!(r#""k":"clock","jump":-{a}.5"#),
        5 => r#""k":"link","h":"agent","ev":"lost""#.to_owned(),
        6 => r#""k":"rotate","why":"","b3":"""#.to_owned(),
        _ => format!(r#""k":"stderr","z":{a}"#),
    });
    let rest = prop_oneof![3 => message, 1 => others];
    let t = prop_oneof![4 => 0_u64..40, 1 => select(vec![3_162_239_999, 18_446_744_073_709])];
    (number(), t, number(), rest)
        .prop_map(|(n, t, w, rest)| sealed(&format!(r#"{{"n":{n},"t":{t}.5,"w":{w}.5,{rest}"#)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_events_are_viewed(lines in prop::collection::vec(hostile_line(), 1..40)) {
        run(view(folder(&lines).path()));
    }
}
