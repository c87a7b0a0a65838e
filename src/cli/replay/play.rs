//! Plays the client of a script to a live agent, once.
//!
//! `recording::replay::Driver` decides what is sent when.

use std::ffi::OsString;
use std::future::{Future, poll_fn};
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use clap::Args;
use tokio::runtime::Builder;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use crate::cli::{cli, console, endpoints, exit, runtime};
use crate::jsonrpc::framing::Cut;
use crate::jsonrpc::{Exit, Frame};
use crate::recording::redact::Pattern;
use crate::recording::replay::{
    Compared, Driver, Edge, Ignored, Move, Pace, Script, ScriptError, compare, duration,
};
use crate::transport::{
    Endpoint, Farewell, Link, LinkError, OpenError, PeerKind, Setup, StopStep, registry,
};

/// How long an agent may take to exit after the conversation.
const FAREWELL: Duration = Duration::from_secs(5);

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
    ignore: Vec<Pattern>,
    /// Ignore notifications that contain this text, as spelled in JSON. May be repeated
    #[arg(long, value_name = "TEXT")]
    ignore_message: Vec<String>,
    /// How long to wait for updates after a turn, from the last message on
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    settle: Duration,
    /// How long to wait for an answer, from the last message on
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    patience: Duration,
    /// Which messages to play where a dialect was translated: those the agent received, or those
    /// the client sent
    #[arg(long, value_name = "EDGE", default_value = "agent")]
    edge: Edge,
    /// The agent's command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The outcome of a run.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The differences from the recording.
    pub(super) compared: Compared,
    /// The messages of this run.
    pub(super) live: Script,
    /// What stopped the conversation early.
    pub(super) troubles: Vec<String>,
    /// The duration of the run.
    pub(super) took: Duration,
}

/// A link with the message to send and the state of the conversation.
struct Stage {
    link: Link,
    driver: Driver,
    began: Instant,
    timer: Option<Pin<Box<Sleep>>>,
    waiting: Option<Frame>,
    over: bool,
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
        Script::open(file, self.edge).map_err(|error| match error {
            ScriptError::Unreadable { path, source } => {
                let what = format!("{}: {}", path.display(), console::why(&source));
                cli::fail(exit::NO_INPUT, &what)
            }
            other => cli::fail(exit::NO_INPUT, &other),
        })
    }

    /// The endpoint of the agent.
    pub(super) fn agent(&self, subcommand: &str) -> Result<Endpoint, ExitCode> {
        let otherwise = format!("{subcommand} --agent ENDPOINT");
        endpoints::agent(self.agent.clone(), self.command.clone(), &otherwise)
            .map_err(|fault| cli::fail(exit::USAGE, &fault))
    }

    /// Plays `script` to `agent`.
    pub(super) fn run(&self, script: &Arc<Script>, agent: &Endpoint) -> Result<Outcome, ExitCode> {
        let runtime = runtime::build(Builder::new_current_thread())?;
        let pace = Pace {
            settle: self.settle,
            patience: self.patience,
        };
        let mut driver = Driver::new(Arc::clone(script), pace);
        if let Some(cwd) = &self.cwd {
            let absolute = std::path::absolute(cwd).map_err(|error| {
                cli::fail(exit::USAGE, &format!("--cwd {}: {error}", cwd.display()))
            })?;
            driver.work_in(&absolute.to_string_lossy());
        } else if let Endpoint::Exec(_) = agent
            && let Some(folder) = script.directory()
            && !std::path::Path::new(folder).is_dir()
        {
            tracing::warn!("the recorded folder {folder} does not exist; give --cwd DIR");
        }
        let began = Instant::now();
        let played = runtime.block_on(play(agent, driver));
        let driver = played.map_err(|error| cli::fail(exit::of_open_error(&error), &error))?;
        let ignored = Ignored {
            places: self.ignore.clone(),
            messages: self.ignore_message.clone(),
        };
        Ok(Outcome {
            compared: compare(script, driver.live(), &ignored),
            live: driver.live().clone(),
            troubles: driver.troubles().to_vec(),
            took: began.elapsed(),
        })
    }
}

async fn play(agent: &Endpoint, driver: Driver) -> Result<Driver, OpenError> {
    let link = registry::connect(agent, &Setup::default()).await?;
    let mut stage = Stage {
        link,
        driver,
        began: Instant::now(),
        timer: None,
        waiting: None,
        over: false,
    };
    poll_fn(|cx| stage.poll(cx)).await;
    stage.driver.close();
    // An agent that does not exit by itself is killed with its link.
    let _ = timeout(FAREWELL, poll_fn(|cx| stage.poll_end(cx))).await;
    if stage.link.peer.kind == PeerKind::Child {
        let exit = timeout(FAREWELL, poll_fn(|cx| stage.link.hold.poll_exit(cx))).await;
        match exit {
            Ok(Exit::Code(0)) => {}
            Ok(exit) => tracing::warn!("the agent ended with {exit}"),
            Err(_) => stage.link.hold.signal(StopStep::Terminate),
        }
    }
    Ok(stage.driver)
}

impl Stage {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.hear(cx);
            match self.speak(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    tracing::warn!("the connection to the agent is lost: {error}");
                    self.lose();
                }
                Poll::Pending => return Poll::Pending,
            }
            match self.driver.next(self.began.elapsed()) {
                Move::Say(frame) => self.waiting = Some(frame),
                Move::Done => return Poll::Ready(()),
                Move::Wait(until) => {
                    let until = self.began + until;
                    let timer = self.timer.insert(Box::pin(sleep_until(until)));
                    if timer.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    /// Receives all available messages.
    fn hear(&mut self, cx: &mut Context<'_>) {
        while !self.over {
            let now = self.began.elapsed();
            match self.link.rx.poll_next(cx) {
                Poll::Ready(Some(Ok(Cut::Frame(frame)))) => self.driver.hear(&frame, now),
                Poll::Ready(Some(Ok(Cut::Flaw(flaw)))) => tracing::warn!("the agent: {flaw}"),
                Poll::Ready(Some(Err(_)) | None) => self.lose(),
                Poll::Pending => return,
            }
        }
    }

    /// Sends the pending message.
    fn speak(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        if self.over {
            self.waiting = None;
            return Poll::Ready(Ok(()));
        }
        if self.waiting.is_some() {
            std::task::ready!(self.link.tx.poll_ready(cx))?;
            if let Some(frame) = self.waiting.take() {
                self.link.tx.start_send(frame)?;
            }
        }
        self.link.tx.poll_flush(cx)
    }

    fn lose(&mut self) {
        self.over = true;
        self.driver.end();
    }

    /// Closes our side, and receives what is still sent.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let closed = self.link.tx.poll_close(cx, Farewell::Done).is_ready();
        self.hear(cx);
        if self.over && closed {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}
