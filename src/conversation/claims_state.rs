//! The sessions that are claimed, and what waits for that.

use std::collections::{HashMap, VecDeque};

use jsonrpc::{Envelope, Frame, IdBuf, Kind, Side, named_session, text, unescaped};

/// Longest name of a session, in bytes.
const MAX_NAME: usize = 1024;
/// Requests of which it is remembered what their answers mean.
const MAX_OPEN: usize = 4096;

/// The claims of a conversation.
#[derive(Debug, Default)]
pub(super) struct Claims {
    pub(super) is_on: bool,
    /// The sessions, and whether another request has named each than the one it was claimed for.
    pub(super) held: HashMap<String, bool>,
    /// Messages that wait, by their senders: the first of each for the claim of its session.
    pub(super) waiting: [VecDeque<Waiting>; 2],
    /// The sender of the message whose session is being claimed.
    pub(super) asked: Option<Side>,
    /// Requests after whose answers of that kind their sessions are given up.
    open: VecDeque<(IdBuf, String, Kind)>,
    pub(super) released: Vec<String>,
}

/// A message that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) frame: Frame,
    pub(super) at: Envelope,
    /// The session that it names.
    pub(super) session: Option<String>,
}

impl Claims {
    /// Whether a message has to wait for the claim of that session.
    pub(super) fn is_new(&self, session: Option<&String>) -> bool {
        self.is_on && session.is_some_and(|session| !self.held.contains_key(session))
    }

    /// A message passes, whose session is held.
    pub(super) fn pass(
        &mut self,
        from: Side,
        frame: &Frame,
        at: &Envelope,
        session: Option<&String>,
    ) {
        match (from, at.kind, session) {
            (Side::Client, Kind::Request, Some(session)) => {
                let id = at.id(frame);
                self.open.retain(|(open, ..)| open.as_id() != id);
                let mut add = |kind| self.open.push_back((id.to_owned(), session.clone(), kind));
                match self.held.get_mut(session) {
                    Some(is_shared) => *is_shared = true,
                    None => {
                        self.held.insert(session.clone(), false);
                        add(Kind::Error);
                    }
                }
                if matches!(&*at.method(frame), "session/close" | "session/delete") {
                    add(Kind::Result);
                }
                while self.open.len() > MAX_OPEN {
                    self.open.pop_front();
                }
            }
            (Side::Agent, Kind::Result | Kind::Error, _) => {
                if let Some(session) = session {
                    self.held.entry(session.clone()).or_insert(true);
                }
                let id = at.id(frame);
                while let Some(place) = self.open.iter().position(|(open, ..)| open.as_id() == id) {
                    let Some((_, session, kind)) = self.open.remove(place) else {
                        break;
                    };
                    let is_unused = kind == Kind::Result || self.held.get(&session) == Some(&false);
                    if kind == at.kind && is_unused && self.held.remove(&session).is_some() {
                        self.released.push(session);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The session that a request of the client, or a result of the agent, names.
///
/// # Errors
/// Readers could take another member for it.
pub(super) fn session_of(
    from: Side,
    frame: &Frame,
    at: &Envelope,
) -> Result<Option<String>, &'static str> {
    let session = match (from, at.kind) {
        (Side::Client, Kind::Request) => {
            let members = text::members(at.body(frame).unwrap_or_default());
            let mut named = members.filter(|(name, _)| is_like(&unescaped(name)));
            match (named.next(), named.next()) {
                (None, _) => None,
                (Some((name, value)), None) if unescaped(name) == "sessionId" => {
                    text::string(value)
                }
                _ => return Err("it has to be named once, as sessionId"),
            }
        }
        (Side::Agent, Kind::Result) => named_session(frame, at),
        _ => None,
    };
    match session {
        Some(session) if session.len() > MAX_NAME => Err("its name is longer than 1024 bytes"),
        session => Ok(session.map(std::borrow::Cow::into_owned)),
    }
}

/// Whether a name is `sessionId` but for the case and separators.
fn is_like(name: &str) -> bool {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).eq("sessionid".chars())
}
