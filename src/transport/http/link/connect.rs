//! Connects to `http://`, `https://`, and elephant.ai's routes over either; the sending half of a
//! link, and the task that runs the link to its end.
//!
//! The relay's polls only touch queues. One task posts the messages of both lanes (see `post`), and
//! each stream is read by a task of its own (see `stream`).

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use super::post::{Outgoing, post_all};
use super::shared::{Api, Failure, Shared, new_queue};
use super::stream::{HEAD_TIMEOUT, Stream};
use crate::http::client::HttpClient;
use crate::http::queue::{Queue, Receiver};
use crate::{
    CloseReason, Endpoint, FrameSink, HttpEndpoint, Link, LinkError, LinkGuard, OpenError,
    OpenErrorKind, Peer, Setup, SinkPoll, forward, open_error,
};
use jsonrpc::Frame;

/// Time for queued messages to be posted once the relay's side has ended.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The messages to the agent, by lane: answers, and all others in their order.
struct Lanes {
    ordered: Queue<Outgoing>,
    answers: Queue<Outgoing>,
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
struct Guard {
    shared: Arc<Shared>,
    _end: DropGuard,
}

impl LinkGuard for Guard {
    fn is_relay(&self) -> bool {
        self.shared.server_grace.get().is_some()
    }

    forward!(self => ();
        poll_exit, signal, capture_stderr, watch_presence, longest, away, unacknowledged,
        log_redaction, restart, restarts, stderr_tail);
}

/// Opens a link over Streamable HTTP. The connection itself is opened by the client's `initialize`;
/// that the server is there is checked before.
pub async fn connect(
    to: &Endpoint,
    address: &HttpEndpoint,
    setup: &Setup,
) -> Result<Link, OpenError> {
    let client = HttpClient::new(to, setup)?;
    let url = client.url(&address.path)?;
    client.connect().await?;
    let connection = OnceLock::new();
    let api = Api::Streamable { url, connection };
    Ok(link(Arc::new(Shared::new(
        to,
        client,
        api,
        setup.serves_parent,
    ))))
}

/// Opens a link over elephant.ai's routes. The server drops messages for a client whose stream is
/// not open, so it is opened before anything is posted.
pub async fn connect_elephant(
    to: &Endpoint,
    address: &HttpEndpoint,
    setup: &Setup,
) -> Result<Link, OpenError> {
    // It cannot be guessed: a client that knows it receives the same messages.
    let name = Uuid::new_v4().simple();
    let path = address.path.trim_end_matches('/');
    let client = HttpClient::new(to, setup)?;
    let api = Api::Elephant {
        posts: client.url(&format!("{path}/rpc?client_id={name}"))?,
        streams: client.url(&format!("{path}/sse?client_id={name}"))?,
    };
    client.connect().await?;
    let shared = Arc::new(Shared::new(to, client, api, setup.serves_parent));
    let mut stream = Stream::new(&shared, None);
    let failed = |what: String| {
        OpenError::new(OpenErrorKind::Protocol, to, what)
            .with_remedy("Check the address; elephant.ai's routes are below /acp")
    };
    let answer = stream.open(Instant::now() + HEAD_TIMEOUT).await;
    let answer = answer.map_err(|failure| match failure {
        Failure::Refused(refusal) if refusal.is_forbidden() => {
            OpenError::new(OpenErrorKind::Forbidden, to, refusal.text)
                .with_remedy(open_error::CHECK_TOKEN)
        }
        failure => failed(failure.to_string()),
    })?;
    let mut body = stream.events_of(answer).map_err(failed)?;
    let ready = stream.wait_ready(&mut body).await;
    ready.map_err(|why| failed(format!("its stream of messages broke off ({why})")))?;
    let ended = shared.ended.clone();
    let reading = ended.run_until_cancelled_owned(stream.follow(body));
    tokio::spawn(Arc::clone(&shared).until_panic(Box::pin(reading)));
    Ok(link(shared))
}

/// Makes the link over the shared state, and its tasks.
fn link(shared: Arc<Shared>) -> Link {
    let lanes = Arc::new(Lanes {
        ordered: new_queue(),
        answers: new_queue(),
    });
    let no_more = CancellationToken::new();
    let task = post_then_delete(Arc::clone(&shared), Arc::clone(&lanes), no_more.clone());
    let peer = Peer::remote(shared.to.to_string(), false);
    let guard = Guard {
        shared: Arc::clone(&shared),
        _end: shared.ended.clone().drop_guard(),
    };
    let receiver = Receiver(Arc::clone(&shared.received));
    let task = tokio::spawn(Arc::clone(&shared).until_panic(Box::pin(task)));
    let sender = Sender {
        shared,
        lanes,
        no_more,
        task,
    };
    Link::new(peer, receiver, sender, guard)
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
    lanes.end();
    shared.leave().await;
    shared.received.end(None);
}

impl Lanes {
    fn end(&self) {
        self.ordered.end(None);
        self.answers.end(None);
    }
}

impl FrameSink for Sender {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> SinkPoll {
        // Which lane the next message takes is not known yet, nor is its size.
        let ordered = ready!(self.lanes.ordered.poll_room(cx, 0));
        let answers = ready!(self.lanes.answers.poll_room(cx, 0));
        let is_open = ordered && answers;
        let broken = || LinkError::broken_pipe("posting to the agent's server");
        Poll::Ready(is_open.then_some(()).ok_or_else(broken))
    }

    fn start_send(&mut self, frame: Frame) -> Result<(), LinkError> {
        if self.shared.received.has_ended() {
            return Err(LinkError::broken_pipe("posting to the agent's server"));
        }
        let bytes = frame.len();
        let message = Outgoing::new(frame, &self.shared);
        let lane = match message.is_answer() {
            true => &self.lanes.answers,
            false => &self.lanes.ordered,
        };
        lane.put(message, bytes);
        Ok(())
    }

    // What is queued is posted by the task.
    forward!(self => (); poll_flush);

    /// Ends both lanes, then waits until their messages are posted and the connection is deleted.
    fn poll_close(&mut self, cx: &mut Context<'_>, _why: CloseReason) -> SinkPoll {
        self.lanes.end();
        self.no_more.cancel();
        if !self.task.is_finished() {
            // The task catches panics, and is not aborted.
            let _ = ready!(Pin::new(&mut self.task).poll(cx));
        }
        Poll::Ready(Ok(()))
    }
}
