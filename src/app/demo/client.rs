//! A small client: starts the relays, takes one turn, and shows it as it happens.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::talk::{Failure, Talk};
use crate::transport::registry;
use crate::transport::{Endpoint, Setup};

const BEFORE: &str = "hello, reader\n";

/// A folder that goes away with its owner.
struct Folder(PathBuf);

/// Plays the client, with everything it needs.
pub(super) async fn play(deny: bool) -> Result<(), Failure> {
    let program = std::env::current_exe()?.into_os_string();
    let folder = Folder::new()?;
    let file = folder.0.join("greeting.txt");
    fs::write(&file, BEFORE)?;

    let (mut serve, address) = start_serve(&program).await?;
    show(&format!(
        "editor ─ stdio ─▶ acp-relay connect ─ {address} ─▶ acp-relay serve ─ stdio ─▶ agent\n"
    ));
    let words = vec![program, "connect".into(), OsString::from(&address)];
    let mut talk = Talk::over(registry::connect(&Endpoint::Exec(words), &Setup::default()).await?);

    let capabilities = json!({ "fs": { "readTextFile": true, "writeTextFile": true } });
    let about = ask(
        &mut talk,
        &folder.0,
        deny,
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": capabilities }),
    )
    .await?;
    show(&format!(
        "    ◀ {} {}",
        text(&about["agentInfo"]["name"]),
        text(&about["agentInfo"]["version"])
    ));
    let session = ask(
        &mut talk,
        &folder.0,
        deny,
        "session/new",
        json!({ "cwd": folder.0, "mcpServers": [] }),
    )
    .await?;
    let prompt = json!([{ "type": "text", "text": "Make the greeting warmer." }]);
    let turn = json!({ "sessionId": session["sessionId"], "prompt": prompt });
    let done = ask(&mut talk, &folder.0, deny, "session/prompt", turn).await?;
    show(&format!("    ◀ stop reason: {}", text(&done["stopReason"])));

    let exit = talk.leave().await?;
    let after = fs::read_to_string(&file)?;
    show(&format!(
        "\ngreeting.txt was   {BEFORE:?}\ngreeting.txt is    {after:?}"
    ));
    show(&format!("the connecting relay ended with {exit}"));
    stop(&mut serve).await?;
    if (after == BEFORE) != deny {
        return Err("the file is not what the turn should have left".into());
    }
    show(
        "\nYours now:  acp-relay serve -- YOUR-AGENT   and, as the editor's agent,   acp-relay connect ENDPOINT",
    );
    Ok(())
}

/// Starts the relay beside the agent and returns where it listens.
async fn start_serve(program: &OsString) -> Result<(Child, String), Failure> {
    let mut serve = Command::new(program)
        .args(["serve", "--listen", "ws://127.0.0.1:0", "--"])
        .arg(program)
        .args(["demo", "--part", "agent"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stderr = serve.stderr.take().ok_or("the relay has no stderr")?;
    let mut lines = BufReader::new(stderr).lines();
    while let Some(line) = lines.next_line().await? {
        if let Some(address) = line.strip_prefix("acp-relay: listening on ") {
            return Ok((serve, address.to_owned()));
        }
        show(&line);
    }
    Err("the relay did not start".into())
}

async fn stop(serve: &mut Child) -> Result<(), Failure> {
    if let Some(pid) = serve
        .id()
        .and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed()))
    {
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
    }
    let status = serve.wait().await?;
    show(&format!("the serving relay ended with {status}"));
    Ok(())
}

/// Asks the agent, serving what it asks meanwhile.
async fn ask(
    talk: &mut Talk,
    folder: &Path,
    deny: bool,
    method: &str,
    params: Value,
) -> Result<Value, Failure> {
    show(&format!("▶ {method}"));
    let id = talk.ask(method, params).await?;
    loop {
        let message = talk
            .hear()
            .await?
            .ok_or("the agent left in the middle of a turn")?;
        match (
            message.get("method").and_then(Value::as_str),
            message.get("id"),
        ) {
            (Some("session/update"), None) => show_update(&message["params"]["update"]),
            (Some(method), Some(id)) => {
                let result = serve_agent(folder, deny, method, &message["params"])?;
                talk.answer(id, result).await?;
            }
            (None, Some(answered)) if *answered == id => {
                return match message.get("result") {
                    Some(result) => Ok(result.clone()),
                    None => Err(format!("{method}: {}", message["error"]["message"]).into()),
                };
            }
            _ => {}
        }
    }
}

/// Does what the agent asks of an editor.
fn serve_agent(folder: &Path, deny: bool, method: &str, params: &Value) -> Result<Value, Failure> {
    let path = Path::new(params["path"].as_str().unwrap_or_default());
    if method.starts_with("fs/") && path.parent() != Some(folder) {
        return Err(format!("the agent reached for {}", path.display()).into());
    }
    match method {
        "fs/read_text_file" => {
            show(&format!("    ◀ {method}  {}", name(path)));
            Ok(json!({ "content": fs::read_to_string(path)? }))
        }
        "fs/write_text_file" => {
            show(&format!("    ◀ {method}  {}", name(path)));
            fs::write(path, params["content"].as_str().unwrap_or_default())?;
            Ok(Value::Null)
        }
        "session/request_permission" => {
            let call = &params["toolCall"];
            show(&format!("    ◀ {method}  {}?", text(&call["title"])));
            show(&format!(
                "        - {}",
                text(&call["content"][0]["oldText"]).trim_end()
            ));
            show(&format!(
                "        + {}",
                text(&call["content"][0]["newText"]).trim_end()
            ));
            let kind = if deny { "reject_once" } else { "allow_once" };
            let options = params["options"]
                .as_array()
                .ok_or("a permission without options")?;
            let chosen = options
                .iter()
                .find(|option| option["kind"] == kind)
                .ok_or("no such option")?;
            show(&format!("    ▶ {}", text(&chosen["name"])));
            Ok(json!({ "outcome": { "outcome": "selected", "optionId": chosen["optionId"] } }))
        }
        other => Err(format!("the agent asked for {other}").into()),
    }
}

fn show_update(update: &Value) {
    match update["sessionUpdate"].as_str() {
        Some("plan") => {
            for entry in update["entries"].as_array().into_iter().flatten() {
                show(&format!(
                    "    ◀ plan: {} ({})",
                    text(&entry["content"]),
                    text(&entry["status"])
                ));
            }
        }
        Some("agent_message_chunk") => {
            show(&format!("    ◀ “{}”", text(&update["content"]["text"])))
        }
        Some(kind) => show(&format!("    ◀ {kind}: {}", text(&update["status"]))),
        None => {}
    }
}

#[expect(
    clippy::print_stdout,
    reason = "the demo is for the person at the terminal; its protocol runs in child processes"
)]
fn show(line: &str) {
    println!("{line}");
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

impl Folder {
    fn new() -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("acp-relay-demo-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
