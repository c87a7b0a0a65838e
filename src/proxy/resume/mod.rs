//! Agents that outlive their client's connection.
//!
//! A [`Harbour`] stands between a listener and the conversations it begins. It gives a conversation
//! a link of its own, a *berth*. Behind it is the client's link, and when that breaks, the berth
//! keeps the conversation and its agent waiting for the client to come back. `reception` meets
//! newcomers and tells who has come back by the `opening`; a newcomer's first messages are put back
//! in front of its link (`preface`). `berth` is one conversation's client, `line` the two halves of
//! the link to it. `passing` sees to the messages that pass: `ids`, `questions` and `history` are
//! what is remembered of them. `absence` is how long a client may be gone. Not here: whether agents
//! are to be kept at all (see `app`), and how a conversation ends once nobody came back (see
//! `core`).
//!
//! # Why
//! *A link, not a state of the core.* To the core and the dialects a client that comes back never
//! left. What is special about it (other ids, a session that is asked for again) is undone on the
//! way in, so nothing behind has to know.
//!
//! *A client comes back by asking for its session.* Plain clients know no other way: they
//! `initialize` afresh and send `session/load` or `session/resume`. So `initialize` is answered
//! with the agent's own earlier answer, when it was asked for the same version and no capability
//! that the agent counts on is missing; then the next request shows whether the client wants a
//! session that is kept here, or an agent of its own.
//!
//! *A client finds its own conversations alone*: those of the same principal. A session's id is no
//! secret; it stands in logs and recordings.
//!
//! *What the client missed comes from the history here, never from the agent as well.* A session's
//! history is kept from its beginning, bounded; `session/load` is answered out of it. When it had
//! to be dropped the request goes to the agent like any other.

mod absence;
mod berth;
mod harbour;
mod history;
mod ids;
mod line;
mod opening;
mod passing;
mod preface;
mod questions;
mod reception;

pub use harbour::Harbour;
pub use reception::Received;
