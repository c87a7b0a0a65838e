//! A minimal relay, in a process of its own, for tests that kill it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use acp_relay::jsonrpc::Limits;
use acp_relay::transport::process::{Child, Lease, adopt_orphans, settle, spawn};
use acp_relay::transport::{Launch, LinkGuard as _};

use super::notes::{DEADLINE, Notes, Proc, all};

/// Makes this binary a relay instead of a test run.
const ROLE: &str = "ACP_RELAY_TEST_ROLE";

/// This binary in another process, as a relay.
pub(crate) struct Relay {
    child: std::process::Child,
    answers: BufReader<std::process::ChildStdout>,
    pub(crate) process: Proc,
}

impl Relay {
    pub(crate) fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::relay::role", "--nocapture"])
            .env(ROLE, "relay")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let process = Proc::of(child.id()).unwrap();
        Self {
            child,
            answers,
            process,
        }
    }

    /// Makes it start an agent that records its processes.
    pub(crate) fn spawn(&mut self, notes: &Notes, script: &str) {
        let words = notes.script(script);
        let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
        self.notify(&format!("spawn {}", serde_json::json!(words)));
    }

    /// Sends it a line and waits for its answer, or its end.
    pub(crate) fn notify(&mut self, line: &str) -> String {
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
        loop {
            let mut answer = String::new();
            if self.answers.read_line(&mut answer).unwrap() == 0 {
                return String::new();
            }
            // The test harness prints, too, and not always whole lines.
            if let Some((_, answer)) = answer.split_once('@') {
                return answer.trim_end().to_owned();
            }
        }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn children(&self) -> Vec<Proc> {
        let mut found = all();
        found.retain(|process| process.parent() == self.process.pid);
        found
    }

    pub(crate) fn watchdogs(&self) -> Vec<Proc> {
        let mut found = self.children();
        found.retain(Proc::is_watchdog);
        found
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test of its own: what `Relay` runs. A minimal relay: it executes each line of its stdin
/// and answers with a line that begins with `@`.
#[test]
fn role() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    adopt_orphans(Ok(env!("CARGO_BIN_EXE_acp-relay").into()));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let mut agents: Vec<Option<Child>> = Vec::new();
    let mut leases = Vec::new();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = match verb {
            "spawn" => {
                let words: Vec<String> = serde_json::from_str(rest).unwrap();
                let argv: Vec<OsString> = words.into_iter().map(OsString::from).collect();
                leases.push(Lease::default());
                let launch = Launch {
                    lease: leases.last().cloned(),
                    ..Launch::default()
                };
                let limits = Limits::default();
                let agent = runtime.block_on(spawn(&argv, &launch, &limits));
                agents.push(Some(agent.unwrap()));
                String::new()
            }
            "grant" => {
                let (agent, time) = rest.split_once(' ').unwrap();
                let time = Duration::from_millis(time.parse().unwrap());
                leases[agent.parse::<usize>().unwrap()].extend(Instant::now() + time);
                String::new()
            }
            "drop" => {
                agents[rest.parse::<usize>().unwrap()] = None;
                String::new()
            }
            "exited" => {
                let agent = agents[rest.parse::<usize>().unwrap()].as_mut().unwrap();
                let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
                agent.hold.poll_exit(&mut cx).is_ready().to_string()
            }
            "settle" => settle(DEADLINE).to_string(),
            "exit" => std::process::exit(0),
            _ => panic!("{line}"),
        };
        println!("@{answer}");
    }
}
