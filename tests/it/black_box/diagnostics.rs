//! What the program prints when something goes wrong.

use std::fs;
use std::path::Path;

use serde_json::json;
use tokio::io::AsyncReadExt as _;

use crate::support::http::Caller;
use crate::support::link::run as block_on;
use crate::support::program::{Program, command, run, run_command};

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;

/// Writes a file and returns its path as an argument.
fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn syntax_errors_of_a_configuration_file_are_reported_first() {
    // The file, and each fault: place, problem, and remedy.
    let cases: [(&str, &[&str]); 5] = [
        (
            "[agents.a]\ncommand = [\"sh\"\n[[listeners]]\nendpoint = \"ws://127.0.0.1:0\"\n",
            &["3:1: missing comma between array elements, expected `,`"],
        ),
        (
            "[agents.a]\nenv = { A = \"1\"\ncommand = [\"sh\"]\n",
            &["3:1: missing comma between key-value pairs, expected `,`"],
        ),
        (
            "comand = 1\n[agents.a\ncommand = [\"sh\"]\n[log]\nlevel = \n",
            &[
                "2:10: unclosed table, expected `]`",
                "5:9: string values must be quoted, expected literal string",
            ],
        ),
        // The syntax is right: all other faults.
        (
            "comand = 1\n[agents.a]\ncommand = [\"sh\"]\ncwdd = \"/\"\n",
            &[
                "1:1: `comand` is not known",
                "4:1: `agents.a.cwdd` is not known; did you mean `cwd`?",
            ],
        ),
        (
            "[agents.a]\ncommand = [\"sh\"]\nenv = { \"A\\nB\" = \"x\", \"A\\rB\" = \"x\", \"\" = \"x\", \
             \"A=B\" = \"x\", \"A\\u0000\" = \"x\", A = \"\\u0000\", B = \"x\" }\n",
            &[
                "3:9: `A\\nB` cannot be the name of a variable; a name is not empty and has no `=`",
                "3:23: `A\\rB` cannot be",
                "3:37: `` cannot be",
                "3:47: `A=B` cannot be",
                "3:60: `A\\0` cannot be",
                "3:81: agents.a.env.A: a NUL character; remove it",
            ],
        ),
    ];
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        for (text, faults) in cases {
            let path = file(folder.path(), "team.toml", text);
            let check = run(&["config", "check", "--other-machine", &path], "").await;
            let serve = run(&["serve", "--config", &path], "").await;
            let serve = (serve.code, serve.stderr.replacen("acp-relay: ", "", 1));
            for (code, stderr) in [(check.code, check.stderr), serve] {
                let case = format!("{text}{stderr}");
                assert_eq!(code, Some(78), "{case}");
                assert_eq!(stderr.lines().count(), faults.len(), "{case}");
                for (line, fault) in stderr.lines().zip(faults) {
                    assert!(line.starts_with(&format!("{path}:{fault}")), "{case}");
                }
            }
        }
    });
}

#[test]
fn a_syntax_error_of_a_table_is_reported_at_its_line() {
    let cases = [
        (
            "{\n  \"format\": 1,\n  \"dialect\": \"x\"\n  \"title\": \"x\"\n}\n",
            4,
            3,
        ),
        ("\n\n{\"format\": 1,\n \"rules\": [nul]}\n", 4, 15),
        // The end of the text.
        ("{\n \"format\": 1\n", 2, 13),
        ("{é}", 1, 2),
    ];
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        for (text, line, column) in cases {
            let path = file(folder.path(), "x.json", text);
            let place = format!("{path}:{line}:{column}");
            let on_one_line = format!("{place}: /: this is not JSON: ");
            let check = run(&["dialect", "check", &path], "").await;
            let connect = run(&["connect", "--table", &path, "--", "cat"], "").await;
            for (code, expected, reported, start) in [
                (check.code, 1, &check.stdout, format!("--> {place}")),
                (connect.code, 65, &connect.stderr, on_one_line),
            ] {
                assert_eq!(code, Some(expected), "{text}{reported}");
                let stated = |line: &str| line.trim_start().starts_with(&start);
                assert!(reported.lines().any(stated), "{start}: {reported}");
                assert!(!reported.contains(" at line "), "the place is stated once");
            }
            let json = run(&["dialect", "check", "--json", &path], "").await.stdout;
            let json: serde_json::Value = serde_json::from_str(&json).unwrap();
            assert_eq!(json["files"][0]["faults"][0]["line"], line, "{json}");
        }
    });
}

#[test]
fn a_request_to_an_agent_killed_meanwhile_is_answered_with_the_signal() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let go = folder.path().join("go");
        let agent = format!(
            "exec >&-; until [ -e '{}' ]; do sleep 0.05; done; kill -9 $$",
            go.display()
        );
        let args = ["--log", "info", "connect", "--limit", "stop-grace=60s"];
        let mut connect = Program::start(&[&args[..], &["--", "sh", "-c", &agent]].concat());
        loop {
            let line = connect
                .complaint()
                .await
                .expect("the end of the agent's output");
            if line.contains("note=\"ended\"") {
                break;
            }
        }
        // The answer to the second line shows that the first was read.
        connect.write(&format!("{INITIALIZE}\nno message\n")).await;
        let unread = connect.json().await;
        assert_eq!(unread["error"]["code"], -32700, "{unread}");
        fs::write(&go, "").unwrap();
        let answer = connect.json().await;
        assert_eq!(answer["id"], 1);
        let error = &answer["error"];
        let message = error["message"].as_str().unwrap();
        assert!(
            message.ends_with("(sh): the agent ended with signal 9"),
            "{answer}"
        );
        let data = &error["data"]["relay"];
        assert_eq!(data["exit"], json!({"signal": 9}));
        assert_eq!(data["delivered"], "no");
        assert_eq!(connect.exit().await.code(), Some(137));
    });
}

#[test]
fn an_agent_that_ends_before_it_answers_a_request_makes_connect_fail() {
    let answers = r#"read line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'"#;
    let usage = "echo 'Usage: agent [--acp]'";
    let asked = format!("{INITIALIZE}\n");
    // The agent, the client's input, the exit code, and whether the log has the reason.
    let cases = [
        (usage, asked.as_str(), 76, true),
        ("cat > /dev/null", &asked, 76, true),
        ("echo oops >&2; exit 3", &asked, 3, false),
        (answers, &asked, 0, false),
        // No request was sent.
        ("cat > /dev/null", "", 0, false),
    ];
    block_on(async {
        for (agent, input, code, logged) in cases {
            let outcome = run(&["connect", "--", "sh", "-c", agent], input).await;
            assert_eq!(outcome.code, Some(code), "{agent}: {outcome:?}");
            let why = "the agent ended with exit code 0 before it answered a request";
            assert_eq!(outcome.stderr.contains(why), logged, "{agent}: {outcome:?}");
        }
        // A client slower than the agent gets no error, and the exit code is the same.
        let mut connect = Program::start(&["connect", "--", "sh", "-c", usage]);
        assert_eq!(connect.exit().await.code(), Some(76));
        let asked = run(&["connect", "--", "sh", "-c", usage], &asked).await;
        assert!(
            asked.stdout.contains("it printed: Usage: agent [--acp]"),
            "{asked:?}"
        );
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_wrong_token_where_none_is_needed_is_refused_with_a_remark() {
    const WRONG: &str = "Authorization: Bearer made-up\r\n";
    const UPGRADE: &str = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                           Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    const REMARK: &str = "without a token this program would be let in";
    let forwarded = format!("{WRONG}X-Forwarded-For: 192.0.2.7\r\n");
    let upgrade = format!("{WRONG}{UPGRADE}");
    // An option of the listener, headers, the status, and whether the remark is added.
    let cases = [
        (None, WRONG, 401, true),
        (None, &upgrade, 401, true),
        (None, "Accept: text/event-stream\r\n", 400, false),
        // Behind a proxy, the program's user is not known.
        (None, &forwarded, 401, false),
        (Some("--require-token"), WRONG, 401, false),
        (Some("--require-token"), "", 401, false),
    ];
    block_on(async {
        for option in [None, Some("--require-token")] {
            let mut args = vec!["serve", "--listen", "http://127.0.0.1:0"];
            args.extend(option);
            args.extend(["--", "cat"]);
            let mut serve = Program::start(&args);
            let address = serve.address().await;
            for (_, fields, status, remarked) in cases.iter().filter(|case| case.0 == option) {
                let lines = format!("Connection: close\r\n{fields}");
                let mut answer = String::new();
                let mut stream = Caller::to(&address).begin_acp("GET", &lines, "").await;
                stream.read_to_string(&mut answer).await.unwrap();
                let case = format!("{option:?} {fields}{answer}");
                assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{case}");
                assert_eq!(answer.contains(REMARK), *remarked, "{case}");
            }
        }
    });
}

#[test]
fn connect_logs_the_recording_folder_and_warns_of_a_relative_one() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().canonicalize().unwrap();
        let tapes = here.join("tapes").display().to_string();
        let depends = "; --record is a relative path, so this depends on the folder in which the \
                       editor starts acp-relay: give an absolute path";
        for (record, rest) in [("tapes", depends), (tapes.as_str(), "")] {
            let mut connect = command(&["connect", "--record", record, "--", "cat"]);
            connect.current_dir(&here);
            let outcome = run_command(connect, "").await;
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
            let reports = format!("acp-relay: recording into {tapes}{rest}\n");
            assert_eq!(outcome.stderr, reports);
        }
        let listen = ["serve", "--listen", "ws://127.0.0.1:0", "--record", "tapes"];
        let mut serve = command(&[&listen[..], &["--", "cat"]].concat());
        serve.current_dir(&here);
        let mut serve = Program::of(serve);
        serve.address().await;
        let reports = format!("acp-relay: recording into {tapes}");
        assert_eq!(serve.complaint().await, Some(reports));
    });
}

#[test]
fn shells_complete_names_of_profiles_and_dialects_and_no_files() {
    // The text before the values in each shell's script, and some values.
    let cases = [
        ("bash", "--profile)\n", "compgen -W \"amp ", " claude "),
        (
            "bash",
            "--agent-dialect)\n",
            "compgen -W \"auto canonical ",
            " goose ",
        ),
        (
            "bash",
            "--client-dialect)\n",
            "compgen -W \"auto canonical ",
            " goref ",
        ),
        ("zsh", "--profile=[", ":PROFILE:(amp ", " claude "),
        (
            "zsh",
            "--agent-dialect=[",
            ":DIALECT:(auto canonical ",
            " goose ",
        ),
        (
            "zsh",
            "--from=[The dialect",
            ":DIALECT:(auto canonical ",
            " goose ",
        ),
        ("fish", " -l profile ", "-r -f -a \"amp\\t", "\nclaude\\t"),
        (
            "fish",
            " -l agent-dialect ",
            "-r -f -a \"auto\\t",
            "\ngoose\\t",
        ),
    ];
    block_on(async {
        for (shell, flag, begin, name) in cases {
            let script = run(&["completions", shell], "").await.stdout;
            let mut places = 0;
            for (at, _) in script.match_indices(flag) {
                let rest: String = script[at..].chars().take(3000).collect();
                let offered = rest
                    .split_once(begin)
                    .map(|(before, offered)| before.lines().count() <= 2 && offered.contains(name));
                assert_eq!(offered, Some(true), "{shell} {flag}: {rest}");
                places += 1;
            }
            assert!(places > 0, "{shell}: {flag}");
        }
        let show = run(&["completions", "zsh"], "").await.stdout;
        assert!(show.contains("an alias:(auto canonical "), "dialect show");
    });
}

#[test]
fn a_line_that_is_not_json_is_logged_with_its_beginning_and_without_secrets() {
    block_on(async {
        let key = format!("sk-ant-api03-{}AA", "x7Qd".repeat(23));
        let long = "word ".repeat(40);
        // In the last line, the key crosses the cut.
        let agent = format!(
            "printf 'Loading \\033[1mmodel\\007\\n'; echo '{long}'; echo 'a key {key}'; \
             echo '{}{key}'; cat",
            "y ".repeat(30)
        );
        let done = run(&["connect", "--", "sh", "-c", &agent], "").await;
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
