//! Attaches a connecting client to its earlier conversation, or reports that it needs an agent.

use std::collections::VecDeque;

use super::{ConversationStore, wrappers};
use crate::jsonrpc::framing::Decoded;
use crate::jsonrpc::{Envelope, Frame, Kind, Scanned, named_session, reply, scan};
use crate::observe::metrics::AttachKind;
use crate::transport::Link;

/// The result for a connecting client.
#[derive(Debug)]
pub enum Attached {
    /// It needs an agent of its own.
    New(Link),
    /// It has been attached to its conversation.
    Resumed,
}

impl ConversationStore {
    /// Attaches a client that has connected. Where no conversation waits, nothing is read from it.
    pub async fn attach(&self, client: Link) -> Attached {
        let attached = self.identify(client).await;
        self.count(match attached {
            Attached::New(_) => AttachKind::New,
            Attached::Resumed => AttachKind::Resumed,
        });
        attached
    }

    async fn identify(&self, mut client: Link) -> Attached {
        if self.is_empty() {
            return Attached::New(client);
        }
        let mut first = VecDeque::new();
        let Some((request, at)) = self.next_request(&mut client, &mut first).await else {
            return Attached::New(wrappers::with_buffered(client, first));
        };
        let (id, params) = (at.id(&request), at.body(&request).unwrap_or_default());
        let known = Some(params).filter(|_| at.method(&request) == "initialize");
        let Some(result) = known.and_then(|params| self.initialize_answer(&client.peer, params))
        else {
            return Attached::New(wrappers::with_buffered(client, first));
        };
        let answer = reply::answer(id, "result", result.as_bytes());
        if client.send(answer).await.is_err() {
            return Attached::New(wrappers::with_buffered(client, first));
        }
        if let Some((wanted, at)) = self.next_request(&mut client, &mut first).await
            && matches!(&*at.method(&wanted), "session/load" | "session/resume")
            && let Some(session) = named_session(&wanted, &at)
            && let Some(conversation) = self.find(&client.peer, &session, params)
        {
            let attached = conversation.lock().attach(client, wanted);
            client = match attached {
                Ok(()) => return Attached::Resumed,
                Err(client) => client,
            };
        }
        let client = wrappers::without_answer(client, id.to_owned(), &self.limits);
        Attached::New(wrappers::with_buffered(client, first))
    }

    /// The client's next message, if it is a request. What is read is also kept in `read`.
    async fn next_request(
        &self,
        client: &mut Link,
        read: &mut VecDeque<Decoded>,
    ) -> Option<(Frame, Envelope)> {
        // Later reads return an end or an error again.
        let cut = client.receive().await?.ok()?;
        let found = match &cut {
            Decoded::Frame(frame) => match scan(frame, &self.limits) {
                Scanned::Message(at) if at.kind == Kind::Request => Some((frame.clone(), at)),
                _ => None,
            },
            Decoded::Error(_) => None,
        };
        read.push_back(cut);
        found
    }
}
