//! Interprets the messages of a conversation whose client may reconnect.
//!
//! Requests are stored until they are answered, sessions and their messages as long as there is
//! room, and ids are mapped from the second connection on. `detached` delivers the messages.

use std::borrow::Cow;

use super::berth::Berth;
use super::ids::Asked;
use crate::jsonrpc::{
    Envelope, Frame, Id, IdBuf, Kind, Shape, member_place, named_session, reply, scan,
};

impl Berth {
    /// Takes a message for the client.
    pub(super) fn say(&mut self, mut frame: Frame) {
        let Shape::One(at) = self.scanner.scan(&mut frame) else {
            return self.tell(frame);
        };
        match at.kind {
            Kind::Result | Kind::Error => self.say_answer(frame, &at),
            Kind::Request => {
                let session = session_of(&frame, &at);
                let now = self.client.is_some()
                    && session
                        .as_deref()
                        .is_none_or(|session| self.history.is_shown(session));
                let id = at.id(&frame);
                self.questions.ask(id, session, frame.clone(), now);
                if now {
                    self.tell(frame);
                }
                self.rest();
            }
            Kind::Notification => {
                let someone = self.client.is_some();
                let session = session_of(&frame, &at);
                let Some(session) = session.filter(|_| at.method(&frame) == "session/update")
                else {
                    return self.tell(frame);
                };
                let in_turn = self.ids.in_turn();
                if self.history.update(&session, &frame, someone, in_turn) {
                    self.tell(frame);
                }
                if someone {
                    self.history.shrink(self.limits.kept_for_return);
                }
            }
        }
    }

    /// Takes a message of the client, and returns the one to pass on to the agent; `None` when it
    /// was handled here.
    pub(super) fn hear(&mut self, frame: Frame) -> Option<Frame> {
        let Shape::One(at) = scan(&frame, &self.limits) else {
            return Some(frame);
        };
        match at.kind {
            Kind::Request => self.hear_request(frame, &at),
            Kind::Notification if self.connection > 0 => {
                let ours = |id: &IdBuf| self.ids.ours(self.connection, id);
                Some(with_our_id(frame, &at, ours))
            }
            Kind::Notification => Some(frame),
            Kind::Result | Kind::Error => {
                self.questions.answer(at.id(&frame));
                Some(frame)
            }
        }
    }

    fn hear_request(&mut self, frame: Frame, at: &Envelope) -> Option<Frame> {
        let method = at.method(&frame);
        let session = session_of(&frame, at);
        let what = match (&*method, session) {
            ("initialize", _) => {
                self.opening.params = at.body(&frame).map(|params| Frame::new(params.to_vec()));
                Asked::Initialize
            }
            ("session/new" | "session/fork", _) => Asked::NewSession,
            ("session/load" | "session/resume", Some(session)) => {
                let from_the_start = method == "session/load";
                if self.history.waits(&session)
                    && let Some((frames, begun)) = self.history.tell(&session, from_the_start)
                {
                    self.first.extend(frames);
                    self.first
                        .push_back(reply::answer(at.id(&frame), "result", begun.as_bytes()));
                    self.first.extend(self.questions.unsaid(Some(&session)));
                    return None;
                }
                self.history.begin_again(&session);
                Asked::OldSession(session)
            }
            ("session/close" | "session/delete", Some(session)) => Asked::EndOfSession(session),
            ("session/prompt", Some(session)) => {
                self.history.prompt(&session, &frame, at);
                Asked::Prompt
            }
            _ => Asked::Other,
        };
        let ours = self.ids.open(self.connection, at.id(&frame), what);
        Some(if self.connection == 0 {
            frame
        } else {
            at.with_id(&frame, ours.as_id())
        })
    }

    fn say_answer(&mut self, frame: Frame, at: &Envelope) {
        let Some(open) = self.ids.close(at.id(&frame)) else {
            return self.tell(frame);
        };
        if at.kind == Kind::Result {
            match &open.what {
                Asked::Initialize => {
                    self.opening.answer = at.body(&frame).map(|body| Frame::new(body.to_vec()));
                }
                Asked::NewSession => {
                    if let Some(session) = session_of(&frame, at) {
                        self.history.begin(&session, &frame, at);
                    }
                }
                Asked::OldSession(session) => {
                    self.history.begin(session, &frame, at);
                    self.first.extend(self.questions.unsaid(Some(session)));
                }
                Asked::EndOfSession(session) => {
                    self.history.end(session);
                    self.questions.forget(session);
                }
                Asked::Prompt | Asked::Other => {}
            }
        }
        if let (Kind::Error, Asked::OldSession(session)) = (at.kind, &open.what) {
            self.history.not_begun(session);
        }
        self.rest();
        if open.connection != self.connection || self.client.is_none() {
            let (id, session) = (open.id.as_id(), &open.what);
            tracing::info!(%id, ?session, "dropped an answer to a request of an earlier connection");
            return;
        }
        self.tell(if open.connection == 0 {
            frame
        } else {
            at.with_id(&frame, open.id.as_id())
        });
    }
}

fn session_of(frame: &Frame, at: &Envelope) -> Option<String> {
    named_session(frame, at).map(Cow::into_owned)
}

/// Maps the id in a notification about a request to the one that the agent knows; returns other
/// notifications unchanged. `agent_id` maps the client's id to the agent's.
fn with_our_id<'a>(
    frame: Frame,
    at: &Envelope,
    ours: impl Fn(&IdBuf) -> Option<&'a IdBuf>,
) -> Frame {
    if at.method(&frame) != "$/cancel_request" {
        return frame;
    }
    let body = at.body(&frame).unwrap_or_default();
    let Some(place) = member_place(body, "requestId") else {
        return frame;
    };
    let id = Id::of_json(&body[place.clone()]).to_owned();
    let Some(ours) = ours(&id) else {
        return frame;
    };
    Frame::new(
        [
            br#"{"jsonrpc":"2.0","method":"$/cancel_request","params":"#,
            &body[..place.start],
            ours.as_id().json(),
            &body[place.end..],
            b"}",
        ]
        .concat(),
    )
}
