//! Attaches a connecting client to its earlier conversation, or reports that it needs an agent.

use std::collections::VecDeque;
use std::future::poll_fn;

use super::{Harbour, preface};
use crate::jsonrpc::framing::Cut;
use crate::jsonrpc::{Envelope, Frame, Kind, Shape, named_session, reply, scan};
use crate::observe::metrics::Come;
use crate::transport::{Link, LinkError};

/// The result for a connecting client.
#[derive(Debug)]
pub enum Received {
    /// It needs an agent of its own.
    New(Link),
    /// It has been attached to its conversation.
    Back,
}

impl Harbour {
    /// Attaches a client that has connected. Where no conversation waits, nothing is read from it.
    pub async fn receive(&self, client: Link) -> Received {
        let received = self.meet(client).await;
        self.came(match received {
            Received::New(_) => Come::New,
            Received::Back => Come::Resumed,
        });
        received
    }

    async fn meet(&self, mut client: Link) -> Received {
        if self.is_empty() {
            return Received::New(client);
        }
        let mut first = VecDeque::new();
        let Some((request, at)) = self.request(&mut client, &mut first).await else {
            return Received::New(preface::unread(client, first));
        };
        let (id, params) = (at.id(&request), at.body(&request).unwrap_or_default());
        let known = Some(params).filter(|_| at.method(&request) == "initialize");
        let Some(result) = known.and_then(|params| self.answer(&client.peer, params)) else {
            return Received::New(preface::unread(client, first));
        };
        if say(&mut client, reply::answer(id, "result", result.as_bytes()))
            .await
            .is_err()
        {
            return Received::New(preface::unread(client, first));
        }
        if let Some((wanted, at)) = self.request(&mut client, &mut first).await
            && matches!(&*at.method(&wanted), "session/load" | "session/resume")
            && let Some(session) = named_session(&wanted, &at)
            && let Some(berth) = self.find(&client.peer, &session, params)
        {
            let boarded = berth.lock().board(client, wanted);
            client = match boarded {
                Ok(()) => return Received::Back,
                Err(client) => client,
            };
        }
        let client = preface::answered(client, id.to_owned(), &self.limits);
        Received::New(preface::unread(client, first))
    }

    /// The client's next message, if it is a request. What is read is also kept in `read`.
    async fn request(
        &self,
        client: &mut Link,
        read: &mut VecDeque<Cut>,
    ) -> Option<(Frame, Envelope)> {
        let heard = poll_fn(|cx| client.rx.poll_next(cx)).await;
        // Later reads return an end or an error again.
        let cut = heard?.ok()?;
        let found = match &cut {
            Cut::Frame(frame) => match scan(frame, &self.limits) {
                Shape::One(at) if at.kind == Kind::Request => Some((frame.clone(), at)),
                _ => None,
            },
            Cut::Flaw(_) => None,
        };
        read.push_back(cut);
        found
    }
}

async fn say(client: &mut Link, frame: Frame) -> Result<(), LinkError> {
    poll_fn(|cx| client.tx.poll_ready(cx)).await?;
    client.tx.start_send(frame)?;
    poll_fn(|cx| client.tx.poll_flush(cx)).await
}
