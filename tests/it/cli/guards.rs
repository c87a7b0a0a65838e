//! What a remote agent may use of the machine of its client, through the program.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::metrics::stage::{Relay, Scrape};
use crate::support::link::run as block_on;
use crate::support::program::{Program, run};

/// Makes the calls on its command line, in order, once it has a session, and forwards the answers
/// in notifications.
const ASKING: &str = r#"
import json, sys
calls = [json.loads(call) for call in sys.argv[1:]]
def send(message):
    print(json.dumps({'jsonrpc': '2.0', **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message.get('method') == 'session/new':
        send({'method': '_new', 'params': message['params']})
        send({'id': message['id'], 'result': {'sessionId': 's'}})
        for at, (method, params) in enumerate(calls):
            send({'id': at, 'method': method, 'params': params})
    elif 'method' not in message:
        send({'method': '_answered', 'params': message})
"#;

/// What a client receives that opens a session in `folder` and answers every call with a result.
async fn received(options: &[&str], folder: &str, calls: &[Value]) -> Vec<Value> {
    counted(options, folder, calls).await.0
}

/// The same, and the metrics.
async fn counted(options: &[&str], folder: &str, calls: &[Value]) -> (Vec<Value>, Scrape) {
    let texts: Vec<String> = calls.iter().map(Value::to_string).collect();
    let mut args = vec![
        "connect",
        "--admin",
        "127.0.0.1:0",
        "--agent-dialect",
        "canonical",
    ];
    args.extend(["--client-dialect", "canonical"]);
    args.extend(options);
    args.extend(["--", "python3", "-uc", ASKING]);
    args.extend(texts.iter().map(String::as_str));
    let mut program = Program::start(&args);
    let admin = program.complaint().await.unwrap();
    let (_, admin) = admin.split_once("admin at http://").unwrap();
    let params = json!({"cwd": folder, "mcpServers": []});
    let new = json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params});
    program.write(&format!("{new}\n")).await;
    let mut received = Vec::new();
    let mut answered = 0;
    while answered < calls.len() {
        let message = program.json().await;
        if message.get("method").is_some() && message.get("id").is_some() {
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {}});
            program.write(&format!("{answer}\n")).await;
        }
        answered += usize::from(message["method"] == "_answered");
        received.push(message);
    }
    let answer = Relay::ask_at(admin, "GET", "/metrics", &[("Host", admin)]);
    (received, Scrape::read(&answer.body))
}

fn methods(received: &[Value]) -> Vec<&str> {
    let methods = received.iter().filter_map(|one| one["method"].as_str());
    methods.filter(|method| !method.starts_with('_')).collect()
}

#[test]
fn a_guarded_agent_gets_no_commands_and_only_the_sessions_files() {
    block_on(async {
        let place = tempfile::tempdir().unwrap();
        let work = place.path().join("work");
        fs::create_dir(&work).unwrap();
        fs::write(place.path().join("secret"), "x").unwrap();
        symlink("../secret", work.join("link")).unwrap();
        let read = |path: &str| json!(["fs/read_text_file", {"sessionId": "s", "path": path}]);
        let inside = work.join("new").display().to_string();
        let outside = place.path().join("secret").display().to_string();
        let link = work.join("link").display().to_string();
        let calls = [
            json!(["terminal/create", {"sessionId": "s", "command": "id"}]),
            read(&outside),
            read(&link),
            read(&inside),
        ];
        let folder = work.display().to_string();
        let (received, scrape) = counted(&["--guard", "always"], &folder, &calls).await;
        assert_eq!(methods(&received), ["fs/read_text_file"], "{received:#?}");
        let denied = received.iter().filter(|one| one["method"] == "_answered");
        let denied: Vec<_> = denied
            .map(|one| one["params"]["error"]["code"].clone())
            .collect();
        assert_eq!(denied[..3], [-32057, -32057, -32057], "{received:#?}");

        let decisions = |method| {
            let labels = [("method", method), ("outcome", "denied")];
            scrape.value("acp_relay_policy_decisions_total", &labels)
        };
        assert_eq!(decisions("terminal/create"), 1.);
        assert_eq!(decisions("fs/read_text_file"), 2.);
        let ours = [("side", "agent"), ("code", "-32057")];
        let errors = scrape.value("acp_relay_synthesised_errors_total", &ours);
        assert_eq!(errors, 3.);

        let free = self::received(&[], &folder, &calls).await;
        assert_eq!(
            methods(&free).len(),
            4,
            "an agent started here is not guarded"
        );
        let root = ["--guard", "always", "--root", "/", "--allow", "terminal/*"];
        let free = self::received(&root, &folder, &calls).await;
        assert_eq!(methods(&free).len(), 4);
    });
}

#[test]
fn paths_are_mapped_for_the_other_machine() {
    block_on(async {
        let calls = [json!(["fs/read_text_file", {"sessionId": "s", "path": "/srv/app/x"}])];
        let received = received(&["--map", "/home/me/app=/srv/app"], "/home/me/app", &calls).await;
        assert_eq!(received[0]["params"]["cwd"], "/srv/app", "{received:#?}");
        let call = received
            .iter()
            .find(|one| one["method"] == "fs/read_text_file")
            .unwrap();
        assert_eq!(call["params"]["path"], "/home/me/app/x");
    });
}

#[test]
fn requested_path_mappings_are_not_warnings() {
    block_on(async {
        let agent = ["--map", "/home/me=/srv", "--", "cat"];
        let new = r#"{"jsonrpc":"2.0","method":"session/new","params":{"cwd":"/home/me/app","mcpServers":[]}}"#;
        for (log, logged) in [("warn", 0), ("info", 10)] {
            let mut args = vec!["connect", "--log", log];
            args.extend(agent);
            let outcome = run(&args, &format!("{new}\n").repeat(30)).await;
            let lines = outcome.stderr.matches("to the other machine").count();
            assert_eq!(lines, logged, "{}", outcome.stderr);
        }
    });
}
