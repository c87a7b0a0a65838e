//! Secrets, planted wherever they can occur in the whole program, appear in nothing that is ours:
//! recordings, logs, errors, all that `inspect` prints and exports, JUnit reports.
//!
//! What is forwarded is not ours, and an id goes back as it came. Not here: the rules one by one
//! (see `secrets`).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::program::{Outcome, run};

/// The forms of `inspect export`.
const FORMS: [&str; 8] = [
    "jsons", "har", "mermaid", "md", "pcapng", "ndjson", "capture", "devtools",
];

/// Each kind of secret, with `@` for its random part.
const SHAPES: [&str; 44] = [
    "sk-@",
    "sk-ant-api03-@",
    "sk-proj-@",
    "ghp_@",
    "gho_@",
    "ghs_@",
    "ghu_@",
    "ghr_@",
    "github_pat_@",
    "glpat-@",
    "AIza@",
    "ya29.@",
    "xoxb-@",
    "xoxp-@",
    "npm_@",
    "hf_@",
    "sk_live_@",
    "rk_test_@",
    "AKIA@",
    "gsk_@",
    "xai-@",
    "eyJ@.@.@",
    "Bearer @",
    "Basic @",
    "api_key=@",
    "token: @",
    "password = @",
    "https://user:@@example.com/x",
    "https://example.com/?access_token=@&x=1",
    "-----BEGIN OPENSSH PRIVATE KEY-----\n@\n@\n-----END OPENSSH PRIVATE KEY-----",
    "密钥：sk-@",
    "‘Bearer @’",
    "SG.@.@",
    "dop_v1_@@",
    "hvs.@",
    "glsa_@",
    "sntrys_@",
    "r8_@",
    "tskey-auth-@",
    "Cookie: session=@",
    "Authorization: @",
    "Bearer\t@",
    "GPG_PASSPHRASE=@",
    "https://example.com/x?X-Amz-Signature=@",
];

/// Makes secrets, and knows them all.
#[derive(Default)]
struct Aviary(Vec<String>);

impl Aviary {
    fn secret(&mut self) -> String {
        let mut state = (self.0.len() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut letter = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let alphabet = b"abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ23456789";
            char::from(alphabet[(state >> 20) as usize % alphabet.len()])
        };
        let secret: String = ['Q', '7', 'x']
            .into_iter()
            .chain((0..37).map(|_| letter()))
            .collect();
        self.0.push(secret.clone());
        secret
    }

    fn shaped(&mut self) -> Vec<String> {
        let all = SHAPES.iter().map(|shape| {
            let last = shape.strip_suffix("@example.com/x");
            let mut text = last.unwrap_or(shape).to_owned();
            while text.contains('@') {
                text = text.replacen('@', &self.secret(), 1);
            }
            text + last.map_or("", |_| "@example.com/x")
        });
        all.collect()
    }

    /// None of them is in what `what` has put out.
    fn absent(&self, what: &str, output: &[u8]) {
        let text = String::from_utf8_lossy(output);
        for secret in &self.0 {
            if let Some(at) = text.find(&secret[..12]) {
                let line = text[..at].rfind('\n').map_or(0, |at| at + 1);
                let line: String = text[line..].chars().take(600).collect();
                panic!("{secret} in {what}: {line}");
            }
        }
    }
}

/// What the client says: secrets in each place.
fn input(aviary: &mut Aviary) -> String {
    let mut secret = || aviary.secret();
    let servers = json!([
        {"type": "http", "name": "h", "url": format!("https://u:{}@example.com/?token={}", secret(), secret()),
         "headers": [{"name": "Authorization", "value": secret()}, {"name": "X-Any", "value": secret()}]},
        {"type": "sse", "name": "s", "url": "https://example.com", "headers": [{"name": "Cookie", "value": secret()}]},
        {"name": "x", "command": "y", "args": ["--token", secret(), format!("--api-key={}", secret())],
         "env": [{"name": "PLAIN", "value": secret()}]},
    ]);
    let mut reported = vec![
        json!({"id": 0, "method": "initialize", "params": {"protocolVersion": 1, "_meta": {"token": secret()}}}),
        json!({"id": 1, "method": "authenticate", "params": {"methodId": "m", "deep": {"er": [secret()]}}}),
        json!({"id": 2, "method": "session/new", "params": {"cwd": "/", "mcpServers": servers}}),
    ];
    for (number, text) in aviary.shaped().into_iter().enumerate() {
        reported.push(
            json!({"id": 10 + number, "method": "session/prompt", "params": {"sessionId": "s",
            "prompt": [{"type": "text", "text": format!("use {text} now")}], "_meta": {text: 1}}}),
        );
    }
    let method = format!("_x/sk-{}", aviary.secret());
    reported.push(json!({"id": 9, "method": method, "params": {}}));
    let lines = reported.into_iter().map(|mut message| {
        message["jsonrpc"] = json!("2.0");
        message.to_string() + "\n"
    });
    lines
        .chain([format!("no json: sk-{}\n", aviary.secret())])
        .collect()
}

/// What the agent says, and what it complains about.
fn output(aviary: &mut Aviary) -> (String, String) {
    let update = |update: Value| {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
            .to_string()
            + "\n"
    };
    let (mut reported, mut complains) = (String::new(), String::new());
    let id = |aviary: &mut Aviary| format!("sk-{}", aviary.secret());
    for text in aviary.shaped() {
        let content = json!({"type": "text", "text": format!("it is {text}")});
        reported += &update(json!({"sessionUpdate": "agent_message_chunk", "content": content}));
    }
    for text in aviary.shaped() {
        reported += &update(
            json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": text,
            "content": [{"type": "diff", "path": "/a", "oldText": text, "newText": text}]}),
        );
        reported += &format!("[INFO] {}\n", text.replace('\n', "\\n"));
        reported +=
            &json!({"jsonrpc": "2.0", "id": 10, "error": {"code": 1, "message": text}}).to_string();
        reported += "\n";
    }
    for text in aviary.shaped() {
        complains += &format!("warn: {text}\n");
    }
    reported += &json!({"jsonrpc": "2.0", "id": id(aviary), "method": "terminal/create",
        "params": {"env": [{"name": "N", "value": aviary.secret()}]}})
    .to_string();
    reported += &format!(
        "\n{}\n",
        json!({"jsonrpc": "2.0", "id": id(aviary), "result": {}})
    );
    reported += &format!(
        "[{}]\n",
        json!({"jsonrpc": "2.0", "id": id(aviary), "method": id(aviary)})
    );
    reported += &format!("{{\"id\":1,\"result\":\"{}\",}}\n", id(aviary));
    complains += &format!("without an end: sk-{}", aviary.secret());
    (reported, complains)
}

async fn answer(args: &[&str]) -> Vec<u8> {
    let Outcome { stdout, stderr, .. } = run(args, "").await;
    format!("{stdout}\n{stderr}").into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_ours_holds_a_secret() {
    let mut aviary = Aviary::default();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (reported, complains) = output(&mut aviary);
    fs::write(path("says"), reported).unwrap();
    fs::write(path("complains"), complains).unwrap();
    let input = input(&mut aviary);
    assert!(aviary.0.len() >= 120, "{} are planted", aviary.0.len());

    // It hears all, says all, and dies of it.
    let (reports, complains) = (path("says"), path("complains"));
    let agent = format!(
        "n=0; while [ $n -lt {} ] && read -r line; do n=$((n+1)); done; cat {reports}; cat {complains} >&2; exit 3",
        input.lines().count() - 1,
    );
    let record = path("recordings");
    let agent = ["--", "sh", "-c", agent.as_str()];
    let args = [
        &["connect", "--log", "trace", "--record", record.as_str()][..],
        &agent,
    ]
    .concat();
    let outcome = run(&args, &input).await;
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    aviary.absent("the log", outcome.stderr.as_bytes());
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
    aviary.absent("errors", own.join("\n").as_bytes());

    let files: Vec<_> = fs::read_dir(&record)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let [file] = &files[..] else {
        panic!("{files:?}")
    };
    let recorded = fs::read(file).unwrap();
    aviary.absent("the recording", &recorded);
    let recorded = String::from_utf8(recorded).unwrap();
    assert!(
        recorded.contains("without an end: "),
        "the last words are missing"
    );

    let file = file.to_str().unwrap();
    for args in [
        &["show", file][..],
        &["stats", file],
        &["lint", file],
        &["ls", &record],
        &["grep", "Q7x", file],
        &["verify", file],
        &["show", file, "--json"],
    ] {
        aviary.absent(args[0], &answer(&[&["inspect"], args].concat()).await);
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
        aviary.absent(form, &answer(&args).await);
        aviary.absent(form, &fs::read(out).unwrap());
    }
    replayed(&mut aviary, folder.path()).await;
}

/// A live agent that says a secret where another one was recorded.
async fn replayed(aviary: &mut Aviary, folder: &Path) {
    let path = |name: &str| folder.join(name).display().to_string();
    let (capture, file, report) = (path("capture"), path("two.acpr"), path("report.xml"));
    let asks = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    let answers = |aviary: &mut Aviary| json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1, "say": format!("sk-{}", aviary.secret())}});
    let recorded = answers(aviary);
    let talk =
        format!("{{\"dir\":\"c2a\",\"msg\":{asks}}}\n{{\"dir\":\"a2c\",\"msg\":{recorded}}}\n");
    fs::write(&capture, talk).unwrap();
    answer(&["inspect", "import", &capture, &file, "--redact", "full"]).await;
    let agent = format!("read -r line; echo '{}'; read -r line", answers(aviary));
    let pace = ["--settle", "100ms", "--response-timeout", "5s"];
    for how in [&["--junit", report.as_str()][..], &["--json"]] {
        let args = [
            &["replay", "client", &file, "--log", "trace"],
            how,
            &pace,
            &["--", "sh", "-c", &agent],
        ];
        let reported = answer(&args.concat()).await;
        assert!(
            String::from_utf8_lossy(&reported).contains("say"),
            "no difference is told"
        );
        aviary.absent("replay client", &reported);
    }
    let report = fs::read(report).unwrap();
    assert!(String::from_utf8_lossy(&report).contains("say"));
    aviary.absent("JUnit", &report);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_on_the_command_line_is_not_repeated() {
    let mut aviary = Aviary::default();
    let (password, token) = (aviary.secret(), aviary.secret());
    let folder = tempfile::tempdir().unwrap();
    let bearer = folder.path().join("bearer");
    fs::write(&bearer, format!("{}\n", aviary.secret())).unwrap();
    fs::set_permissions(&bearer, fs::Permissions::from_mode(0o600)).unwrap();
    let bearer = bearer.to_str().unwrap();
    for scheme in ["ws", "http", "tcp"] {
        let to = format!("{scheme}://user:{password}@127.0.0.1:1/acp?token={token}");
        aviary.absent(scheme, &answer(&["connect", "--log", "trace", &to]).await);
        let to = format!("{scheme}://127.0.0.1:1/acp?token={token}");
        aviary.absent(scheme, &answer(&["connect", "--log", "trace", &to]).await);
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
        aviary.absent(scheme, &answer(&args).await);
    }
}
