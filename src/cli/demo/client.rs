//! The command line of `acp-relay demo`, and its client: starts the relays, runs one turn, and shows
//! it as it happens.

use std::ffi::OsString;
use std::fs;
use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::task::Poll;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::cli::{console, exit, processes, runtime, shutdown};
use crate::jsonrpc::framing::Decoded;
use crate::jsonrpc::{CloseReason, Frame};
use crate::proxy::StopSignals;
use crate::transport::registry;
use crate::transport::{Endpoint, Exit, Link, Setup, StopStep};

/// How often the serving relay's stderr is read until it has the address, and for how long.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// The content of the file that the agent changes.
const BEFORE: &str = "hello, reader\n";

/// The recorded agent: its turn until it asks for permission, and both endings.
const TURN: &str = include_str!("turn.jsonl");
const ALLOWED: &str = include_str!("allowed.jsonl");
const REFUSED: &str = include_str!("refused.jsonl");

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Demo {
    /// Refuse the agent's edit instead of allowing it
    #[arg(long)]
    deny: bool,
}

/// Why a part of the demo cannot continue.
type Failure = Box<dyn std::error::Error>;

/// One end of the link.
struct RpcLink {
    link: Link,
    next_id: u64,
}

/// Runs the subcommand.
pub(in crate::cli) fn run(args: &Demo) -> ExitCode {
    processes::run_and_reap(|| runtime::drive(Builder::new_current_thread(), run_client(args.deny)))
}

/// Runs the client until it is asked to stop; dropping the future removes everything it created.
async fn run_client(deny: bool) -> ExitCode {
    let stop = StopSignals::default();
    if let Err(code) = shutdown::watch(stop.clone(), None) {
        return code;
    }
    match stop.requested.run_until_cancelled(play(deny)).await {
        None => exit::fail(exit::STOPPED, &"stopped before the demo was over"),
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) if error.is::<io::Error>() => exit::fail(exit::SYSTEM, &error),
        Some(Err(error)) => exit::fail(exit::UNAVAILABLE, &format!("the demo failed: {error}")),
    }
}

/// Runs the client, with everything it needs.
async fn play(deny: bool) -> Result<(), Failure> {
    let program = std::env::current_exe()?.into_os_string();
    let folder = tempfile::Builder::new()
        .prefix("acp-relay-demo-")
        .tempdir()?;
    let file = folder.path().join("greeting.txt");
    fs::write(&file, BEFORE)?;

    let talk = folder.path().join("agent.jsonl");
    fs::write(&talk, [TURN, if deny { REFUSED } else { ALLOWED }].concat())?;

    let (serve, address) = start_serve(&program, &talk).await?;
    show(&format!(
        "editor ─ stdio ─▶ acp-relay connect ─ {address} ─▶ acp-relay serve ─ stdio ─▶ agent\n"
    ))?;
    let words = vec![program, "connect".into(), OsString::from(&address)];
    let mut link =
        RpcLink::new(registry::connect(&Endpoint::Exec(words), &Setup::default()).await?);

    let capabilities = json!({ "fs": { "readTextFile": true, "writeTextFile": true } });
    let perform = |method: &str, params: &Value| serve_agent(folder.path(), deny, method, params);
    show("▶ initialize")?;
    let about = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
    let about = link.request("initialize", about, perform).await?;
    show(&format!("    ◀ {}", text(&about["agentInfo"]["name"])))?;
    show("▶ session/new")?;
    let session = json!({ "cwd": folder.path(), "mcpServers": [] });
    let session = link.request("session/new", session, perform).await?;
    let prompt = json!([{ "type": "text", "text": "Make the greeting warmer." }]);
    let turn = json!({ "sessionId": session["sessionId"], "prompt": prompt });
    show("▶ session/prompt")?;
    let done = link.request("session/prompt", turn, perform).await?;
    show(&format!("    ◀ stop reason: {}", text(&done["stopReason"])))?;

    let exit = link.close().await?;
    let after = fs::read_to_string(&file)?;
    show(&format!(
        "\ngreeting.txt was   {BEFORE:?}\ngreeting.txt is    {after:?}"
    ))?;
    show(&format!("the connecting relay ended with {exit}"))?;
    stop(serve).await?;
    if (after == BEFORE) != deny {
        return Err("the file does not have the expected content after the turn".into());
    }
    show(
        "\nNext:  acp-relay serve -- YOUR-AGENT   and, as the editor's agent,   acp-relay connect ENDPOINT",
    )?;
    Ok(())
}

impl RpcLink {
    fn new(link: Link) -> Self {
        Self { link, next_id: 0 }
    }

    /// The next message; `None` at the end of the stream.
    async fn receive(&mut self) -> Result<Option<Value>, Failure> {
        match poll_fn(|cx| self.link.rx.poll_next(cx)).await {
            None => Ok(None),
            Some(Ok(Decoded::Frame(frame))) => Ok(Some(serde_json::from_slice(frame.as_bytes())?)),
            Some(Ok(Decoded::Error(error))) => Err(error.to_string().into()),
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// Sends a request and waits for its result. `perform` receives the messages of the other end
    /// meanwhile, and its value answers those that are requests.
    async fn request(
        &mut self,
        method: &str,
        params: Value,
        perform: impl Fn(&str, &Value) -> Result<Value, Failure>,
    ) -> Result<Value, Failure> {
        let own = json!(self.next_id);
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": own, "method": method, "params": params }))
            .await?;
        loop {
            let message = self.receive().await?;
            let message = message.ok_or("the other end closed in the middle of a turn")?;
            match (message["method"].as_str(), message.get("id")) {
                (Some(method), id) => {
                    let result = perform(method, &message["params"])?;
                    if let Some(id) = id {
                        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
                            .await?;
                    }
                }
                (None, Some(id)) if *id == own => {
                    return match message.get("result") {
                        Some(result) => Ok(result.clone()),
                        None => Err(format!("{method}: {}", message["error"]["message"]).into()),
                    };
                }
                _ => {}
            }
        }
    }

    /// Closes our stream and waits until the other end has exited.
    async fn close(mut self) -> Result<Exit, Failure> {
        poll_fn(|cx| self.link.tx.poll_close(cx, CloseReason::Done)).await?;
        while self.receive().await?.is_some() {}
        Ok(poll_fn(|cx| self.link.guard.poll_exit(cx)).await)
    }

    async fn send(&mut self, message: &Value) -> Result<(), Failure> {
        poll_fn(|cx| self.link.tx.poll_ready(cx)).await?;
        self.link.tx.start_send(Frame::from(message.to_string()))?;
        poll_fn(|cx| self.link.tx.poll_flush(cx)).await?;
        Ok(())
    }
}

/// Starts the relay of the agent, which is the recording at `talk`, and returns its address.
async fn start_serve(program: &OsString, talk: &Path) -> Result<(Link, String), Failure> {
    let mut words: Vec<OsString> = vec![program.clone()];
    words.extend(["serve", "--listen", "ws://127.0.0.1:0", "--"].map(OsString::from));
    words.push(program.clone());
    words.extend(["replay", "agent", "--match", "order"].map(OsString::from));
    words.push(talk.into());
    let mut serve = registry::connect(&Endpoint::Exec(words), &Setup::default()).await?;
    let mut waited = Duration::ZERO;
    loop {
        let stderr = serve.guard.stderr_tail();
        let mut lines = stderr.lines();
        if let Some(address) = lines.find_map(|line| line.strip_prefix("acp-relay: listening on "))
        {
            return Ok((serve, address.to_owned()));
        }
        let exit = poll_fn(|cx| Poll::Ready(serve.guard.poll_exit(cx))).await;
        if exit.is_ready() || waited > START_TIMEOUT {
            return Err(format!("the relay did not start: {stderr}").into());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        waited += POLL_INTERVAL;
    }
}

async fn stop(mut serve: Link) -> io::Result<()> {
    serve.guard.signal(StopStep::Terminate);
    let exit = poll_fn(|cx| serve.guard.poll_exit(cx)).await;
    show(&format!("the serving relay ended with {exit}"))
}

/// Performs what the agent sends as an editor does.
fn serve_agent(folder: &Path, deny: bool, method: &str, params: &Value) -> Result<Value, Failure> {
    let path = Path::new(params["path"].as_str().unwrap_or_default());
    if method.starts_with("fs/") && path.parent() != Some(folder) {
        return Err(format!("the agent requested {}", path.display()).into());
    }
    match method {
        "session/update" => {
            show_update(&params["update"])?;
            Ok(Value::Null)
        }
        "fs/read_text_file" => {
            show(&format!("    ◀ {method}  {}", name(path)))?;
            Ok(json!({ "content": fs::read_to_string(path)? }))
        }
        "fs/write_text_file" => {
            show(&format!("    ◀ {method}  {}", name(path)))?;
            fs::write(path, params["content"].as_str().unwrap_or_default())?;
            Ok(Value::Null)
        }
        "session/request_permission" => {
            let call = &params["toolCall"];
            show(&format!("    ◀ {method}  {}?", text(&call["title"])))?;
            for (sign, member) in [('-', "oldText"), ('+', "newText")] {
                let line = text(&call["content"][0][member]).trim_end();
                show(&format!("        {sign} {line}"))?;
            }
            let kind = if deny { "reject_once" } else { "allow_once" };
            let mut options = params["options"].as_array().into_iter().flatten();
            let chosen = options
                .find(|option| option["kind"] == kind)
                .ok_or("a permission request without the expected option")?;
            show(&format!("    ▶ {}", text(&chosen["name"])))?;
            Ok(json!({ "outcome": { "outcome": "selected", "optionId": chosen["optionId"] } }))
        }
        other => Err(format!("the agent called {other}").into()),
    }
}

fn show_update(update: &Value) -> io::Result<()> {
    match update["sessionUpdate"].as_str() {
        Some("plan") => {
            for entry in update["entries"].as_array().into_iter().flatten() {
                let (content, status) = (text(&entry["content"]), text(&entry["status"]));
                show(&format!("    ◀ plan: {content} ({status})"))?;
            }
        }
        Some("agent_message_chunk") => {
            show(&format!("    ◀ “{}”", text(&update["content"]["text"])))?;
        }
        Some(kind) => show(&format!("    ◀ {kind}: {}", text(&update["status"])))?,
        None => {}
    }
    Ok(())
}

/// Shows a line to the person at the terminal; the demo continues if stdout is closed.
fn show(line: &str) -> io::Result<()> {
    console::show(line).map_err(|error| io::Error::other(format!("cannot print: {error}")))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}
