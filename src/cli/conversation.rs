//! One conversation around the relay's loop: connects to the agent, records and traces the
//! conversation, answers a client that gets no agent, and logs the result.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::admin::Account;
use super::common::Ground;
use super::margin::Margin;
use super::record::Take;
use super::{discretion, exit};
use crate::conversation::{Cause, Note};
use crate::jsonrpc::Limits;
use crate::jsonrpc::reply::{self, Reason, Source};
use crate::observe::metrics::Recorded;
use crate::observe::{Fact, Journal, Tally, Taps};
use crate::policy::Border;
use crate::proxy::{self, End, Stop};
use crate::transport::registry;
use crate::transport::{Ear, Endpoint, Exit, Hold, Link, OpenError, Peer, Setup, StopStep, Watch};

/// Time for answering a client that gets no agent, when the program is about to exit.
const BRISK: Duration = Duration::from_secs(1);

/// Lines of a failed agent's stderr that are logged.
const LAST_LINES: usize = 3;

/// Why there is no agent.
#[derive(Debug)]
pub(super) enum NoAgent {
    /// It cannot be reached or started.
    Unreachable(OpenError),
    /// The relay was asked to stop first.
    Stopped,
}

/// The agent's hold; keeps the end of its stderr.
struct Heard {
    hold: Box<dyn Hold>,
    /// Where its stderr is recorded.
    margin: Option<Arc<Margin>>,
    tail: Arc<OnceLock<String>>,
}

/// Opens the link to the agent, unless the relay is asked to stop first.
pub(super) async fn reach(to: &Endpoint, setup: &Setup, stop: &Stop) -> Result<Link, NoAgent> {
    tokio::select! {
        agent = registry::connect(to, setup) => agent.map_err(NoAgent::Unreachable),
        () = stop.asked.cancelled() => Err(NoAgent::Stopped),
    }
}

/// Carries a conversation to its end, and records it if that is configured.
///
/// `policy` decides what may pass between the two sides, if anything is restricted; `metrics`
/// counts the conversation, if metrics are collected.
pub(super) async fn carry(
    mut client: Link,
    mut agent: Link,
    border: Option<Box<Border>>,
    ground: &Ground,
    account: Option<Account>,
) -> End {
    let limits = &ground.limits;
    let stop = &ground.stop;
    let mut taps = Taps::default().with(Journal::default());
    let recordings = account.as_ref().map(Account::recordings);
    let name = account.as_ref().map(Account::agent);
    let recorded = |how| {
        if let Some(ledger) = &recordings {
            ledger.recorded(how);
        }
    };
    if let Some(account) = account {
        taps = taps.with(account.begin(&client, &mut agent, limits.queue_bytes));
    }
    let (mut taps, trace) = traced(taps, ground, &client.peer, name);
    let (mut take, mut unrecorded) = (None, None);
    if let Some(studio) = &ground.studio {
        let tally = recordings.as_ref().map(|ledger| ledger.tape());
        let tally = tally.unwrap_or_default();
        match studio.begin(&mut client, &mut agent, &ground.tongues, stop, tally) {
            Ok((recorder, begun)) => {
                recorded(Recorded::Begun);
                taps = taps.with(recorder);
                take = Some(begun);
            }
            Err(what) if studio.is_strict() => {
                recorded(Recorded::Failed);
                // Boxed, because it is rarely needed and would enlarge every conversation's task.
                return Box::pin(refuse_unrecorded(client, what, taps, ground)).await;
            }
            Err(what) => {
                recorded(Recorded::Failed);
                tracing::error!("not recorded: {what}");
                unrecorded = Some(Note::Unrecorded { why: what });
            }
        }
    }
    let stop = take.as_ref().map_or(stop, Take::stop);
    tracing::info!(
        client = client.peer.name,
        agent = agent.peer.name,
        trace_id = trace,
        "connected"
    );
    let tail = Arc::new(OnceLock::new());
    agent.hold = Box::new(Heard {
        hold: agent.hold,
        margin: take.as_ref().map(Take::margin),
        tail: Arc::clone(&tail),
    });
    let speech = ground.tongues.of(&client.peer).speech();
    let limits = Arc::clone(limits);
    let mut end = proxy::run(client, agent, limits, speech, border, taps, stop).await;
    if let Some(take) = take {
        unrecorded = take.end().await;
        recorded(match unrecorded {
            None => Recorded::Finished,
            Some(_) => Recorded::Failed,
        });
    }
    if let Some(note) = &unrecorded {
        end.counts.add(note);
    }
    sum_up(&end);
    tell_failure(&end, tail.get().map_or("", String::as_str));
    end
}

/// Adds the tracer of a conversation, if there is one; returns the trace id.
fn traced(
    mut taps: Taps,
    ground: &Ground,
    client: &Peer,
    agent: Option<String>,
) -> (Taps, Option<String>) {
    let traces = ground.traces.as_ref();
    let Some((tracer, insert)) = traces.and_then(|traces| traces.begin(client, agent)) else {
        return (taps, None);
    };
    let trace = tracer.trace();
    if insert {
        taps = taps.with_marker(tracer.marks());
    }
    (taps.with(tracer), Some(trace))
}

/// Rejects a client whose conversation must be recorded and cannot be.
async fn refuse_unrecorded(client: Link, why: String, mut taps: Taps, ground: &Ground) -> End {
    tracing::error!("client rejected, because its conversation cannot be recorded: {why}");
    turn_away(client, &Reason::unrecorded(), &ground.limits, &ground.stop).await;
    let cause = Cause::Unrecorded;
    taps.learn(&Fact::Over(&cause, Instant::now()));
    let mut counts = taps.counts().clone();
    counts.add(&Note::Unrecorded { why });
    End {
        cause,
        exit: None,
        lost: false,
        answered: false,
        refused: None,
        unsaid: None,
        counts,
    }
}

/// Logs the result of a conversation.
fn sum_up(end: &End) {
    let dialects: Vec<String> = end.counts.dialects().iter().map(Tally::to_string).collect();
    tracing::info!(
        cause = ?end.cause,
        notes = ?end.counts.notes().collect::<Vec<_>>(),
        dialects = (!dialects.is_empty()).then(|| dialects.join(", ")),
        "over"
    );
}

/// Answers the client's first request with `reason` and closes; quickly once the relay stops.
pub(super) async fn turn_away(client: Link, reason: &Reason, limits: &Limits, stop: &Stop) {
    // Boxed, because it is rarely needed and would enlarge every conversation's task.
    let told = Box::pin(proxy::turn_away(client, reason, limits));
    let hurry = async {
        stop.asked.cancelled().await;
        tokio::time::sleep(BRISK).await;
    };
    let told = tokio::select! {
        told = told => told.map_err(|error| error.to_string()),
        () = hurry => Err("timed out while stopping".to_owned()),
        () = stop.forced.cancelled() => Err("the relay was forced to stop".to_owned()),
    };
    if let Err(why) = told {
        tracing::debug!("cannot answer the rejected client: {why}");
    }
}

/// The same before an exit: the client gets a limited time to send its request.
pub(super) async fn turn_away_briskly(client: Link, reason: &Reason, limits: &Limits, stop: &Stop) {
    // After the timeout the client gets no answer.
    let _ = tokio::time::timeout(BRISK, turn_away(client, reason, limits, stop)).await;
}

impl NoAgent {
    /// The error that the client gets.
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Unreachable(error) => {
                let message = format!("there is no agent: {}", error.what);
                Reason::new(reply::PEER_LOST, message).at(Source::Agent)
            }
            Self::Stopped => Reason::draining(),
        }
    }

    /// The exit code of a relay that has only this conversation.
    pub(super) fn code(&self) -> u8 {
        match self {
            Self::Unreachable(error) => exit::of_open_error(error),
            Self::Stopped => exit::STOPPED,
        }
    }
}

impl fmt::Display for NoAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(error) => write!(f, "{error}"),
            Self::Stopped => f.write_str("stopped before the agent was reached"),
        }
    }
}

/// Logs that the agent failed, unless the relay ended it.
fn tell_failure(end: &End, tail: &str) {
    let silent = end.is_without_answer();
    let Some(exit) = end.exit.filter(|exit| *exit != Exit::Code(0) || silent) else {
        return;
    };
    if matches!(end.cause, Cause::Stopped | Cause::Unrecorded) || end.counts.note("stopping") > 0 {
        return;
    }
    let mut last: Vec<&str> = tail.lines().rev().take(LAST_LINES).collect();
    last.reverse();
    let when = match silent {
        true => " before it answered a request",
        false => "",
    };
    match last.join(" / ") {
        last if last.is_empty() => tracing::warn!("the agent ended with {exit}{when}"),
        last => tracing::warn!("the agent ended with {exit}{when}, its stderr with: {last}"),
    }
}

impl Hold for Heard {
    fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<Exit> {
        self.hold.poll_exit(cx)
    }

    fn signal(&mut self, step: StopStep) {
        self.hold.signal(step);
    }

    fn hear_stderr(&mut self, ear: Ear) {
        self.hold.hear_stderr(ear);
    }

    fn watch(&mut self, watch: Watch) {
        self.hold.watch(watch);
    }

    fn discretion(&self) -> fn(&str) -> String {
        |text| discretion::clean(text).into_owned()
    }

    fn stderr_tail(&self) -> String {
        let tail = discretion::clean(&self.hold.stderr_tail()).into_owned();
        if let Some(margin) = &self.margin {
            margin.end();
        }
        // Called once, when the agent has exited.
        let _ = self.tail.set(tail.clone());
        tail
    }
}
