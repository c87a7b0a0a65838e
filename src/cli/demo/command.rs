//! The command line of `acp-relay demo`: starts the relays, runs one turn with the client of `try`, and
//! shows it as it happens.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{self, Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::runtime::Builder;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::cli::inspect;
use crate::cli::rpc_client::{Failure, RpcClient};
use crate::cli::try_agent::{Frontend, Permission, Session, Shown};
use crate::cli::{console, exit, processes, runtime, shutdown};
use observe::recorder::Folder;
use proxy::StopSignals;
use recording::{Recording, recordings};

/// How long the serving relay may take until it listens.
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
    /// Record the conversation into a file in this folder
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Show the recording in a browser, until Ctrl-C; without --record it is deleted then
    #[arg(long)]
    open: bool,
}

/// Shows the turn, and performs on the files of a folder what the agent asks for.
struct Editor<'a>(&'a Path);

/// Runs the subcommand.
pub(in crate::cli) fn run(args: &Demo) -> ExitCode {
    let builder = match args.open {
        true => Builder::new_multi_thread(),
        false => Builder::new_current_thread(),
    };
    let client = async { run_client(args).await.unwrap_or_else(|code| code) };
    processes::run_and_reap(|| runtime::drive(builder, client))
}

/// Runs the client until it is asked to stop; dropping the future removes everything it created.
async fn run_client(args: &Demo) -> Result<ExitCode, ExitCode> {
    let stop = StopSignals::default();
    shutdown::watch(stop.clone(), None)?;
    let temporary = (args.open && args.record.is_none()).then(temporary_folder);
    let temporary = temporary.transpose();
    let temporary = temporary.map_err(|error| exit::fail(exit::SYSTEM, &error))?;
    let record = args.record.as_deref();
    let record = record.or_else(|| temporary.as_ref().map(tempfile::TempDir::path));
    let record = record.map(recordings_folder).transpose();
    let record = record.map_err(|fault| exit::fail(exit::CANNOT_CREATE, &fault))?;
    let played = play(args.deny, record.as_deref(), args.record.is_some());
    Ok(match stop.requested.run_until_cancelled(played).await {
        None => exit::fail(exit::STOPPED, &"stopped before the demo was over"),
        Some(Ok(())) => match record {
            Some(folder) if args.open => {
                let shown = match recordings(&folder).as_deref() {
                    Ok([Recording { segments, .. }]) if segments.len() == 1 => segments[0].clone(),
                    _ => folder,
                };
                inspect::show(&shown, 0, true, stop).await?
            }
            _ => ExitCode::SUCCESS,
        },
        Some(Err(error)) if error.is::<io::Error>() => exit::fail(exit::SYSTEM, &error),
        Some(Err(error)) => exit::fail(exit::UNAVAILABLE, &format!("the demo failed: {error}")),
    })
}

fn temporary_folder() -> io::Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix("acp-relay-demo-").tempdir()
}

/// The absolute path of a folder for recordings, which is created now: the relay's own error would
/// not be seen.
fn recordings_folder(folder: &Path) -> Result<PathBuf, String> {
    let created = path::absolute(folder).and_then(|folder| {
        Folder::new(&folder, "", 0)?;
        Ok(folder)
    });
    created.map_err(|error| format!("cannot record into {}: {error}", folder.display()))
}

/// Runs the client, with everything it needs. The conversation is recorded in `record`, which is
/// named at the end if it `remains`.
async fn play(deny: bool, record: Option<&Path>, remains: bool) -> Result<(), Failure> {
    let program = std::env::current_exe()?;
    let folder = temporary_folder()?;
    let file = folder.path().join("greeting.txt");
    fs::write(&file, BEFORE)?;
    let talk = folder.path().join("agent.jsonl");
    fs::write(&talk, [TURN, if deny { REFUSED } else { ALLOWED }].concat())?;

    let (mut serve, address) = start_serve(program.as_os_str(), &talk).await?;
    show(&format!(
        "editor ─ stdio ─▶ acp-relay connect ─ {address} ─▶ acp-relay serve ─ stdio ─▶ agent\n"
    ))?;
    let mut connect = relay(program.as_os_str())
        .args(["connect", &address])
        .args(
            record
                .into_iter()
                .flat_map(|folder| [Path::new("--record"), folder]),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let stdout = connect.stdout.take().ok_or("no stdout")?;
    let mut client = RpcClient::new(stdout, connect.stdin.take().ok_or("no stdin")?);
    let mut editor = Editor(folder.path());
    let permission = match deny {
        true => Permission::Reject,
        false => Permission::Allow,
    };
    // The future is dropped when the demo is asked to stop.
    let interrupted = CancellationToken::new();
    let mut session = Session::new(&mut editor, &interrupted, permission, None);
    let capabilities = json!({ "fs": { "readTextFile": true, "writeTextFile": true } });
    let about = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
    let about = session.call(&mut client, "initialize", about).await?;
    let prompt = Some("Make the greeting warmer.".to_owned());
    let turn = session.run(client, &about, (None, None), folder.path(), prompt, false);
    turn.await?;

    // The client has closed the stdin of the relay, which ends it.
    let ended = connect.wait().await?;
    let after = fs::read_to_string(&file)?;
    show(&format!(
        "\ngreeting.txt was   {BEFORE:?}\ngreeting.txt is    {after:?}"
    ))?;
    show(&format!("the connecting relay ended with {ended}"))?;
    if let Some(pid) = serve.id() {
        kill_process(
            Pid::from_raw(pid.cast_signed()).ok_or("no process")?,
            Signal::TERM,
        )?;
    }
    show(&format!(
        "the serving relay ended with {}",
        serve.wait().await?
    ))?;
    if (after == BEFORE) != deny {
        return Err("the file does not have the expected content after the turn".into());
    }
    if let Some(folder) = record.filter(|_| remains) {
        let folder = folder.to_string_lossy();
        let word = shell_words::quote(&folder);
        show(&format!(
            "\nrecorded in {folder}; to see it in a browser:  acp-relay inspect open {word}"
        ))?;
    }
    show(
        "\nNext:  acp-relay serve -- YOUR-AGENT   and, as the editor's agent,   acp-relay connect ENDPOINT",
    )?;
    Ok(())
}

/// A relay, which ends with its handle.
fn relay(program: &OsStr) -> Command {
    let mut command = Command::new(program);
    command.kill_on_drop(true);
    command
}

/// Starts the relay of the agent, which is the recording at `talk`, and returns its address.
async fn start_serve(program: &OsStr, talk: &Path) -> Result<(Child, String), Failure> {
    let mut serve = relay(program)
        .args(["serve", "--listen", "ws://127.0.0.1:0", "--"])
        .arg(program)
        .args(["replay", "agent", "--match", "order"])
        .arg(talk)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stderr = BufReader::new(serve.stderr.take().ok_or("no stderr")?).lines();
    let mut printed = String::new();
    let started = async {
        while let Some(line) = stderr.next_line().await? {
            if let Some(address) = line.strip_prefix("acp-relay: listening on ") {
                return Ok(Some(address.to_owned()));
            }
            printed += &(line + "\n");
        }
        io::Result::Ok(None)
    };
    match timeout(START_TIMEOUT, started).await {
        Ok(Ok(Some(address))) => Ok((serve, address)),
        Ok(Err(error)) => Err(error.into()),
        _ => Err(format!("the relay did not start: {printed}").into()),
    }
}

impl Frontend for Editor<'_> {
    fn show(&mut self, shown: &Shown<'_>) -> io::Result<()> {
        match shown {
            Shown::Call(method) => show(&format!("▶ {method}")),
            Shown::Initialized(about, ..) => {
                show(&format!("    ◀ {}", text(&about["agentInfo"]["name"])))
            }
            Shown::Update(update) => show_update(update),
            Shown::Permission(params) => {
                let call = &params["toolCall"];
                let title = text(&call["title"]);
                show(&format!("    ◀ session/request_permission  {title}?"))?;
                for (sign, member) in [('-', "oldText"), ('+', "newText")] {
                    let line = text(&call["content"][0][member]).trim_end();
                    show(&format!("        {sign} {line}"))?;
                }
                Ok(())
            }
            Shown::Answer(Some(option)) => show(&format!("    ▶ {}", text(&option["name"]))),
            Shown::Stopped(reason) => show(&format!("    ◀ stop reason: {reason}")),
            _ => Ok(()),
        }
    }

    fn perform(&mut self, method: &str, params: &Value) -> Result<Option<Value>, Failure> {
        let path = Path::new(text(&params["path"]));
        if path.parent() != Some(self.0) {
            return Err(format!("the agent called {method} for {}", path.display()).into());
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        show(&format!("    ◀ {method}  {name}"))?;
        match method {
            "fs/read_text_file" => Ok(Some(json!({ "content": fs::read_to_string(path)? }))),
            "fs/write_text_file" => {
                fs::write(path, text(&params["content"]))?;
                Ok(Some(Value::Null))
            }
            _ => Ok(None),
        }
    }
}

fn show_update(update: &Value) -> io::Result<()> {
    let kind = text(&update["sessionUpdate"]);
    for entry in update["entries"].as_array().into_iter().flatten() {
        let (content, status) = (text(&entry["content"]), text(&entry["status"]));
        show(&format!("    ◀ {kind}: {content} ({status})"))?;
    }
    match (
        update["content"]["text"].as_str(),
        update["status"].as_str(),
    ) {
        (Some(said), _) => show(&format!("    ◀ “{said}”")),
        (None, Some(status)) => show(&format!("    ◀ {kind}: {status}")),
        (None, None) => Ok(()),
    }
}

/// Shows a line to the person at the terminal; the demo continues if stdout is closed.
fn show(line: &str) -> io::Result<()> {
    console::show(line).map_err(|error| io::Error::other(format!("cannot print: {error}")))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
