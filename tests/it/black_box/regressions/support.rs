//! The scripted agent of the tests beside this file.

use std::path::Path;

use crate::support::program::{Program, run_in, words};

pub(in crate::black_box) const NEW_SESSION: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#;
pub(in crate::black_box) const PROMPT: &str = r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}"#;

/// Answers `initialize` and `session/new` (session `s`; its process id is in `_meta`), and runs
/// `$PROMPT` when it reads a prompt.
pub(in crate::black_box) const AGENT: &str = r#"
send() { printf '%s\n' "$1"; }
update() { send '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}}}'; }
while IFS= read -r line; do case "$line" in
*'"initialize"'*) send '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}';;
*'"session/new"'*) send '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s","_meta":{"pid":'$$'}}}';;
*'"session/load"'*) eval "$LOAD";;
*'"session/prompt"'*) eval "$PROMPT";;
esac; done
"#;

/// Starts `serve` with these options and the scripted agent, which runs `on_prompt` at a prompt.
pub(in crate::black_box) fn serve(state: &Path, options: &str, on_prompt: &str) -> Program {
    let on_prompt = format!("PROMPT={}", quoted(on_prompt));
    serve_script(state, options, &format!("{on_prompt}\n{AGENT}"))
}

/// The same with any shell script as the agent.
pub(in crate::black_box) fn serve_script(state: &Path, options: &str, script: &str) -> Program {
    let agent = ["--", "sh", "-c", script];
    Program::start_in(state, &[&["serve"], &words(options)[..], &agent].concat())
}

/// The header line with a new token of this name.
pub(in crate::black_box) async fn bearer(state: &Path, name: &str) -> String {
    let made = run_in(state, &["token", "new", name]).await;
    format!("Authorization: Bearer {}\r\n", made.stdout.trim())
}

/// A word of the shell.
pub(in crate::black_box) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
