//! A link over HTTP: the halves that the relay polls, and the task that runs the link to its end.
//!
//! The relay's polls only touch queues; requests and streams are tasks of their own, because they
//! run side by side (see `post`, `stream`).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::post::{Outgoing, post_all};
use super::queue::Queue;
use super::shared::Shared;
use crate::jsonrpc::Frame;
use crate::jsonrpc::framing::Decoded;
use crate::transport::{CloseReason, FrameSink, FrameStream, Link, LinkError, LinkGuard, Peer};

/// Time for queued messages to be posted once the relay's side has ended.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The context of errors.
const POSTING: &str = "posting to the agent's server";

/// The messages to the agent, by lane.
#[derive(Debug, Default)]
struct Lanes {
    requests: Queue<Outgoing>,
    answers: Queue<Outgoing>,
}

struct Receiver {
    shared: Arc<Shared>,
}

struct Sender {
    shared: Arc<Shared>,
    lanes: Arc<Lanes>,
    /// Cancelled when nothing more is sent.
    ended: CancellationToken,
    /// Finished when the connection was deleted at the server.
    task: JoinHandle<()>,
}

/// Ends the link when it is dropped.
impl LinkGuard for DropGuard {}

/// Makes the link over the shared state, and its tasks.
pub(super) fn link(shared: Arc<Shared>) -> Link {
    let lanes = Arc::new(Lanes::default());
    let ended = CancellationToken::new();
    let task = run(Arc::clone(&shared), Arc::clone(&lanes), ended.clone());
    let task = tokio::spawn(task);
    Link {
        peer: Peer::remote(shared.to.to_string(), false),
        guard: Box::new(shared.ended.clone().drop_guard()),
        rx: Box::new(Receiver {
            shared: Arc::clone(&shared),
        }),
        tx: Box::new(Sender {
            shared,
            lanes,
            ended,
            task,
        }),
    }
}

/// Posts queued messages until the link has ended, and then deletes the connection at the server.
async fn run(shared: Arc<Shared>, lanes: Arc<Lanes>, ended: CancellationToken) {
    let posts = async {
        tokio::join!(
            post_all(&shared, &lanes.requests),
            post_all(&shared, &lanes.answers)
        )
    };
    let late = async {
        ended.cancelled().await;
        sleep(CLOSE_TIMEOUT).await;
    };
    tokio::select! {
        _ = posts => {}
        () = late => tracing::warn!(to = %shared.to, "the last messages were not sent in time"),
        () = shared.ended.cancelled() => {}
    }
    shared.ended.cancel();
    lanes.requests.end();
    lanes.answers.end();
    shared.leave().await;
    shared.received.end();
}

impl FrameStream for Receiver {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        self.shared.received.poll_take(cx)
    }
}

impl FrameSink for Sender {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        // Which lane the next message takes is not known yet.
        let calls = std::task::ready!(self.lanes.requests.poll_room(cx));
        let answers = std::task::ready!(self.lanes.answers.poll_room(cx));
        Poll::Ready(if calls && answers {
            Ok(())
        } else {
            Err(LinkError::broken_pipe(POSTING))
        })
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        if self.shared.received.has_ended() {
            return Err(LinkError::broken_pipe(POSTING));
        }
        let bytes = frame.len();
        let message = Outgoing::new(frame, &self.shared);
        let lane = if message.is_answer() {
            &self.lanes.answers
        } else {
            &self.lanes.requests
        };
        lane.put(message, bytes);
        Ok(())
    }

    /// Does nothing: waiting for a status would delay the messages behind it.
    fn poll_close(
        &mut self,
        cx: &mut Context<'_>,
        _why: CloseReason,
    ) -> Poll<Result<(), LinkError>> {
        self.lanes.requests.end();
        self.lanes.answers.end();
        self.ended.cancel();
        if !self.task.is_finished() {
            // It does not panic, and is not aborted.
            let _ = std::task::ready!(Pin::new(&mut self.task).poll(cx));
        }
        Poll::Ready(Ok(()))
    }
}
