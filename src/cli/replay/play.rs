//! Plays the client of a script to a live agent, once.
//!
//! `recording::replay::Driver` decides what is sent when.

use std::ffi::OsString;
use std::future::poll_fn;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep_until, timeout};

use crate::cli::{console, endpoints, exit, recordings, runtime};
use crate::jsonrpc::{Exit, Side, parse_duration};
use crate::recording::NotRecording;
use crate::recording::redact::PointerPattern;
use crate::recording::replay::{
    Comparison, Driver, DriverAction, IgnoreRules, Script, ScriptFault, Timeouts, compare,
};
use crate::transport::{
    CloseReason, Endpoint, Link, OpenError, PeerKind, QueuedLink, StopStep, registry,
};

/// How long an agent may take to exit after the conversation.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Options for playing a client.
#[derive(Debug, Args)]
pub(super) struct Play {
    /// The agent's endpoint, instead of a command
    #[arg(long, value_name = "ENDPOINT", conflicts_with = "command")]
    #[arg(value_parser = endpoints::read_agent)]
    agent: Option<Endpoint>,
    /// The directory to work in, instead of the recorded one
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Ignore differences at this place in messages; `*` is any one step. May be repeated
    #[arg(long, value_name = "POINTER")]
    ignore: Vec<PointerPattern>,
    /// Ignore notifications that contain this text, as spelled in JSON. May be repeated
    #[arg(long, value_name = "TEXT")]
    ignore_message: Vec<String>,
    /// How long to wait for updates after a turn, from the last message on
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "1s")]
    settle: Duration,
    /// How long to wait for an answer, from the last message on
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    response_timeout: Duration,
    /// Which messages to play where a dialect was translated: those the agent received, or those
    /// the client sent
    #[arg(long, value_name = "EDGE", default_value = "agent")]
    edge: Side,
    /// The agent's command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
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
}

impl Outcome {
    /// Whether the run matches the recording.
    pub(super) fn is_same(&self) -> bool {
        self.compared.differences.is_empty() && self.troubles.is_empty()
    }
}

impl Play {
    /// Loads the conversation to play. Prints an error and returns the exit code.
    pub(super) fn script(&self, file: &std::path::Path) -> Result<Script, ExitCode> {
        let file = recordings::locate(file)?;
        Script::open(&file, self.edge).map_err(|error| match &error.reason {
            ScriptFault::NotRecording(NotRecording::Unreadable(source)) => {
                let what = format!("{}: {}", error.path.display(), console::explain(source));
                exit::fail(exit::NO_INPUT, &what)
            }
            _ => exit::fail(exit::NO_INPUT, &error),
        })
    }

    /// The endpoint of the agent.
    pub(super) fn agent(&self, subcommand: &str) -> Result<Endpoint, ExitCode> {
        let otherwise = format!("{subcommand} --agent ENDPOINT");
        endpoints::agent(self.agent.clone(), self.command.clone(), &otherwise)
            .map_err(|fault| exit::fail(exit::USAGE, &fault))
    }

    /// Plays `script` to `agent`.
    pub(super) fn run(&self, script: &Arc<Script>, agent: &Endpoint) -> Result<Outcome, ExitCode> {
        let runtime = runtime::build(Builder::new_current_thread())?;
        let pace = Timeouts {
            settle: self.settle,
            response: self.response_timeout,
        };
        let mut driver = Driver::new(Arc::clone(script), pace);
        if let Some(cwd) = &self.cwd {
            let absolute = std::path::absolute(cwd).map_err(|error| {
                exit::fail(exit::USAGE, &format!("--cwd {}: {error}", cwd.display()))
            })?;
            driver.set_directory(&absolute.to_string_lossy());
        } else if let Endpoint::Exec(_) = agent
            && let Some(folder) = script.directory()
            && !std::path::Path::new(folder).is_dir()
        {
            tracing::warn!("the recorded folder {folder} does not exist; give --cwd DIR");
        }
        let began = Instant::now();
        let played = runtime.block_on(play(agent, driver));
        let driver = played.map_err(|error| exit::fail(exit::of_open_error(&error), &error))?;
        let ignored = IgnoreRules {
            places: self.ignore.clone(),
            messages: self.ignore_message.clone(),
        };
        Ok(Outcome {
            compared: compare(script, driver.live(), &ignored),
            live: driver.live().clone(),
            troubles: driver.problems().to_vec(),
            took: began.elapsed(),
        })
    }
}

async fn play(agent: &Endpoint, mut driver: Driver) -> Result<Driver, OpenError> {
    let Link {
        rx,
        tx,
        mut guard,
        peer,
    } = registry::connect(agent, &endpoints::setup()).await?;
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
                Some(frame) => driver.receive(&frame, began.elapsed()),
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
