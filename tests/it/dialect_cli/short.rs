//! Short forms: what they stand for, and where their faults are shown.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{answer, relay};
use crate::support::program::relay as relay_command;
use crate::support::terminal::Terminal;

/// Whether a table, as TOML, has faults: each with its line, column and text.
fn check(text: &str, args: &[&str]) -> Vec<(u64, u64, String)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.toml");
    fs::write(&file, format!("{HEAD}{text}")).unwrap();
    let file = file.to_str().unwrap();
    let checked = relay(
        &[&["dialect", "check", "--json", file][..], args].concat(),
        "",
    );
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    let faults = checked["files"][0]["faults"].as_array().unwrap().iter();
    let place = |fault: &Value, key: &str| fault[key].as_u64().unwrap();
    faults
        .map(|fault| {
            let what = format!(
                "{} {}",
                fault["pointer"].as_str().unwrap(),
                fault["what"].as_str().unwrap()
            );
            (place(fault, "line"), place(fault, "column"), what)
        })
        .collect()
}

const HEAD: &str = "format = 1\ndialect = \"t\"\ntitle = \"T\"\n";

/// The rules that `dialect show` prints.
fn rules(text: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.toml");
    fs::write(&file, format!("{HEAD}{text}")).unwrap();
    let shown = answer(
        &[
            "dialect",
            "show",
            "t",
            "--json",
            "--table",
            file.to_str().unwrap(),
        ],
        0,
    );
    shown["rules"].as_array().unwrap().clone()
}

#[test]
fn a_fault_is_where_the_short_form_is() {
    for (text, line, column, what) in [
        // 4 is the first line behind the head.
        (
            "[update.steps]\nis = \"plan\"\n[update.steps.members]\nsteps = \"a\"\n\"steps[]x\" = \"b\"\n",
            8,
            14,
            "/update/steps/members/steps[]x `steps[]x` is no path",
        ),
        (
            "[update.steps.members]\n\"a[]\" = \"b\"\n",
            5,
            9,
            "ends with a list",
        ),
        (
            "[update.steps.members]\n\"a[].b\" = \"c[].d\"\n",
            5,
            11,
            "relative to the element",
        ),
        (
            "[update.steps.members]\na = \"x\"\nb = \"x\"\n",
            4,
            1,
            "two rows write",
        ),
        (
            "[update.steps.members]\na = { as = \"basename\" }\n",
            5,
            12,
            "`basename` has no inverse",
        ),
        (
            "[update.steps.members]\na = { vlaues = {} }\n",
            5,
            16,
            "unknown key `vlaues`",
        ),
        ("[update.steps]\niz = \"plan\"\n", 5, 6, "unknown key `iz`"),
        ("[method]\n\"a\" = 1\n", 5, 7, "is expected here"),
        ("[update\n", 4, 8, "this is not TOML"),
        ("x = 2020-01-01\n", 4, 5, "JSON has no such value"),
        (
            "[update.a]\nis = \"plan\"\n[[update.a.examples]]\ndialect = '{}'\ncanonical = '['\n",
            6,
            1,
            "/update/a/examples/0 the example does not hold",
        ),
    ] {
        let found = check(text, &[]);
        let [(at_line, at_column, why)] = &found[..] else {
            panic!("{text}: {found:?}");
        };
        assert!(why.contains(what), "{text}: {found:?}");
        assert_eq!((*at_line, *at_column), (line, column), "{text}: {found:?}");
    }
    let deep = format!(
        "[update.a.members]\n\"{}b\" = \"c\"\n",
        "a[].".repeat(20_000)
    );
    assert!(check(&deep, &[])[0].2.contains("too many lists"));
}

#[test]
fn of_two_names_for_one_thing_the_first_is_written() {
    let all = rules(
        "[update]\nreply = \"agent_message_chunk\"\nanswer = \"agent_message_chunk\"\n\
         [update.plan.members]\n\"entries[].status\" = { values = { done = \"completed\", ready = \"completed\" } }\n",
    );
    let [reply, answer, plan] = &all[..] else {
        panic!("{all:?}");
    };
    assert_eq!(
        (&reply["id"], &reply["only"]),
        (&json!("update-reply"), &Value::Null)
    );
    assert_eq!(answer["only"], "read");
    let row = &plan["rows"][0]["each"][0];
    assert_eq!(row["values"], json!([["done", "completed"]]));
    assert_eq!(row["read_values"], json!([["ready", "completed"]]));
    assert_eq!(row["park"], true);
}

#[test]
fn the_sender_of_each_method_is_that_of_the_schema() {
    let schema = include_str!("../../../src/acp/acp-v1.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let mut text = String::from("[method]\n");
    let mut handlers = Vec::new();
    for definition in schema["$defs"].as_object().unwrap().values() {
        let (method, side) = (&definition["x-method"], &definition["x-side"]);
        let known = dialect::is_known(method.as_str().unwrap_or_default());
        if known && (side == "client" || side == "agent") && !text.contains(&method.to_string()) {
            text += &format!("\"x{}\" = {method}\n", handlers.len());
            handlers.push(side);
        }
    }
    assert!(handlers.len() > 20);
    let mut all = rules(&text);
    all.sort_by_key(|rule| {
        rule["id"].as_str().unwrap()["method-x".len()..]
            .parse::<usize>()
            .unwrap()
    });
    for (rule, handler) in all.iter().zip(&handlers) {
        assert_ne!(rule["on"]["from"], **handler, "{rule}");
    }
    assert_eq!(all.len(), handlers.len());
}

#[test]
fn reasons_and_examples_are_advice_unless_the_check_is_strict() {
    let text = "[update]\nreply = \"agent_message_chunk\"\n[method]\nask = \"session/request_permision\"\n";
    assert_eq!(check(text, &[]), []);
    let strict = check(text, &["--strict"]);
    let lines: Vec<u64> = strict.iter().map(|(line, ..)| *line).collect();
    assert_eq!(lines, [5, 5, 7, 7, 7], "{strict:?}");
    assert!(
        strict
            .iter()
            .any(|(.., what)| what.contains("no method `session/request_permision`"))
    );
}

/// A terminal gets colours, unless `NO_COLOR` is set.
#[test]
fn a_failed_example_is_a_red_and_green_diff_below_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.toml");
    let message = |kind: &str| {
        json!({"jsonrpc": "2.0", "method": "session/update",
            "params": {"sessionId": "s", "update": {"sessionUpdate": kind}}})
    };
    let (dialect, canonical) = (message("steps"), message("plna"));
    let text = format!(
        "{HEAD}[update.steps]\nis = \"plan\"\n[[update.steps.examples]]\nway = \"read\"\n\
         dialect = '{dialect}'\ncanonical = '{canonical}'\n"
    );
    fs::write(&file, text).unwrap();
    let plain = relay_command(&["dialect", "check", file.to_str().unwrap()]);
    let mut coloured = Command::new("env");
    let words = ["-u", "NO_COLOR", "TERM=xterm"].map(OsStr::new).into_iter();
    coloured.args(words.chain([plain.get_program()]).chain(plain.get_args()));
    let (printed, _) = Terminal::start(coloured).end();
    assert!(printed.contains("t.toml:6:1"), "{printed}");
    for line in [
        "\u{1b}[31m-      \"sessionUpdate\": \"plna\"",
        "\u{1b}[32m+      \"sessionUpdate\": \"plan\"",
    ] {
        assert!(printed.contains(line), "{printed}");
    }
    let (printed, _) = Terminal::start(plain).end();
    assert!(
        !printed.contains('\u{1b}') && printed.contains("    -      "),
        "{printed}"
    );
}
