//! Whether agents answer `initialize`. Each is asked by `acp-relay try --json` in a process of its
//! own, which is what an editor would start, and which ends with it.

use std::ffi::OsString;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{framing, runtime};
use jsonrpc::printable;

/// How long an agent may take to answer; some start a runtime and look for updates first.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The name and version that an agent states, which may be none, or why it does not answer.
pub(super) type Answer = Result<String, String>;

/// Asks all agents at once, each given as arguments of `try`; answers in their order. Errors are
/// printed, and the exit code is returned.
pub(super) fn all(agents: Vec<Vec<OsString>>) -> Result<Vec<Answer>, ExitCode> {
    let runtime = runtime::build(Builder::new_current_thread())?;
    Ok(runtime.block_on(async {
        let mut answers = vec![Err("it was not asked".to_owned()); agents.len()];
        let mut asked = JoinSet::new();
        for (index, agent) in agents.into_iter().enumerate() {
            asked.spawn(async move { (index, one(agent).await) });
        }
        while let Some(answer) = asked.join_next().await {
            if let Ok((index, answer)) = answer {
                answers[index] = answer;
            }
        }
        answers
    }))
}

async fn one(agent: Vec<OsString>) -> Answer {
    let program = std::env::current_exe().map_err(|fault| fault.to_string())?;
    let mut command = Command::new(program);
    command
        .args(["--log", "error", "try", "--json"])
        .args(agent);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(TIMEOUT, command.output());
    let output = output.await.map_err(|_| {
        let seconds = TIMEOUT.as_secs();
        format!(
            "it did not answer initialize within {seconds} seconds. {}",
            framing::HINT
        )
    })?;
    let output = output.map_err(|fault| fault.to_string())?;
    let about = output.stdout.split(|byte| *byte == b'\n').next();
    let about: Option<Value> = about.and_then(|line| serde_json::from_slice(line).ok());
    match about.filter(|about| about["event"] == "initialized") {
        Some(about) => {
            let text = |member: &str| about["result"]["agentInfo"][member].as_str().unwrap_or("");
            let who = format!("{} {}", text("name"), text("version"));
            let who = printable(who.trim().as_bytes());
            Ok(match about["framing"].as_str() {
                Some(framing) => format!("{who}; it needs `--agent-framing {framing}`"),
                None => who,
            })
        }
        None => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().last().unwrap_or("it said nothing");
            Err(last.trim_start_matches("acp-relay: ").to_owned())
        }
    }
}
