//! What was sent in each session, for a client that loads it again.
//!
//! Kept from the session's beginning or not at all: half a history cannot answer `session/load`.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;
use memchr::memmem;
use serde_json::value::RawValue;

use crate::jsonrpc::{Envelope, Frame, member};

/// Most sessions of one conversation that are kept; the agent alone knows the others.
const SESSIONS: usize = 1024;

/// What marks an update that repeats the user's prompt.
const ECHO: &[u8] = b"\"user_message_chunk\"";

/// The sessions of a conversation.
#[derive(Debug, Default)]
pub(super) struct History {
    sessions: HashMap<String, Session>,
    bytes: usize,
}

/// One session.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// The answer that opened it, without the session's id: the answer to `session/load`. Set once
    /// the agent has given it.
    begun: Option<Frame>,
    entries: Vec<Entry>,
    /// How many entries were sent to a client.
    told: usize,
    /// Nothing was dropped.
    whole: bool,
    /// The agent repeats the user's prompts by itself.
    echoes: bool,
    /// The client of this connection has opened the session.
    shown: bool,
}

#[derive(Debug)]
enum Entry {
    /// An update, as the agent sent it.
    Update(Frame),
    /// A part of a prompt, as the update that an agent would repeat it with.
    Prompt(Frame),
}

impl History {
    /// Bytes that are kept.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a client can ask for this session.
    pub(super) fn has(&self, session: &str) -> bool {
        let known = self.sessions.get(session);
        known.is_some_and(|session| session.begun.is_some())
    }

    /// Whether the session was opened on an earlier connection and not yet on this one.
    pub(super) fn waits(&self, session: &str) -> bool {
        let known = self.sessions.get(session);
        known.is_some_and(|session| !session.shown && session.begun.is_some())
    }

    /// Whether this connection's client is sent the session's updates.
    pub(super) fn is_shown(&self, session: &str) -> bool {
        self.sessions.get(session).is_none_or(|known| known.shown)
    }

    /// A session was opened by the agent's answer `frame`.
    pub(super) fn begin(&mut self, session: &str, frame: &Frame, at: &Envelope) {
        let body = at.body(frame).unwrap_or_default();
        let mut members: HashMap<Cow<'_, str>, &RawValue> =
            serde_json::from_slice(body).unwrap_or_default();
        members.remove("sessionId");
        let begun = serde_json::to_vec(&members).unwrap_or_else(|_| b"{}".to_vec());
        if let Some(known) = self.known(session) {
            known.begun = Some(Frame::new(begun));
        }
    }

    /// It is unknown how much of the last messages has reached the client, so all of them will be
    /// sent again.
    pub(super) fn doubt(&mut self) {
        for session in self.sessions.values_mut().filter(|session| session.whole) {
            session.told = 0;
        }
    }

    /// A new connection: its client has opened no session yet.
    pub(super) fn begin_anew(&mut self) {
        for session in self.sessions.values_mut() {
            session.shown = false;
        }
    }

    /// Adds an update of the agent. `true` when it is to be sent to the client now.
    pub(super) fn update(
        &mut self,
        session: &str,
        frame: &Frame,
        someone: bool,
        in_turn: bool,
    ) -> bool {
        let bytes = frame.len();
        let Some(known) = self.known(session) else {
            return someone;
        };
        let tell = someone && known.shown;
        known.echoes |= in_turn && !known.echoes && memmem::find(frame.as_bytes(), ECHO).is_some();
        if known.whole || !tell {
            known.entries.push(Entry::Update(apart(frame)));
            if tell {
                known.told = known.entries.len();
            }
            self.bytes += bytes;
        }
        tell
    }

    /// Adds a prompt of the client.
    pub(super) fn prompt(&mut self, session: &str, frame: &Frame, at: &Envelope) {
        let body = at.body(frame).unwrap_or_default();
        let blocks: Vec<&RawValue> = member(body, "prompt")
            .and_then(|prompt| serde_json::from_slice(prompt).ok())
            .unwrap_or_default();
        let id = member(body, "sessionId").and_then(|id| std::str::from_utf8(id).ok());
        let Some(id) = id else {
            return;
        };
        let mut bytes = 0;
        let Some(known) = self.known(session).filter(|known| known.whole) else {
            return;
        };
        for block in blocks {
            let said = format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":{},\
                 \"update\":{{\"sessionUpdate\":\"user_message_chunk\",\"content\":{}}}}}}}",
                id,
                block.get()
            );
            bytes += said.len();
            known.entries.push(Entry::Prompt(Frame::from(said)));
        }
        known.told = known.entries.len();
        self.bytes += bytes;
    }

    /// Drops what was sent to clients, largest session first, until `limit` bytes are left or
    /// nothing more can be dropped.
    pub(super) fn shrink(&mut self, most: usize) {
        while self.bytes > most {
            let largest = self.sessions.values_mut().max_by_key(|session| {
                let told = &session.entries[..session.told];
                told.iter().map(Entry::len).sum::<usize>()
            });
            let Some(session) = largest.filter(|session| session.told > 0) else {
                return;
            };
            let dropped: usize = session.entries.drain(..session.told).map(|e| e.len()).sum();
            session.told = 0;
            session.whole = false;
            self.bytes -= dropped;
        }
    }

    /// What a client that asks for a session is sent: the frames, and the body of the answer.
    /// `None` when the agent has to be asked.
    pub(super) fn tell(
        &mut self,
        session: &str,
        from_the_start: bool,
    ) -> Option<(Vec<Frame>, Frame)> {
        let known = self.sessions.get_mut(session)?;
        let begun = known.begun.clone()?;
        if from_the_start && !known.whole {
            return None;
        }
        let from = if from_the_start { 0 } else { known.told };
        let echoes = known.echoes;
        let frames = known.entries[from..]
            .iter()
            .filter_map(|entry| match entry {
                Entry::Prompt(_) if echoes => None,
                Entry::Update(frame) | Entry::Prompt(frame) => Some(frame.clone()),
            });
        let frames = frames.collect();
        known.told = known.entries.len();
        known.shown = true;
        Some((frames, begun))
    }

    /// The client gets the session from the agent itself: what is kept would be sent twice.
    pub(super) fn begin_again(&mut self, session: &str) {
        let Some(known) = self.known(session) else {
            return;
        };
        known.shown = true;
        known.whole = true;
        known.told = 0;
        let dropped: usize = known.entries.drain(..).map(|entry| entry.len()).sum();
        self.bytes -= dropped;
    }

    /// The agent has refused to load a session. What was kept of it is gone, so only the agent can
    /// send its history. A session that was never opened is removed.
    pub(super) fn not_begun(&mut self, session: &str) {
        match self.sessions.get_mut(session) {
            Some(known) if known.begun.is_some() => known.whole = false,
            _ => self.end(session),
        }
    }

    /// Removes a session.
    pub(super) fn end(&mut self, session: &str) {
        if let Some(ended) = self.sessions.remove(session) {
            self.bytes -= ended.entries.iter().map(Entry::len).sum::<usize>();
        }
    }

    fn known(&mut self, session: &str) -> Option<&mut Session> {
        if !self.sessions.contains_key(session) {
            if self.sessions.len() >= SESSIONS {
                return None;
            }
            let fresh = Session {
                whole: true,
                shown: true,
                ..Session::default()
            };
            self.sessions.insert(session.to_owned(), fresh);
        }
        self.sessions.get_mut(session)
    }
}

impl Entry {
    fn len(&self) -> usize {
        let (Self::Update(frame) | Self::Prompt(frame)) = self;
        frame.len()
    }
}

/// Copies the frame: a few bytes must not keep a whole read buffer.
fn apart(frame: &Frame) -> Frame {
    Frame::new(Bytes::copy_from_slice(frame.as_bytes()))
}
