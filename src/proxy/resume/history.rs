//! What was sent in each session, for a client that loads it again.
//!
//! Kept from the session's beginning or not at all: half a history cannot answer `session/load`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::iter::from_fn;

use bytes::Bytes;
use memchr::memmem;
use serde_json::value::RawValue;
use tokio::time::Instant;

use jsonrpc::{Envelope, Frame, member};
use link::{ReplayBuffer, Size};

/// Most sessions of one conversation that are kept; the others are known to the agent only.
const MAX_SESSIONS: usize = 1024;

/// What marks an update that repeats the user's prompt.
const ECHO: &[u8] = b"\"user_message_chunk\"";

/// The sessions of a conversation.
#[derive(Debug, Default)]
pub(super) struct History {
    sessions: HashMap<String, Session>,
    /// What the messages weigh, and the answers that opened sessions.
    bytes: usize,
    opening_bytes: usize,
}

/// One session.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// The answer that opened it, without the session's id: the answer to `session/load`. Set once
    /// the agent has given it.
    load_result: Option<Frame>,
    /// Those that count as written were sent to a client.
    entries: ReplayBuffer<Entry>,
    /// Nothing was dropped.
    complete: bool,
    /// The agent repeats the user's prompts by itself.
    echoes: bool,
    /// The client of this connection has opened the session.
    opened: bool,
    /// Why its last turn has ended, where the agent said so, and when.
    turn_end: Option<(Option<Box<str>>, Instant)>,
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
        self.bytes + self.opening_bytes
    }

    /// Whether there is no session.
    pub(super) fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Whether a client can ask for this session.
    pub(super) fn has(&self, session: &str) -> bool {
        let known = self.sessions.get(session);
        known.is_some_and(|session| session.load_result.is_some())
    }

    /// Whether the session was opened on an earlier connection and not yet on this one.
    pub(super) fn awaits_load(&self, session: &str) -> bool {
        let known = self.sessions.get(session);
        known.is_some_and(|session| !session.opened && session.load_result.is_some())
    }

    /// Whether this connection's client is sent the session's updates.
    pub(super) fn is_opened(&self, session: &str) -> bool {
        self.sessions.get(session).is_none_or(|known| known.opened)
    }

    /// A session was opened by the agent's answer `frame`. Such answers may take half of `limit`
    /// bytes; a session beyond it is known to the agent only.
    pub(super) fn open(&mut self, session: &str, frame: &Frame, at: &Envelope, limit: usize) {
        let body = at.body(frame).unwrap_or_default();
        let mut members: HashMap<Cow<'_, str>, &RawValue> =
            serde_json::from_slice(body).unwrap_or_default();
        members.remove("sessionId");
        let load_result = serde_json::to_vec(&members).unwrap_or_else(|_| b"{}".to_vec());
        let load_result = Frame::new(load_result);
        let opening_bytes = self.opening_bytes;
        if let Some(known) = self.session_mut(session) {
            let before = known.load_result.take().map_or(0, |frame| frame.weight());
            let after = opening_bytes - before + load_result.weight();
            let fits = after <= limit / 2;
            known.complete &= fits;
            known.load_result = fits.then_some(load_result);
            self.opening_bytes = if fits { after } else { opening_bytes - before };
        }
    }

    /// It is unknown how much of the last messages has reached the client, so all of them will be
    /// sent again.
    pub(super) fn resend_all(&mut self) {
        for session in self.sessions.values_mut() {
            if session.complete {
                session.entries.rewind();
            }
        }
    }

    /// A new connection: its client has opened no session yet.
    pub(super) fn reset_connection(&mut self) {
        for session in self.sessions.values_mut() {
            session.opened = false;
        }
    }

    /// Adds an update of the agent. `true` when it is to be sent to the client now.
    pub(super) fn update(
        &mut self,
        session: &str,
        frame: &Frame,
        connected: bool,
        in_turn: bool,
    ) -> bool {
        let Some(known) = self.session_mut(session) else {
            return connected;
        };
        let send = connected && known.opened;
        known.echoes |= in_turn && !known.echoes && memmem::find(frame.as_bytes(), ECHO).is_some();
        if known.complete || !send {
            known.entries.append(Entry::Update(copy(frame)));
            // What is sent now counts as sent, with all before it.
            while send && known.entries.next_ref(u64::MAX).is_some() {}
            self.bytes += frame.weight();
        }
        send
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
        let Some(known) = self.session_mut(session).filter(|known| known.complete) else {
            return;
        };
        for block in blocks {
            let update = format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":{},\
                 \"update\":{{\"sessionUpdate\":\"user_message_chunk\",\"content\":{}}}}}}}",
                id,
                block.get()
            );
            let update = Frame::from(update);
            bytes += update.weight();
            known.entries.append(Entry::Prompt(update));
        }
        // The client knows its own prompt.
        while known.entries.next_ref(u64::MAX).is_some() {}
        self.bytes += bytes;
    }

    /// A turn of the session has ended.
    pub(super) fn end_turn(&mut self, session: &str, reason: Option<&str>) {
        if let Some(known) = self.sessions.get_mut(session) {
            known.turn_end = Some((reason.map(Box::from), Instant::now()));
        }
    }

    /// Why the last turn of the session has ended, where the agent said so, and when.
    pub(super) fn turn_end(&self, session: &str) -> Option<(Option<&str>, Instant)> {
        let (reason, at) = self.sessions.get(session)?.turn_end.as_ref()?;
        Some((reason.as_deref(), *at))
    }

    /// Drops what was sent to clients, largest session first, until `limit` bytes are left or
    /// nothing more can be dropped.
    pub(super) fn shrink(&mut self, limit: usize) {
        let sent = |one: &&mut Session| one.entries.written().map(Size::size).sum::<usize>();
        while self.bytes() > limit
            && let Some(session) = self.sessions.values_mut().max_by_key(sent)
            && sent(&session) > 0
        {
            session.complete = false;
            self.bytes -= from_fn(|| session.entries.drop_oldest()).sum::<usize>();
        }
    }

    /// What a client that asks for a session is sent: the frames, and the body of the answer.
    /// `None` when the agent has to be asked.
    pub(super) fn replay(
        &mut self,
        session: &str,
        from_start: bool,
    ) -> Option<(Vec<Frame>, Frame)> {
        let known = self.sessions.get_mut(session)?;
        let load_result = known.load_result.clone()?;
        if from_start {
            known.complete.then(|| known.entries.rewind())?;
        }
        let mut frames = Vec::new();
        while let Some((_, entry)) = known.entries.next_ref(u64::MAX) {
            match entry {
                Entry::Prompt(_) if known.echoes => {}
                Entry::Update(frame) | Entry::Prompt(frame) => frames.push(frame.clone()),
            }
        }
        known.opened = true;
        Some((frames, load_result))
    }

    /// The client gets the session from the agent itself: what is kept would be sent twice.
    pub(super) fn reload(&mut self, session: &str) {
        let Some(known) = self.session_mut(session) else {
            return;
        };
        known.opened = true;
        known.complete = true;
        let dropped = std::mem::take(&mut known.entries).bytes();
        self.bytes -= dropped;
    }

    /// The agent has refused to load a session. What was kept of it is gone, so only the agent can
    /// send its history. A session that was never opened is removed.
    pub(super) fn load_failed(&mut self, session: &str) {
        match self.sessions.get_mut(session) {
            Some(known) if known.load_result.is_some() => known.complete = false,
            _ => self.remove(session),
        }
    }

    /// Removes a session.
    pub(super) fn remove(&mut self, session: &str) {
        if let Some(ended) = self.sessions.remove(session) {
            self.bytes -= ended.entries.bytes();
            self.opening_bytes -= ended.load_result.map_or(0, |frame| frame.weight());
        }
    }

    fn session_mut(&mut self, session: &str) -> Option<&mut Session> {
        if !self.sessions.contains_key(session) {
            if self.sessions.len() >= MAX_SESSIONS {
                return None;
            }
            let fresh = Session {
                complete: true,
                opened: true,
                ..Session::default()
            };
            self.sessions.insert(session.to_owned(), fresh);
        }
        self.sessions.get_mut(session)
    }
}

impl Size for Entry {
    fn size(&self) -> usize {
        let (Self::Update(frame) | Self::Prompt(frame)) = self;
        frame.weight()
    }
}

/// Copies the frame: a few bytes must not keep a whole read buffer.
fn copy(frame: &Frame) -> Frame {
    Frame::new(Bytes::copy_from_slice(frame.as_bytes()))
}
