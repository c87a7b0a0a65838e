//! One conversation around the relay's loop: reaching the agent, what a client is told when there
//! is none, and what a person is told at the end.
//!
//! Not here: where clients come from (see `serve`, `connect`).

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

/// Time for telling a client that there is no agent, when the program is about to exit.
const BRISK: Duration = Duration::from_secs(1);

/// Lines of a dead agent's stderr that stand in the log.
const LAST_LINES: usize = 3;

/// Why there is no agent.
#[derive(Debug)]
pub(super) enum NoAgent {
    /// It cannot be reached or started.
    Unreachable(OpenError),
    /// We were told to stop before it was.
    Stopped,
}

/// The agent's hold; remembers what it said last.
struct Heard {
    hold: Box<dyn Hold>,
    /// Where its stderr is recorded.
    margin: Option<Arc<Margin>>,
    tail: Arc<OnceLock<String>>,
}

/// Opens the link to the agent, unless the relay is told to stop first.
pub(super) async fn reach(to: &Endpoint, setup: &Setup, stop: &Stop) -> Result<Link, NoAgent> {
    tokio::select! {
        agent = registry::connect(to, setup) => agent.map_err(NoAgent::Unreachable),
        () = stop.asked.cancelled() => Err(NoAgent::Stopped),
    }
}

/// Carries a conversation until it is over, and records it if that is wanted.
///
/// `border` judges what may pass between the two, if not everything may; `account` counts, if
/// anybody wants to know.
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
        if let Some(metrics) = &recordings {
            metrics.recording(how);
        }
    };
    if let Some(account) = account {
        taps = taps.with(account.begin(&client, &mut agent, limits.queue_bytes));
    }
    let (mut taps, trace) = traced(taps, ground, &client.peer, name);
    let (mut take, mut unrecorded) = (None, None);
    if let Some(studio) = &ground.studio {
        let tally = recordings.as_ref().map(|metrics| metrics.recorder());
        let tally = tally.unwrap_or_default();
        match studio.begin(&mut client, &mut agent, &ground.tongues, stop, tally) {
            Ok((recorder, begun)) => {
                recorded(Recorded::Begun);
                taps = taps.with(recorder);
                take = Some(begun);
            }
            Err(what) if studio.is_strict() => {
                recorded(Recorded::Failed);
                // In a box, as what is seldom needed.
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

/// Adds who makes spans of a conversation, if anybody does; tells in which trace it is.
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

/// Turns a client away whose conversation would have to be recorded and cannot be.
async fn refuse_unrecorded(client: Link, why: String, mut taps: Taps, ground: &Ground) -> End {
    tracing::error!("turned away, because it cannot be recorded: {why}");
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

/// Logs what a conversation came to.
fn sum_up(end: &End) {
    let dialects: Vec<String> = end.counts.dialects().iter().map(Tally::to_string).collect();
    tracing::info!(
        cause = ?end.cause,
        notes = ?end.counts.notes().collect::<Vec<_>>(),
        dialects = (!dialects.is_empty()).then(|| dialects.join(", ")),
        "over"
    );
}

/// Answers the client's first request with `reason` and lets it go; brisk once we are to stop.
pub(super) async fn turn_away(client: Link, reason: &Reason, limits: &Limits, stop: &Stop) {
    // In a box, because it is seldom needed and every conversation's task would have room for it.
    let told = Box::pin(proxy::turn_away(client, reason, limits));
    let hurry = async {
        stop.asked.cancelled().await;
        tokio::time::sleep(BRISK).await;
    };
    let told = tokio::select! {
        told = told => told.map_err(|error| error.to_string()),
        () = hurry => Err("there was no time for it".to_owned()),
        () = stop.forced.cancelled() => Err("there was no time for it".to_owned()),
    };
    if let Err(why) = told {
        tracing::debug!("the client could not be told: {why}");
    }
}

/// The same before an exit: the client has a moment to ask.
pub(super) async fn turn_away_briskly(client: Link, reason: &Reason, limits: &Limits, stop: &Stop) {
    // What is not said within it is not said.
    let _ = tokio::time::timeout(BRISK, turn_away(client, reason, limits, stop)).await;
}

impl NoAgent {
    /// What the client is told.
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Unreachable(error) => {
                let message = format!("there is no agent: {}", error.what);
                Reason::new(reply::PEER_LOST, message).at(Source::Agent)
            }
            Self::Stopped => Reason::draining(),
        }
    }

    /// The exit code for a relay that has only this conversation.
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

/// Says that the agent has failed, when nobody made it end.
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
        // Asked for once, when the agent has exited.
        let _ = self.tail.set(tail.clone());
        tail
    }
}
