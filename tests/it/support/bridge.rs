//! A relay between two scripted peers.
//!
//! The links are in memory, so with tokio's paused clock a conversation that hangs ends its test at
//! once, and one that waits an hour takes no time.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use acp_relay::conversation::DialectOptions;
use acp_relay::jsonrpc::framing::Decoded;
use acp_relay::jsonrpc::{Exit, Frame, Limits, Side};
use acp_relay::observe::{Event, Observer, Observers};
use acp_relay::proxy::{self, End, StopSignals};
use acp_relay::transport::{
    CloseReason, Link, LinkGuard, PeerKind, PresenceCallback, Restart, Restarts, StderrCallback,
    StopStep,
};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::link;

/// In virtual time: longer than any bound of the relay.
pub(crate) const AGES: Duration = Duration::from_secs(3600);
/// In virtual time: long enough for all that does not wait for a clock.
const MOMENT: Duration = Duration::from_millis(1);

/// The properties of the two links.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) limits: Limits,
    /// The agent is a process whose exit the relay sees.
    pub(crate) child: bool,
    pub(crate) client_half_close: bool,
    pub(crate) agent_half_close: bool,
    /// The client sees our exit code and needs no notice.
    pub(crate) parent: bool,
}

/// A conversation in progress.
pub(crate) struct Bridge {
    pub(crate) client: TestPeer,
    pub(crate) agent: TestPeer,
    pub(crate) process: Process,
    pub(crate) stop: StopSignals,
    pub(crate) notebook: Notebook,
    pub(crate) run: JoinHandle<End>,
}

/// One of the peers: the other end of its link.
pub(crate) struct TestPeer(pub(crate) Link);

/// The agent's process, as the relay sees it.
pub(crate) struct Process {
    exit: Option<oneshot::Sender<Exit>>,
    signals: Arc<Mutex<Vec<StopStep>>>,
}

/// The events of an observer, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notebook(Arc<Mutex<Vec<Seen>>>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Received(Side, Frame),
    Sent(Side, Frame),
    Note(conversation::Note),
}

struct Watched {
    exit: Option<oneshot::Receiver<Exit>>,
    signals: Arc<Mutex<Vec<StopStep>>>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            child: false,
            client_half_close: true,
            agent_half_close: true,
            parent: false,
        }
    }
}

impl Plan {
    /// With a queue of `frames` messages for each side.
    pub(crate) fn narrow(frames: usize) -> Self {
        let mut plan = Self::default();
        plan.limits.queue_frames = frames;
        plan
    }

    /// With an agent that is a process.
    pub(crate) fn with_child(mut self) -> Self {
        self.child = true;
        self
    }
}

impl Bridge {
    /// Starts a conversation.
    pub(crate) fn over(plan: &Plan) -> Self {
        let (client, mut near_client) = crate::support::memory::pair(&plan.limits);
        let (agent, mut near_agent) = crate::support::memory::pair(&plan.limits);
        near_client.peer.half_close = plan.client_half_close;
        near_agent.peer.half_close = plan.agent_half_close;
        if plan.parent {
            near_client.peer.kind = PeerKind::Parent;
        }
        let (exit, watched) = oneshot::channel();
        let signals = Arc::default();
        if plan.child {
            near_agent.peer.kind = PeerKind::Child;
            near_agent.guard = Box::new(Watched {
                exit: Some(watched),
                signals: Arc::clone(&signals),
            });
        }
        let stop = StopSignals::default();
        let notebook = Notebook::default();
        let limits = Arc::new(plan.limits.clone());
        let observers = Observers::default().with(notebook.clone());
        let signals_of_test = stop.clone();
        let run = tokio::spawn(async move {
            proxy::run(
                near_client,
                near_agent,
                limits,
                DialectOptions::canonical(),
                None,
                observers,
                &signals_of_test,
            )
            .await
        });
        Self {
            client: TestPeer(client),
            agent: TestPeer(agent),
            process: Process {
                exit: Some(exit),
                signals,
            },
            stop,
            notebook,
            run,
        }
    }

    /// How it ended; fails when it does not.
    pub(crate) async fn end(&mut self) -> End {
        within(&mut self.run).await.unwrap()
    }

    /// Whether it has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.run.is_finished()
    }
}

impl TestPeer {
    /// Sends a message that the other peer receives unchanged.
    pub(crate) async fn pass(&mut self, to: &mut Self, text: &str) {
        self.send(text).await;
        assert_eq!(to.receive().await.unwrap(), text);
    }

    /// Sends a message, and returns what the other peer receives of it.
    pub(crate) async fn exchange(&mut self, to: &mut Self, text: &str) -> Value {
        self.send(text).await;
        to.receive_json().await
    }

    /// Sends one message; fails when it is not accepted.
    pub(crate) async fn send(&mut self, text: &str) {
        within(link::send(&mut *self.0.tx, text.to_owned()))
            .await
            .unwrap();
    }

    /// Sends one message if it is accepted at once.
    pub(crate) async fn try_send(&mut self, text: &str) -> bool {
        let sent = timeout(MOMENT, link::send(&mut *self.0.tx, text.to_owned())).await;
        matches!(sent, Ok(Ok(())))
    }

    /// The next message; `None` when there are no more.
    pub(crate) async fn receive(&mut self) -> Option<String> {
        within(self.next()).await
    }

    /// The next message as JSON.
    pub(crate) async fn receive_json(&mut self) -> Value {
        let text = self.receive().await.expect("a message, not the end");
        serde_json::from_str(&text).unwrap()
    }

    /// The next message if it is there already.
    pub(crate) async fn try_receive(&mut self) -> Option<String> {
        timeout(MOMENT, self.next()).await.ok().flatten()
    }
    /// All remaining messages.
    pub(crate) async fn receive_all(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(text) = self.receive().await {
            all.push(text);
        }
        all
    }

    /// Ends the stream and continues to read.
    pub(crate) async fn end(&mut self) {
        // A finished relay does not read the end.
        let _ = within(link::close(&mut *self.0.tx, CloseReason::Done)).await;
    }

    async fn next(&mut self) -> Option<String> {
        match poll_fn(|cx| self.0.rx.poll_next(cx)).await {
            Some(Ok(Decoded::Frame(frame))) => {
                Some(String::from_utf8(frame.as_bytes().to_vec()).unwrap())
            }
            None => None,
            other => panic!("expected a message, received {other:?}"),
        }
    }
}

impl Process {
    /// Exits.
    pub(crate) fn exit(&mut self, exit: Exit) {
        if let Some(sender) = self.exit.take() {
            // A finished relay does not watch it.
            let _ = sender.send(exit);
        }
    }

    /// The signals it received.
    pub(crate) fn signals(&self) -> Vec<StopStep> {
        self.signals.lock().unwrap().clone()
    }
}

impl Notebook {
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for Notebook {
    fn on_event(&mut self, event: &Event<'_>) {
        let seen = match event {
            Event::Received(from, frame) => Seen::Received(*from, (*frame).clone()),
            Event::Sent(to, frame) => Seen::Sent(*to, (*frame).clone()),
            Event::Note(note) => Seen::Note((*note).clone()),
            _ => return,
        };
        self.0.lock().unwrap().push(seen);
    }
}

impl LinkGuard for Watched {
    fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<Exit> {
        let Some(exit) = &mut self.exit else {
            return Poll::Pending;
        };
        match Pin::new(exit).poll(cx) {
            Poll::Ready(Ok(exit)) => Poll::Ready(exit),
            // The test dropped its process without an exit: it runs for ever.
            Poll::Ready(Err(_)) => {
                self.exit = None;
                Poll::Pending
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn signal(&mut self, step: StopStep) {
        self.signals.lock().unwrap().push(step);
    }

    fn stderr_tail(&self) -> String {
        "last words".to_owned()
    }

    fn is_relay(&self) -> bool {
        false
    }

    fn capture_stderr(&mut self, _callback: StderrCallback) {}

    fn watch_presence(&mut self, _callback: PresenceCallback) {}

    fn longest(&self) -> Option<usize> {
        None
    }

    fn away(&self) -> Option<(Instant, usize)> {
        None
    }

    fn unacknowledged(&self) -> usize {
        0
    }

    fn log_redaction(&self) -> fn(&str) -> String {
        str::to_owned
    }

    fn restart(&mut self) -> Option<Restart> {
        None
    }

    fn restarts(&self) -> Restarts {
        Restarts::Never
    }
}

/// Waits for an expected event.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    timeout(AGES, what).await.expect("the conversation hangs")
}
