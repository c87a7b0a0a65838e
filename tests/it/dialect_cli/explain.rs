//! The reports of a running conversation on its rules: notes, counts, the log, and errors.

use acp_relay::conversation::DialectChoice;
use acp_relay::dialect::{Library, is_known};
use acp_relay::jsonrpc::Side;
use serde_json::{Value, json};

use super::relay;

/// A dialect whose rules fail in every way.
fn faulty_table() -> Value {
    let example = |method: &str, dialect: Value, canonical: Value| {
        let message = |params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
        json!([{"dialect": message(dialect), "canonical": message(canonical)}])
    };
    json!({
        "format": 1, "dialect": "mishaps", "title": "t",
        "rules": [
            {
                "id": "deep", "why": "w", "on": {"from": "agent", "method": "_deep"},
                "rows": [{"dialect": "/a", "canonical": "/b/c"}],
                "examples": example("_deep", json!({"a": 1}), json!({"b": {"c": 1}}))
            },
            {
                "id": "kinds", "why": "w", "on": {"from": "agent", "method": "_kinds"},
                "cases": [{"when": {"dialect": {"/k": 1}, "canonical": {"/k": "one"}}}],
                "examples": example("_kinds", json!({"k": 1}), json!({"k": "one"}))
            },
            {
                "id": "strangers", "why": "w", "on": {"from": "agent", "method": "_strangers"},
                "rows": [{"dialect": "/a", "canonical": "/b"}], "rest": "meta",
                "examples": example("_strangers", json!({"a": 1}), json!({"b": 1}))
            },
            {
                "id": "gone", "why": "w", "lossy": "all of it",
                "on": {"from": "agent", "method": {"dialect": "gone"}},
                "examples": [{
                    "dialect": {"jsonrpc": "2.0", "method": "gone", "params": {}}, "canonical": null
                }]
            }
        ]
    })
}

/// A conversation with an agent of the dialect `mishaps`.
struct Exchange(crate::dialect::Exchange);

impl Exchange {
    fn new() -> Self {
        let mut library = Library::builtin();
        let table = faulty_table().to_string();
        if let Err(faults) = library.add("mishaps.json", &table) {
            panic!("{faults}");
        }
        let agent = DialectChoice::Named("mishaps".to_owned());
        let client = DialectChoice::Canonical;
        Self(crate::dialect::Exchange::new(
            &library.into(),
            &client,
            &agent,
        ))
    }

    /// The agent sends it; returns what the two sides receive.
    fn send(&mut self, message: &Value) -> [Vec<Value>; 2] {
        self.0.send(Side::Agent, message)
    }

    fn notify(&mut self, method: &str, params: &Value) -> [Vec<Value>; 2] {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    fn counts(&self) -> Vec<String> {
        let counts = self.0.observers.counts();
        counts.rules().iter().map(ToString::to_string).collect()
    }
}

#[test]
fn effects_of_rules_are_counted_by_dialect_and_rule() {
    let mut exchange = Exchange::new();
    for _ in 0..3 {
        exchange.notify("_deep", &json!({"a": 1}));
    }
    exchange.notify("_deep", &json!({"a": 1, "b": "in the way"}));
    exchange.notify("_kinds", &json!({"k": 7}));
    exchange.notify("_strangers", &json!({"a": 1, "secret-name": 1, "x": 2}));
    exchange.notify("gone", &json!({}));
    for word in ["evil", "worse"] {
        exchange.notify(word, &json!({}));
    }
    exchange.notify("session/update", &json!({"sessionId": "s"}));
    assert_eq!(
        exchange.counts(),
        [
            "agent translated mishaps/deep 3",
            "agent untranslatable mishaps/deep 1",
            "agent unmatched mishaps/kinds 1",
            "agent translated mishaps/strangers 1",
            "agent unknown_member mishaps/strangers 1",
            "agent translated mishaps/gone 1",
            "agent dropped mishaps/gone 1",
            "agent unknown_method mishaps 2",
        ]
    );
    let log: String = exchange
        .0
        .notes
        .iter()
        .map(|note| format!("{note}\n"))
        .collect();
    for word in ["secret", "evil", "worse"] {
        assert!(!log.contains(word), "a peer's word in the log: {log}");
    }
    assert!(
        log.contains("_deep, translated for the agent by mishaps/deep\n"),
        "{log}"
    );
}

#[test]
fn an_untranslatable_request_gets_an_error_with_rule_reason_and_remedy() {
    let mut exchange = Exchange::new();
    let ask = json!({"jsonrpc": "2.0", "id": "q", "method": "_deep", "params": {"a": 1, "b": 2}});
    let [client, agent] = exchange.send(&ask);
    assert_eq!(client, [Value::Null; 0], "not forwarded in part");
    assert_eq!(agent.len(), 1);
    let error = &agent[0]["error"];
    assert_eq!(
        (&agent[0]["id"], &error["code"]),
        (&json!("q"), &json!(-32058))
    );
    assert_eq!(
        error["message"],
        "the rule mishaps/deep cannot translate _deep: `/b/c` leads through a value that is no \
         object; it was not passed on: put an object there, or leave it out"
    );
    let data = &error["data"]["relay"];
    assert_eq!(
        (&data["rule"], &data["delivered"]),
        (&json!("mishaps/deep"), &json!("no"))
    );
    assert_eq!(exchange.counts(), ["agent untranslatable mishaps/deep 1"]);
}

#[test]
fn an_untranslatable_notification_passes_and_is_counted() {
    let mut exchange = Exchange::new();
    let [client, agent] = exchange.notify("_deep", &json!({"a": 1, "b": 2}));
    assert_eq!(client[0]["params"], json!({"a": 1, "b": 2}), "unchanged");
    assert_eq!(agent, [Value::Null; 0]);
    assert_eq!(exchange.counts(), ["agent untranslatable mishaps/deep 1"]);
}

/// The lists on the message path match the schemas and the built-in tables.
#[test]
fn known_methods_are_those_of_the_schema() {
    let read = |file: &str| {
        let path = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    };
    let methods = |file| -> Vec<String> {
        let schema: Value = serde_json::from_str(&read(file)).unwrap();
        let definitions = schema["$defs"].as_object().unwrap().values();
        let named = definitions.filter_map(|one| one["x-method"].as_str());
        named.map(str::to_owned).collect()
    };
    let stable = methods("src/acp/acp-v1.schema.json");
    let draft = methods("src/acp/acp-v2-draft.schema.json");
    assert!(stable.len() > 20 && draft.len() > 20);
    for method in &stable {
        assert!(is_known(method), "{method}");
    }
    let source = read("src/dialect/methods.rs");
    let (canonical, others) = source.split_once("const OTHERS").unwrap();
    let names = |list: &str| -> Vec<String> {
        let names = list.split('"').skip(1).step_by(2);
        names.map(str::to_owned).collect()
    };
    for name in names(canonical) {
        assert!(stable.contains(&name), "{name} is not in the schema");
    }
    let tables =
        ["kiro", "overseer-app", "grok"].map(|name| read(&format!("mappings/{name}.json")));
    for name in names(others) {
        let quoted = format!("\"{name}\"");
        let is_read = tables.iter().any(|table| table.contains(&quoted));
        assert!(draft.contains(&name) || is_read, "{name} is not defined");
    }
    assert!(is_known("_anything") && !is_known("anything"));
}

#[test]
fn the_log_has_a_line_for_each_translated_message_and_the_sums() {
    let plan = r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","steps":[]}}}"#;
    let agent =
        r#"for n in 1 2 3 4 5 6 7 8 9 10 11 12; do printf '%s\n' "$0"; done; cat >/dev/null"#;
    let args = |level| {
        let dialect = [
            "--log",
            level,
            "connect",
            "--agent-dialect",
            "copilot-overseer",
        ];
        let command = ["--", "sh", "-c", agent, plan];
        [&dialect[..], &command[..]].concat()
    };
    let debug = relay(&args("debug"), "");
    assert_eq!(debug.stdout.lines().count(), 12, "{debug:?}");
    let line = "session/update, translated for the agent by copilot-overseer/plan-steps";
    assert_eq!(debug.stderr.matches(line).count(), 12, "{}", debug.stderr);
    // A filter may name the program, or a module of it.
    for filter in [
        "warn,acp_relay=debug",
        "acp_relay::observe=debug",
        "observe=debug",
    ] {
        let filtered = relay(&args(filter), "").stderr;
        assert_eq!(filtered.matches(line).count(), 12, "{filter}: {filtered}");
    }
    let others = relay(&args("acp_relay::transport=debug"), "").stderr;
    assert!(!others.contains(line), "{others}");
    let sum = "agent translated copilot-overseer/plan-steps 12";
    let info = relay(&args("info"), "");
    assert!(info.stderr.contains(sum), "{}", info.stderr);
    assert!(!info.stderr.contains(line), "{}", info.stderr);
    assert_eq!(relay(&args("warn"), "").stderr, "", "no warning");
}
