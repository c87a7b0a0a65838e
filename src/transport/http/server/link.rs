//! The link of a connection: its sending half, and how it ends.

use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::connection::{Connection, Connections, StreamMode};
use super::streams::CONNECTION;
use crate::http::port::caller::AuthenticatedClient;
use crate::http::queue::Receiver;
use crate::{FrameSink, Link, LinkError, Peer, SinkPoll, forward};
use jsonrpc::{CloseReason, Frame, Scanned, scan};

/// Sends messages to the client.
struct Sender {
    connection: Arc<Connection>,
    connections: Arc<Connections>,
}

/// The link of a connection, which is removed from `connections` when the link is dropped.
pub(super) fn link(
    connection: &Arc<Connection>,
    connections: &Arc<Connections>,
    client: &AuthenticatedClient,
) -> Link {
    let peer = Peer {
        principal: Some(client.principal.clone()),
        wanted_agent: client.wanted_agent.clone(),
        ..Peer::remote(client.from.to_string(), false)
    };
    let sender = Sender {
        connection: connection.clone(),
        connections: connections.clone(),
    };
    Link::new(peer, Receiver(connection.inbound.clone()), sender, ())
}

impl FrameSink for Sender {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> SinkPoll {
        let mut state = self.connection.state();
        if state.is_gone {
            return Poll::Ready(Err(LinkError::broken_pipe("writing to the client")));
        }
        let waiting = state.sender.take();
        if state.streams.waiting < self.connection.limits.http_waiting {
            return Poll::Ready(Ok(()));
        }
        let since = waiting.map_or_else(Instant::now, |(_, since)| since);
        state.sender = Some((cx.waker().clone(), since));
        Poll::Pending
    }

    fn start_send(&mut self, mut frame: Frame) -> Result<(), LinkError> {
        let connection = &self.connection;
        let mut state = connection.state();
        let state = &mut *state;
        if state.is_gone {
            return Err(LinkError::broken_pipe("writing to the client"));
        }
        if let Some((id, _)) = &state.initial
            && let Scanned::Message(envelope) = scan(&frame, &connection.limits)
            && envelope.kind.is_answer()
            && envelope.id(&frame) == id.as_id()
        {
            if let Some((_, waiting)) = state.initial.take() {
                // If the client has gone meanwhile, its request detects it.
                let _ = waiting.send(frame);
            }
            return Ok(());
        }
        let (session, answered) = state.routing.outgoing(&mut frame, &mut state.streams);
        match connection.mode {
            StreamMode::Elephant => state.streams.push(CONNECTION, frame, answered),
            StreamMode::Official => {
                let session = session.as_deref().unwrap_or(CONNECTION);
                state.streams.push(session, frame, None);
            }
        }
        Ok(())
    }

    // What is queued waits for the client's requests.
    forward!(self => (); poll_flush);

    /// Waits until the client has read all queued messages and the streams have ended.
    fn poll_close(&mut self, cx: &mut Context<'_>, why: CloseReason) -> SinkPoll {
        let mut state = self.connection.state();
        if state.is_gone {
            return Poll::Ready(Ok(()));
        }
        state.initial = None;
        state.closing = Some(why);
        state.streams.end();
        if state.streams.waiting == 0 && !state.streams.any_open() {
            return Poll::Ready(Ok(()));
        }
        state.sender = Some((cx.waker().clone(), Instant::now()));
        Poll::Pending
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.connection.inbound.end(None);
        self.connection.state().end();
        self.connections.remove(&self.connection);
    }
}
