//! Plays the client of a script to a live agent, once. [`Driver`] decides what is sent when.

use std::future::poll_fn;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout};

use super::compare::{Comparison, IgnoreRules, compare};
use super::driver::{Driver, DriverAction, Timeouts};
use super::script::Script;
use jsonrpc::{Exit, Kind, printable};
use transport::{
    CloseReason, Endpoint, Link, OpenError, PeerKind, QueuedLink, Setup, StopStep, registry,
};

/// How long an agent may take to exit after the conversation.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// An agent to play to, and how it is reached.
#[derive(Debug)]
pub struct PlayTarget {
    /// Its address.
    pub endpoint: Endpoint,
    /// How a link to it is opened.
    pub setup: Setup,
}

/// How a script is played and compared.
#[derive(Debug)]
pub struct PlayRules {
    /// How long to wait.
    pub timeouts: Timeouts,
    /// The working directory of the client, instead of the recorded one.
    pub directory: Option<PathBuf>,
    /// The recorded directory, if it is replaced because it does not exist.
    pub missing_folder: Option<String>,
    /// What is not compared.
    pub ignore: IgnoreRules,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct PlayOutcome {
    /// The differences from the recording.
    pub compared: Comparison,
    /// The messages of this run.
    pub live: Script,
    /// What stopped the conversation early.
    pub troubles: Vec<String>,
    /// The duration of the run.
    pub took: Duration,
    /// The recorded directory, if the agent worked in another one because it does not exist.
    pub missing_folder: Option<String>,
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

/// Plays `script` to an agent; calls `on_turn` with a line about each turn as it ends.
///
/// # Errors
/// The agent cannot be reached.
pub async fn play(
    script: &Arc<Script>,
    to: &PlayTarget,
    rules: PlayRules,
    on_turn: &mut dyn FnMut(&str),
) -> Result<PlayOutcome, OpenError> {
    let mut driver = Driver::new(Arc::clone(script), rules.timeouts);
    if let Some(directory) = &rules.directory {
        driver.set_directory(&directory.to_string_lossy());
    }
    let began = Instant::now();
    let mut turns = Turns {
        count: script.turns().len(),
        ended: 0,
        since: began,
        report: on_turn,
    };
    converse(to, &mut driver, &mut turns).await?;
    Ok(PlayOutcome {
        compared: compare(script, driver.live(), &rules.ignore),
        live: driver.live().clone(),
        troubles: driver.problems().to_vec(),
        took: began.elapsed(),
        missing_folder: rules.missing_folder,
    })
}

impl PlayOutcome {
    /// Whether the run matches the recording.
    #[must_use]
    pub const fn is_same(&self) -> bool {
        self.compared.differences.is_empty() && self.troubles.is_empty()
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

async fn converse(
    to: &PlayTarget,
    driver: &mut Driver,
    turns: &mut Turns<'_>,
) -> Result<(), OpenError> {
    let Link {
        rx,
        tx,
        mut guard,
        peer,
        ..
    } = registry::connect(&to.endpoint, &to.setup).await?;
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
    Ok(())
}
