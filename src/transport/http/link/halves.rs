//! A link over HTTP: the halves that the relay polls, and the task that runs the link to its end.
//!
//! The relay's polls only touch queues. One task posts the messages of both lanes (see `post`), and
//! each stream is read by a task of its own (see `stream`).

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

/// What failed, in error messages.
const POSTING: &str = "posting to the agent's server";

/// The messages to the agent, by lane: answers, and all others in their order.
#[derive(Debug, Default)]
struct Lanes {
    ordered: Queue<Outgoing>,
    answers: Queue<Outgoing>,
}

struct Receiver {
    shared: Arc<Shared>,
}

struct Sender {
    shared: Arc<Shared>,
    lanes: Arc<Lanes>,
    /// Cancelled when nothing more is sent.
    no_more: CancellationToken,
    /// Finished when the connection was deleted at the server.
    task: JoinHandle<()>,
}

/// Ends the link when it is dropped.
impl LinkGuard for DropGuard {}

/// Makes the link over the shared state, and its tasks.
pub(super) fn link(shared: Arc<Shared>) -> Link {
    let lanes = Arc::new(Lanes::default());
    let no_more = CancellationToken::new();
    let task = post_then_delete(Arc::clone(&shared), Arc::clone(&lanes), no_more.clone());
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
            no_more,
            task,
        }),
    }
}

/// Posts queued messages until the link has ended, and then deletes the connection at the server.
async fn post_then_delete(shared: Arc<Shared>, lanes: Arc<Lanes>, no_more: CancellationToken) {
    let posts = async {
        tokio::join!(
            post_all(&shared, &lanes.ordered),
            post_all(&shared, &lanes.answers)
        )
    };
    let deadline = async {
        no_more.cancelled().await;
        sleep(CLOSE_TIMEOUT).await;
    };
    tokio::select! {
        _ = posts => {}
        () = deadline => {
            tracing::warn!(to = %shared.to, "queued messages were not posted in time and are lost");
        }
        () = shared.ended.cancelled() => {}
    }
    shared.ended.cancel();
    lanes.ordered.end();
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
        let ordered = std::task::ready!(self.lanes.ordered.poll_room(cx));
        let answers = std::task::ready!(self.lanes.answers.poll_room(cx));
        Poll::Ready(if ordered && answers {
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
            &self.lanes.ordered
        };
        lane.put(message, bytes);
        Ok(())
    }

    /// Ends both lanes, then waits until their messages are posted and the connection is deleted.
    fn poll_close(
        &mut self,
        cx: &mut Context<'_>,
        _why: CloseReason,
    ) -> Poll<Result<(), LinkError>> {
        self.lanes.ordered.end();
        self.lanes.answers.end();
        self.no_more.cancel();
        if !self.task.is_finished() {
            // The task does not panic, and is not aborted.
            let _ = std::task::ready!(Pin::new(&mut self.task).poll(cx));
        }
        Poll::Ready(Ok(()))
    }
}
