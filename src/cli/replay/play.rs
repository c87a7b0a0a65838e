//! Plays the client of a script to a live agent, once.
//!
//! `replay::Driver` decides what is sent when.

use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep_until, timeout};

use super::options::Play;
use crate::cli::target;
use crate::cli::{console, endpoints, exit, recordings, runtime};
use jsonrpc::{Exit, Kind, Side, printable};
use recording::NotRecording;
use replay::{
    Comparison, Driver, DriverAction, IgnoreRules, Script, ScriptError, ScriptFault, Timeouts,
    compare,
};
use transport::{
    CloseReason, Endpoint, Link, OpenError, PeerKind, QueuedLink, Setup, StopStep, registry,
};

/// How long an agent may take to exit after the conversation.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The defaults of `--settle` and `--response-timeout`.
const SETTLE: Duration = Duration::from_secs(1);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// An agent to play to, and how it is reached.
#[derive(Debug)]
pub(super) struct LiveAgent {
    pub(super) endpoint: Endpoint,
    setup: Setup,
}

/// Reports the turns of a run.
struct Turns<'a> {
    /// How many were recorded.
    count: usize,
    ended: usize,
    /// The end of the one before.
    since: Instant,
    report: &'a mut dyn FnMut(&str),
}

/// The outcome of a run.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The differences from the recording.
    pub(super) compared: Comparison,
    /// The messages of this run.
    pub(super) live: Script,
    /// What stopped the conversation early.
    pub(super) troubles: Vec<String>,
    /// The duration of the run.
    pub(super) took: Duration,
    /// The recorded directory, if the agent worked in this one because it does not exist.
    pub(super) missing_folder: Option<String>,
}

impl Outcome {
    /// Whether the run matches the recording.
    pub(super) fn is_same(&self) -> bool {
        self.compared.differences.is_empty() && self.troubles.is_empty()
    }
}

impl Play {
    /// Whether an agent is named.
    pub(super) const fn has_agent(&self) -> bool {
        self.agent.is_some() || !self.command.is_empty()
    }

    /// Loads the conversation to play. Prints an error and returns the exit code.
    pub(super) fn script(&self, file: &Path) -> Result<Script, ExitCode> {
        let opened = self.open(&recordings::locate(file)?);
        opened.map_err(|error| {
            let what = format!("{}: {}", error.path.display(), explain(&error.reason));
            exit::fail(exit::NO_INPUT, &what)
        })
    }

    /// Loads the conversation in a file.
    pub(super) fn open(&self, file: &Path) -> Result<Script, ScriptError> {
        Script::open(file, self.edge.unwrap_or(Side::Agent))
    }

    /// The agent. Prints an error and returns the exit code.
    pub(super) fn agent(&self, subcommand: &str) -> Result<LiveAgent, ExitCode> {
        let usage = |fault: String| exit::fail(exit::USAGE, &fault);
        let otherwise = format!("{subcommand} --agent ENDPOINT");
        if !self.has_agent() {
            endpoints::agent(None, Vec::new(), &otherwise).map_err(usage)?;
        }
        let target = target::find(self.agent.clone(), self.command.clone(), &otherwise)?;
        let mut setup = endpoints::setup();
        if let Some(part) = &target.part {
            part.set_up(&mut setup).map_err(usage)?;
        }
        Ok(LiveAgent {
            endpoint: target.endpoint,
            setup,
        })
    }

    /// Plays `script` to `agent`; calls `on_turn` with a line about each turn as it ends.
    pub(super) fn run(
        &self,
        script: &Arc<Script>,
        agent: &LiveAgent,
        on_turn: &mut dyn FnMut(&str),
    ) -> Result<Outcome, ExitCode> {
        let runtime = runtime::build(Builder::new_current_thread())?;
        let pace = Timeouts {
            settle: self.settle.unwrap_or(SETTLE),
            response: self.response_timeout.unwrap_or(RESPONSE_TIMEOUT),
        };
        let mut driver = Driver::new(Arc::clone(script), pace);
        let recorded = script.directory().filter(|folder| {
            let is_local = matches!(agent.endpoint, Endpoint::Exec(_));
            is_local && self.cwd.is_none() && !Path::new(folder).is_dir()
        });
        let missing_folder = recorded.map(str::to_owned);
        let here = missing_folder.is_some().then(|| PathBuf::from("."));
        if let Some(cwd) = self.cwd.as_ref().or(here.as_ref()) {
            let absolute = std::path::absolute(cwd).map_err(|error| {
                exit::fail(exit::USAGE, &format!("--cwd {}: {error}", cwd.display()))
            })?;
            driver.set_directory(&absolute.to_string_lossy());
        }
        let began = Instant::now();
        let mut turns = Turns {
            count: script.turns().len(),
            ended: 0,
            since: began,
            report: on_turn,
        };
        let played = runtime.block_on(play(agent, driver, &mut turns));
        let driver = played.map_err(|error| exit::fail(exit::of_open_error(&error), &error))?;
        let ignored = IgnoreRules {
            level: self.compare.unwrap_or_default(),
            places: self.ignore.clone(),
            messages: self.ignore_message.clone(),
        };
        Ok(Outcome {
            compared: compare(script, driver.live(), &ignored),
            live: driver.live().clone(),
            troubles: driver.problems().to_vec(),
            took: began.elapsed(),
            missing_folder,
        })
    }
}

/// What is wrong with a file, as text for the user.
pub(super) fn explain(fault: &ScriptFault) -> String {
    match fault {
        ScriptFault::NotRecording(NotRecording::Unreadable(source)) => console::explain(source),
        fault => fault.to_string(),
    }
}

impl Turns<'_> {
    /// Reports a turn, if the message that was received last ends one.
    fn received(&mut self, live: &Script) {
        let Some(step) = live.steps.last() else {
            return;
        };
        let is_answer = step.is_answer() && step.method == "session/prompt";
        // In v2 an update of the session's state has the reason.
        let place = if is_answer {
            "/stopReason"
        } else {
            "/update/stopReason"
        };
        let how = match step.body.pointer(place).and_then(Value::as_str) {
            Some(reason) => reason,
            None if is_answer && step.kind() == Some(Kind::Error) => "an error",
            None => return,
        };
        self.ended += 1;
        let (ended, count, took) = (self.ended, self.count, self.since.elapsed());
        let how = printable(how.as_bytes());
        (self.report)(&format!(
            "turn {ended} of {count}: {how}, {:.1} s",
            took.as_secs_f64()
        ));
        self.since = Instant::now();
    }
}

async fn play(
    agent: &LiveAgent,
    mut driver: Driver,
    turns: &mut Turns<'_>,
) -> Result<Driver, OpenError> {
    let Link {
        rx,
        tx,
        mut guard,
        peer,
        ..
    } = registry::connect(&agent.endpoint, &agent.setup).await?;
    let mut link = QueuedLink::new(rx, tx);
    let (began, mut lost) = (Instant::now(), false);
    loop {
        let until = match driver.next(began.elapsed()) {
            DriverAction::Send(frame) => {
                if !lost {
                    link.queue.push_back(frame);
                }
                continue;
            }
            DriverAction::Wait(until) => until,
            DriverAction::Done => break,
        };
        tokio::select! {
            frame = poll_fn(|cx| link.poll(cx, None, true)), if !lost => match frame {
                Some(frame) => {
                    driver.receive(&frame, began.elapsed());
                    turns.received(driver.live());
                }
                None => {
                    lost = true;
                    driver.end();
                }
            },
            () = sleep_until(began + until) => {}
        }
    }
    driver.close();
    // What is still sent; an agent that does not exit by itself is killed with its link.
    let rest = async {
        while !lost {
            match poll_fn(|cx| link.poll(cx, Some(CloseReason::Done), true)).await {
                Some(frame) => driver.receive(&frame, began.elapsed()),
                None => lost = true,
            }
        }
        driver.end();
    };
    let _ = timeout(EXIT_TIMEOUT, rest).await;
    if peer.kind == PeerKind::Child {
        let exit = timeout(EXIT_TIMEOUT, poll_fn(|cx| guard.poll_exit(cx))).await;
        match exit {
            Ok(Exit::Code(0)) => {}
            Ok(exit) => tracing::warn!("the agent ended with {exit}"),
            Err(_) => guard.signal(StopStep::Terminate),
        }
    }
    Ok(driver)
}
