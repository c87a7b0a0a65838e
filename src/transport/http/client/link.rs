//! A link over HTTP: the halves that the relay polls, and the task that runs the link to its end.
//!
//! The relay's polls only touch queues; requests and streams are tasks of their own, because they
//! run side by side (see `post`, `stream`).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

use super::exchange::Exchange;
use super::post::{Said, post_all};
use super::queue::Queue;
use crate::jsonrpc::Frame;
use crate::jsonrpc::framing::Cut;
use crate::transport::{Farewell, FrameSink, FrameStream, Hold, Link, LinkError, Peer};

/// Time for queued messages to be posted once the relay's side has ended.
const LAST_POSTS: Duration = Duration::from_secs(5);

/// The messages to the agent, by lane.
#[derive(Debug, Default)]
struct Lanes {
    calls: Queue<Said>,
    answers: Queue<Said>,
}

struct Ear {
    exchange: Arc<Exchange>,
}

struct Mouth {
    exchange: Arc<Exchange>,
    lanes: Arc<Lanes>,
    /// Cancelled when nothing more is sent.
    ended: CancellationToken,
    /// Ready when the server was told that the client leaves.
    gone: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// Ends the link when it is dropped.
struct Life {
    _over: DropGuard,
}

impl Hold for Life {}

/// Makes the link over the shared state, and its tasks.
pub(super) fn link(exchange: Arc<Exchange>) -> Link {
    let lanes = Arc::new(Lanes::default());
    let ended = CancellationToken::new();
    let gone = CancellationToken::new();
    let see_off = gone.clone().drop_guard();
    let life = see_through(Arc::clone(&exchange), Arc::clone(&lanes), ended.clone());
    tokio::spawn(async move {
        life.await;
        drop(see_off);
    });
    Link {
        peer: Peer::remote(exchange.to.to_string(), false),
        hold: Box::new(Life {
            _over: exchange.over.clone().drop_guard(),
        }),
        rx: Box::new(Ear {
            exchange: Arc::clone(&exchange),
        }),
        tx: Box::new(Mouth {
            exchange,
            lanes,
            ended,
            gone: Box::pin(gone.cancelled_owned()),
        }),
    }
}

/// Posts queued messages until the link has ended, and then tells the server.
async fn see_through(exchange: Arc<Exchange>, lanes: Arc<Lanes>, ended: CancellationToken) {
    let speaking = async {
        tokio::join!(
            post_all(&exchange, &lanes.calls),
            post_all(&exchange, &lanes.answers)
        )
    };
    let late = async {
        ended.cancelled().await;
        sleep(LAST_POSTS).await;
    };
    tokio::select! {
        _ = speaking => {}
        () = late => tracing::warn!(to = %exchange.to, "the last messages were not sent in time"),
        () = exchange.over.cancelled() => {}
    }
    exchange.over.cancel();
    lanes.calls.end();
    lanes.answers.end();
    exchange.leave().await;
    exchange.heard.end();
}

impl FrameStream for Ear {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Cut, LinkError>>> {
        self.exchange.heard.poll_take(cx)
    }
}

impl FrameSink for Mouth {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        // Which lane the next message takes is not known yet.
        let calls = std::task::ready!(self.lanes.calls.poll_room(cx));
        let answers = std::task::ready!(self.lanes.answers.poll_room(cx));
        Poll::Ready(if calls && answers {
            Ok(())
        } else {
            Err(gone())
        })
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        if self.exchange.heard.has_ended() {
            return Err(gone());
        }
        let bytes = frame.len();
        let said = Said::new(frame, &self.exchange);
        let lane = if said.is_answer() {
            &self.lanes.answers
        } else {
            &self.lanes.calls
        };
        lane.put(said, bytes);
        Ok(())
    }

    /// Does nothing: waiting for a status would delay the messages behind it.
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, _why: Farewell) -> Poll<Result<(), LinkError>> {
        self.lanes.calls.end();
        self.lanes.answers.end();
        self.ended.cancel();
        std::task::ready!(self.gone.as_mut().poll(cx));
        Poll::Ready(Ok(()))
    }
}

fn gone() -> LinkError {
    LinkError::Io {
        context: "posting to the agent's server",
        source: std::io::ErrorKind::BrokenPipe.into(),
    }
}
