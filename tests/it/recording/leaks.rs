//! Secrets, planted wherever they can occur in the whole program, appear in no output of the relay:
//! recordings, logs, errors, all that `inspect` prints and exports, JUnit reports.
//!
//! Forwarded messages and the ids of answers are not redacted. Not here: the rules one by one (see
//! `secrets`).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use super::planted::PlantedSecrets;
use crate::support::program::{Outcome, run};

/// The forms of `inspect export`.
const FORMS: [&str; 6] = ["jsons", "mermaid", "md", "ndjson", "capture", "devtools"];

/// What the client sends: secrets in each place.
fn input(secrets: &mut PlantedSecrets) -> String {
    let mut secret = || secrets.plant();
    let servers = json!([
        {"type": "http", "name": "h", "url": format!("https://u:{}@example.com/?token={}", secret(), secret()),
         "headers": [{"name": "Authorization", "value": secret()}, {"name": "X-Any", "value": secret()}]},
        {"type": "sse", "name": "s", "url": "https://example.com", "headers": [{"name": "Cookie", "value": secret()}]},
        {"name": "x", "command": "y", "args": ["--token", secret(), format!("--api-key={}", secret())],
         "env": [{"name": "PLAIN", "value": secret()}]},
    ]);
    let mut messages = vec![
        json!({"id": 0, "method": "initialize", "params": {"protocolVersion": 1, "_meta": {"token": secret()}}}),
        json!({"id": 1, "method": "authenticate", "params": {"methodId": "m", "deep": {"er": [secret()]}}}),
        json!({"id": 2, "method": "session/new", "params": {"cwd": "/", "mcpServers": servers}}),
    ];
    for (number, text) in secrets.shaped().into_iter().enumerate() {
        messages.push(
            json!({"id": 10 + number, "method": "session/prompt", "params": {"sessionId": "s",
            "prompt": [{"type": "text", "text": format!("use {text} now")}], "_meta": {text: 1}}}),
        );
    }
    let method = format!("_x/sk-{}", secrets.plant());
    messages.push(json!({"id": 9, "method": method, "params": {}}));
    let lines = messages.into_iter().map(|mut message| {
        message["jsonrpc"] = json!("2.0");
        message.to_string() + "\n"
    });
    lines
        .chain([format!("no json: sk-{}\n", secrets.plant())])
        .collect()
}

/// What the agent writes to stdout and to stderr.
fn output(secrets: &mut PlantedSecrets) -> (String, String) {
    let update = |update: Value| {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
            .to_string()
            + "\n"
    };
    let (mut stdout, mut stderr) = (String::new(), String::new());
    let id = |secrets: &mut PlantedSecrets| format!("sk-{}", secrets.plant());
    for text in secrets.shaped() {
        let content = json!({"type": "text", "text": format!("it is {text}")});
        stdout += &update(json!({"sessionUpdate": "agent_message_chunk", "content": content}));
    }
    for text in secrets.shaped() {
        stdout += &update(
            json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": text,
            "content": [{"type": "diff", "path": "/a", "oldText": text, "newText": text}]}),
        );
        stdout += &format!("[INFO] {}\n", text.replace('\n', "\\n"));
        stdout +=
            &json!({"jsonrpc": "2.0", "id": 10, "error": {"code": 1, "message": text}}).to_string();
        stdout += "\n";
    }
    for text in secrets.shaped() {
        stderr += &format!("warn: {text}\n");
    }
    stdout += &json!({"jsonrpc": "2.0", "id": id(secrets), "method": "terminal/create",
        "params": {"env": [{"name": "N", "value": secrets.plant()}]}})
    .to_string();
    stdout += &format!(
        "\n{}\n",
        json!({"jsonrpc": "2.0", "id": id(secrets), "result": {}})
    );
    stdout += &format!(
        "[{}]\n",
        json!({"jsonrpc": "2.0", "id": id(secrets), "method": id(secrets)})
    );
    stdout += &format!("{{\"id\":1,\"result\":\"{}\",}}\n", id(secrets));
    stderr += &format!("without an end: sk-{}", secrets.plant());
    (stdout, stderr)
}

/// What the program prints with these arguments.
async fn printed(args: &[&str]) -> Vec<u8> {
    let Outcome { stdout, stderr, .. } = run(args, "").await;
    format!("{stdout}\n{stderr}").into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_output_of_the_relay_contains_a_secret() {
    let mut secrets = PlantedSecrets::default();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (stdout, stderr) = output(&mut secrets);
    fs::write(path("stdout"), stdout).unwrap();
    fs::write(path("stderr"), stderr).unwrap();
    let input = input(&mut secrets);
    assert!(secrets.0.len() >= 120, "{} are planted", secrets.0.len());

    // The agent reads its input, writes its output, and fails.
    let (stdout, stderr) = (path("stdout"), path("stderr"));
    let agent = format!(
        "n=0; while [ $n -lt {} ] && read -r line; do n=$((n+1)); done; cat {stdout}; cat {stderr} >&2; exit 3",
        input.lines().count() - 1,
    );
    let record = |mode: &'static str| {
        let (folder, input, agent) = (path(mode), &input, &agent);
        async move {
            let args = [
                "connect",
                "--log",
                "trace",
                "--record-redact",
                mode,
                "--record",
            ];
            let agent = [folder.as_str(), "--", "sh", "-c", agent.as_str()];
            let outcome = run(&[&args[..], &agent].concat(), input).await;
            assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
            let mut files = fs::read_dir(folder).unwrap();
            let file = files.next().unwrap().unwrap().path();
            assert!(files.next().is_none());
            (outcome, file)
        }
    };
    for mode in ["structure", "meta", "full"] {
        let (_, file) = record(mode).await;
        let recorded = fs::read(file).unwrap();
        if mode != "full" {
            secrets.assert_absent(mode, &recorded);
            continue;
        }
        let recorded = String::from_utf8(recorded).unwrap();
        let known = secrets.0.iter().filter(|own| recorded.contains(&own[..]));
        assert!(known.count() > 100, "{recorded}");
    }
    let (outcome, file) = record("default").await;
    secrets.assert_absent("the log", outcome.stderr.as_bytes());
    assert!(
        outcome.stderr.contains("warn: "),
        "the log has no stderr: {}",
        outcome.stderr
    );
    let own: Vec<&str> = outcome
        .stdout
        .lines()
        .filter(|line| line.contains("stderrTail"))
        .collect();
    assert!(!own.is_empty(), "{}", outcome.stdout);
    secrets.assert_absent("errors", own.join("\n").as_bytes());

    let recorded = fs::read_to_string(&file).unwrap();
    secrets.assert_absent("the recording", recorded.as_bytes());
    assert!(
        recorded.contains("without an end: "),
        "the end of stderr is missing"
    );

    let file = file.to_str().unwrap();
    for args in [
        &["show", file][..],
        &["stats", file],
        &["lint", file],
        &["ls", &path("default")],
        &["grep", "Q7x", file],
        &["verify", file],
        &["show", file, "--json"],
    ] {
        secrets.assert_absent(args[0], &printed(&[&["inspect"], args].concat()).await);
    }
    for form in FORMS {
        let out = path(form);
        let args = [
            "inspect",
            "export",
            file,
            "--to",
            form,
            "--out",
            out.as_str(),
        ];
        secrets.assert_absent(form, &printed(&args).await);
        secrets.assert_absent(form, &fs::read(out).unwrap());
    }
    replayed(&mut secrets, folder.path()).await;
}

/// A live agent that sends a secret where another one was recorded.
async fn replayed(secrets: &mut PlantedSecrets, folder: &Path) {
    let path = |name: &str| folder.join(name).display().to_string();
    let (capture, file, report) = (path("capture"), path("two.acpr"), path("report.xml"));
    let asks = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    let answers = |secrets: &mut PlantedSecrets| json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1, "say": format!("sk-{}", secrets.plant())}});
    let recorded = answers(secrets);
    let lines =
        format!("{{\"dir\":\"c2a\",\"msg\":{asks}}}\n{{\"dir\":\"a2c\",\"msg\":{recorded}}}\n");
    fs::write(&capture, lines).unwrap();
    printed(&["inspect", "import", &capture, &file, "--redact", "full"]).await;
    let agent = format!("read -r line; echo '{}'; read -r line", answers(secrets));
    let timeouts = ["--settle", "100ms", "--response-timeout", "5s"];
    for how in [
        &["test", "--junit", report.as_str()][..],
        &["replay", "client", "--json"],
    ] {
        let args = [
            how,
            &[&file, "--log", "trace"],
            &timeouts,
            &["--", "sh", "-c", &agent],
        ];
        let printed = printed(&args.concat()).await;
        assert!(
            String::from_utf8_lossy(&printed).contains("say"),
            "no difference is reported"
        );
        secrets.assert_absent("replay client", &printed);
    }
    let report = fs::read(report).unwrap();
    assert!(String::from_utf8_lossy(&report).contains("say"));
    secrets.assert_absent("JUnit", &report);
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_on_the_command_line_are_not_printed() {
    let mut secrets = PlantedSecrets::default();
    let (password, token) = (secrets.plant(), secrets.plant());
    let folder = tempfile::tempdir().unwrap();
    let bearer = folder.path().join("bearer");
    fs::write(&bearer, format!("{}\n", secrets.plant())).unwrap();
    fs::set_permissions(&bearer, fs::Permissions::from_mode(0o600)).unwrap();
    let bearer = bearer.to_str().unwrap();
    for scheme in ["ws", "http", "tcp"] {
        let to = format!("{scheme}://user:{password}@127.0.0.1:1/acp?token={token}");
        secrets.assert_absent(scheme, &printed(&["connect", "--log", "trace", &to]).await);
        let to = format!("{scheme}://127.0.0.1:1/acp?token={token}");
        secrets.assert_absent(scheme, &printed(&["connect", "--log", "trace", &to]).await);
    }
    for scheme in ["ws", "http"] {
        let to = format!("{scheme}://127.0.0.1:1/acp");
        let args = [
            "connect",
            "--log",
            "trace",
            "--bearer-file",
            bearer,
            to.as_str(),
        ];
        secrets.assert_absent(scheme, &printed(&args).await);
    }
}
