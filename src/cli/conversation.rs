//! One conversation around the relay's loop: connects to the agent, records and traces the
//! conversation, answers a client that gets no agent, and logs the result.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time::timeout;

use super::admin::PendingMetrics;
use super::common::RelayContext;
use super::record::ActiveRecording;
use super::stderr_capture::StderrCapture;
use super::{exit, log_redaction};
use conversation::{Cause, Note};
use jsonrpc::Limits;
use jsonrpc::reply::{self, ErrorSource, Reason};
use observe::metrics::{AgentMetrics, RecordingResult};
use observe::{Event, NoteLogger, Observers, RuleCount};
use policy::MessagePolicy;
use proxy::{self, End, StopSignals};
use transport::registry;
use transport::{
    Endpoint, Exit, Link, LinkGuard, OpenError, OpenErrorKind, PeerKind, Restart, Restarts, Setup,
    forward,
};

/// Time for answering a client that gets no agent, when the program is about to exit.
const REJECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Lines of a failed agent's stderr that are logged.
const LAST_LINES: usize = 3;

/// Why there is no agent.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAgent {
    /// It cannot be reached or started.
    #[error("{0}")]
    Unreachable(OpenError),
    /// The relay was asked to stop first.
    #[error("stopped before the agent was reached")]
    Stopped,
}

/// The hold of an agent that can be started, or connected to, once more.
struct RestartableHold {
    hold: Box<dyn LinkGuard>,
    to: Endpoint,
    setup: Setup,
    restarts: Restarts,
}

/// The agent's hold; keeps the end of its stderr. What it writes there is counted and recorded.
struct AgentHold {
    hold: Box<dyn LinkGuard>,
    targets: StderrTargets,
}

/// What becomes of an agent's stderr.
#[derive(Clone, Debug, Default)]
pub struct StderrTargets {
    metrics: Option<Arc<AgentMetrics>>,
    /// Where it is recorded.
    capture: Option<Arc<StderrCapture>>,
    /// The end of it, once the agent has exited.
    tail: Arc<Mutex<String>>,
}

/// Opens the link to the agent, unless the relay is asked to stop first.
pub(super) async fn connect_agent(
    to: &Endpoint,
    setup: &Setup,
    restarts: Restarts,
    stop: &StopSignals,
) -> Result<Link, NoAgent> {
    let agent = stop
        .requested
        .run_until_cancelled(registry::connect(to, setup));
    let agent = agent.await.ok_or(NoAgent::Stopped)?;
    let mut link = agent.map_err(NoAgent::Unreachable)?;
    link.guard = Box::new(restartable(link.guard, to, setup, restarts));
    Ok(link)
}

/// Carries a conversation to its end, and records it if that is configured.
///
/// `policy` decides what may pass between the two sides, if anything is restricted; `metrics`
/// counts the conversation, if metrics are collected; `observers` are further ones.
pub(super) async fn run_conversation(
    mut client: Link,
    mut agent: Link,
    policy: Option<Box<MessagePolicy>>,
    context: &RelayContext,
    metrics: Option<PendingMetrics>,
    observers: Observers,
) -> End {
    let limits = &context.limits;
    let stop = &context.stop;
    let is_parent = client.peer.kind == PeerKind::Parent;
    let mut observers = observers.with(NoteLogger::default());
    let (recordings, agent_metrics) = metrics
        .as_ref()
        .map(|metrics| (Arc::clone(&metrics.metrics), Arc::clone(&metrics.agent)))
        .unzip();
    let recorded = |how| recordings.iter().for_each(|metrics| metrics.recording(how));
    if let Some(metrics) = metrics {
        observers = observers.with(metrics.begin(&client, limits.queue_bytes));
    }
    let mut trace = None;
    let name = agent_metrics.as_ref().map(|agent| agent.name().to_owned());
    let traces = context.traces.as_ref();
    if let Some((tracer, insert)) = traces.and_then(|traces| traces.begin(&client.peer, name)) {
        trace = Some(tracer.trace());
        if insert {
            observers = observers.with_marker(tracer.marker());
        }
        observers = observers.with(tracer);
    }
    let (mut recording, mut unrecorded) = (None, None);
    if let Some(recorders) = &context.recorders {
        let tally = recordings.as_ref().map(|metrics| metrics.recorder());
        let tally = tally.unwrap_or_default();
        match recorders.begin(
            &mut client,
            &mut agent,
            &context.label,
            &context.dialects,
            stop,
            tally,
        ) {
            Ok((recorder, begun)) => {
                recorded(RecordingResult::Begun);
                observers = observers.with(recorder);
                recording = Some(begun);
            }
            Err(what) if recorders.is_strict() => {
                recorded(RecordingResult::Failed);
                // Boxed, because it is rarely needed and would enlarge every conversation's task.
                return Box::pin(reject_unrecorded(client, what, observers, context)).await;
            }
            Err(what) => {
                recorded(RecordingResult::Failed);
                tracing::error!("not recorded: {what}");
                unrecorded = Some(Note::Unrecorded { why: what });
            }
        }
    }
    let stop = recording.as_ref().map_or(stop, ActiveRecording::stop);
    tracing::info!(
        client = client.peer.name,
        agent = agent.peer.name,
        trace_id = trace,
        "connected"
    );
    let tail = Arc::new(Mutex::new(String::new()));
    let capture = recording.as_ref().map(ActiveRecording::capture);
    let observed = StderrTargets {
        metrics: agent_metrics,
        capture,
        tail: Arc::clone(&tail),
    };
    agent.guard = Box::new(agent_hold(agent.guard, observed));
    let dialect_options = context.dialects.for_client(&client.peer).options(limits);
    let limits = Arc::clone(limits);
    let run = proxy::run(
        client,
        agent,
        limits,
        dialect_options,
        policy,
        observers,
        stop,
    );
    let mut end = run.await;
    if let Some(recording) = recording {
        unrecorded = recording.end().await;
        recorded(match unrecorded {
            None => RecordingResult::Finished,
            Some(_) => RecordingResult::Failed,
        });
    }
    if let Some(note) = &unrecorded {
        end.counts.add(note);
    }
    log_summary(&end);
    if let Some(failure) = agent_failure(&end, &tail.lock()) {
        match is_parent {
            // It is in the last line that is printed.
            true => end.agent_error = Some(failure),
            false => tracing::warn!("{failure}"),
        }
    }
    end
}

/// Rejects a client whose conversation must be recorded and cannot be.
async fn reject_unrecorded(
    client: Link,
    why: String,
    mut observers: Observers,
    context: &RelayContext,
) -> End {
    tracing::error!("client rejected, because its conversation cannot be recorded: {why}");
    let reason = Reason::unrecorded();
    reject(client, &reason, &context.limits, &context.stop).await;
    let cause = Cause::Unrecorded;
    observers.on_event(&Event::Ended(&cause, Instant::now()));
    let mut counts = observers.counts().clone();
    counts.add(&Note::Unrecorded { why });
    End {
        cause,
        exit: None,
        lost: false,
        answered: false,
        agent_error: None,
        refused: None,
        client_error: None,
        counts,
    }
}

/// Logs the result of a conversation.
fn log_summary(end: &End) {
    let rules = end.counts.rules();
    let dialects: Vec<String> = rules.iter().map(RuleCount::to_string).collect();
    tracing::info!(
        cause = ?end.cause,
        notes = ?end.counts.notes().collect::<Vec<_>>(),
        dialects = (!dialects.is_empty()).then(|| dialects.join(", ")),
        "over"
    );
}

/// Answers the client's first request with `reason` and closes; quickly once the relay stops.
pub(super) async fn reject(client: Link, reason: &Reason, limits: &Limits, stop: &StopSignals) {
    // Boxed, because it is rarely needed and would enlarge every conversation's task.
    let reply = Box::pin(proxy::reject(client, reason, limits));
    let timed_out = async {
        stop.requested.cancelled().await;
        tokio::time::sleep(REJECT_TIMEOUT).await;
    };
    let reply = tokio::select! {
        reply = reply => reply.map_err(|error| error.to_string()),
        () = timed_out => Err("timed out while stopping".to_owned()),
        () = stop.forced.cancelled() => Err("the relay was forced to stop".to_owned()),
    };
    if let Err(why) = reply {
        tracing::debug!("cannot answer the rejected client: {why}");
    }
}

/// The same before an exit: the client gets a limited time to send its request.
pub(super) async fn reject_quickly(
    client: Link,
    reason: &Reason,
    limits: &Limits,
    stop: &StopSignals,
) {
    // After the timeout the client gets no answer.
    let _ = timeout(REJECT_TIMEOUT, reject(client, reason, limits, stop)).await;
}

impl NoAgent {
    /// The error that the client gets. Only that of `connect` may know the agent's address.
    pub(super) fn reason(&self, with_address: bool) -> Reason {
        match self {
            Self::Unreachable(error) => {
                let reason = match with_address {
                    true => error.to_string(),
                    false => error.reason(),
                };
                let message = format!("there is no agent: {reason}");
                match error.kind {
                    OpenErrorKind::Overloaded => {
                        Reason::new(reply::OVERLOADED, message).retryable()
                    }
                    kind => Reason {
                        retryable: kind == OpenErrorKind::Lost,
                        ..Reason::new(reply::PEER_LOST, message).at(ErrorSource::Agent)
                    },
                }
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

/// How the agent's process failed, unless the relay ended it.
fn agent_failure(end: &End, tail: &str) -> Option<String> {
    let silent = end.is_without_answer();
    let exit = end.exit.filter(|exit| *exit != Exit::Code(0) || silent)?;
    if matches!(end.cause, Cause::Stopped | Cause::Unrecorded) || end.counts.note("stopping") > 0 {
        return None;
    }
    let lines: Vec<&str> = tail.lines().collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join(" / ");
    let when = if silent {
        " before it answered a request"
    } else {
        ""
    };
    Some(match &*last {
        "" => format!("the agent ended with {exit}{when}"),
        last => format!("the agent ended with {exit}{when}, its stderr with: {last}"),
    })
}

/// The hold of an agent that is reached there, and may be started, or connected to, again.
pub fn restartable(
    hold: Box<dyn LinkGuard>,
    to: &Endpoint,
    setup: &Setup,
    restarts: Restarts,
) -> impl LinkGuard + use<> {
    RestartableHold {
        hold,
        to: to.clone(),
        setup: setup.clone(),
        restarts,
    }
}

impl LinkGuard for RestartableHold {
    forward!(self => self.hold;
        poll_exit, signal, capture_stderr, watch_presence, longest, away, unacknowledged, is_relay,
        log_redaction, stderr_tail);

    fn restart(&mut self) -> Option<Restart> {
        let (to, setup, restarts) = (self.to.clone(), self.setup.clone(), self.restarts);
        Some(Box::pin(async move {
            let opened = registry::connect(&to, &setup).await;
            let mut link = opened.map_err(|error| error.to_string())?;
            link.guard = Box::new(restartable(link.guard, &to, &setup, restarts));
            Ok(link)
        }))
    }

    fn restarts(&self) -> Restarts {
        self.restarts
    }
}

/// The hold of an agent whose stderr has these targets.
pub fn agent_hold(mut hold: Box<dyn LinkGuard>, targets: StderrTargets) -> impl LinkGuard {
    let (metrics, capture) = (targets.metrics.clone(), targets.capture.clone());
    hold.capture_stderr(Box::new(move |bytes| {
        if let Some(agent) = &metrics {
            agent.stderr(bytes.len());
        }
        if let Some(capture) = &capture {
            capture.push(bytes);
        }
    }));
    AgentHold { hold, targets }
}

impl LinkGuard for AgentHold {
    forward!(self => self.hold;
        poll_exit, signal, capture_stderr, watch_presence, longest, away, unacknowledged, is_relay,
        restarts);

    fn restart(&mut self) -> Option<Restart> {
        let restart = self.hold.restart()?;
        let targets = self.targets.clone();
        Some(Box::pin(async move {
            let mut link = restart.await?;
            link.guard = Box::new(agent_hold(link.guard, targets));
            Ok(link)
        }))
    }

    fn log_redaction(&self) -> fn(&str) -> String {
        |text| log_redaction::clean(text).into_owned()
    }

    fn stderr_tail(&self) -> String {
        let tail = log_redaction::clean(&self.hold.stderr_tail()).into_owned();
        if let Some(capture) = &self.targets.capture {
            capture.end();
        }
        self.targets.tail.lock().clone_from(&tail);
        tail
    }
}
