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

use crate::cli::{console, endpoints, exit, runtime};
use crate::jsonrpc::framing::Decoded;
use crate::jsonrpc::{Exit, Frame, Side, parse_duration};
use crate::recording::NotRecording;
use crate::recording::redact::PointerPattern;
use crate::recording::replay::{
    Comparison, Driver, DriverAction, IgnoreRules, Script, ScriptFault, Timeouts, compare,
};
use crate::transport::{
    CloseReason, Endpoint, Link, LinkError, OpenError, PeerKind, StopStep, registry,
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

/// A link with the message to send and the state of the conversation.
struct Player {
    link: Link,
    driver: Driver,
    began: Instant,
    timer: Option<Pin<Box<Sleep>>>,
    outgoing: Option<Frame>,
    closed: bool,
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
        Script::open(file, self.edge).map_err(|error| match &error.reason {
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

async fn play(agent: &Endpoint, driver: Driver) -> Result<Driver, OpenError> {
    let link = registry::connect(agent, &endpoints::setup()).await?;
    let mut player = Player {
        link,
        driver,
        began: Instant::now(),
        timer: None,
        outgoing: None,
        closed: false,
    };
    poll_fn(|cx| player.poll(cx)).await;
    player.driver.close();
    // An agent that does not exit by itself is killed with its link.
    let _ = timeout(EXIT_TIMEOUT, poll_fn(|cx| player.poll_end(cx))).await;
    if player.link.peer.kind == PeerKind::Child {
        let exit = timeout(EXIT_TIMEOUT, poll_fn(|cx| player.link.guard.poll_exit(cx))).await;
        match exit {
            Ok(Exit::Code(0)) => {}
            Ok(exit) => tracing::warn!("the agent ended with {exit}"),
            Err(_) => player.link.guard.signal(StopStep::Terminate),
        }
    }
    Ok(player.driver)
}

impl Player {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.receive(cx);
            match self.send(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    tracing::warn!("the connection to the agent is lost: {error}");
                    self.disconnect();
                }
                Poll::Pending => return Poll::Pending,
            }
            match self.driver.next(self.began.elapsed()) {
                DriverAction::Send(frame) => self.outgoing = Some(frame),
                DriverAction::Done => return Poll::Ready(()),
                DriverAction::Wait(until) => {
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
    fn receive(&mut self, cx: &mut Context<'_>) {
        while !self.closed {
            let now = self.began.elapsed();
            match self.link.rx.poll_next(cx) {
                Poll::Ready(Some(Ok(Decoded::Frame(frame)))) => self.driver.receive(&frame, now),
                Poll::Ready(Some(Ok(Decoded::Error(error)))) => {
                    tracing::warn!("the agent: {error}")
                }
                Poll::Ready(Some(Err(_)) | None) => self.disconnect(),
                Poll::Pending => return,
            }
        }
    }

    /// Sends the pending message.
    fn send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        if self.closed {
            self.outgoing = None;
            return Poll::Ready(Ok(()));
        }
        if self.outgoing.is_some() {
            std::task::ready!(self.link.tx.poll_ready(cx))?;
            if let Some(frame) = self.outgoing.take() {
                self.link.tx.start_send(frame)?;
            }
        }
        self.link.tx.poll_flush(cx)
    }

    fn disconnect(&mut self) {
        self.closed = true;
        self.driver.end();
    }

    /// Closes our side, and receives what is still sent.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let closed = self.link.tx.poll_close(cx, CloseReason::Done).is_ready();
        self.receive(cx);
        if self.closed && closed {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}
