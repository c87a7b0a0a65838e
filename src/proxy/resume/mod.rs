//! Agents that outlive their client's connection.
//!
//! A [`ConversationStore`] is between a listener and the conversations it begins. It gives each
//! conversation a link of its own (`link`). When the client's link behind it breaks, the
//! conversation and its agent wait for the client to reconnect (`detached`). `store` tells new
//! clients from reconnecting ones by their `initialize` and the request after it. `messages` interprets the messages that pass, and `ids` and
//! `history` store what has to be known of them.
//!
//! # Why
//! *A link, not a state of the conversation.* For the conversation and the dialects a client that
//! reconnects never left. What is special about it (other ids, a session that is loaded again) is
//! undone before its messages reach them.
//!
//! *A client reconnects by asking for its session.* Plain clients have no other way: they
//! `initialize` again and send `session/load` or `session/resume`. So `initialize` is answered with
//! the agent's own earlier answer, when it was asked for the same version and no capability that
//! the agent relies on is missing; then the next request shows whether the client uses a session
//! that is kept here, or an agent of its own.
//!
//! *A client finds only its own conversations*: those of the same principal. A session's id is not
//! secret; logs and recordings contain it.
//!
//! *What the client missed comes from the history here, never from the agent as well.* A session's
//! history is kept from its beginning, bounded; `session/load` is answered from it. When it had to
//! be dropped, the request goes to the agent like any other.

mod detached;
mod history;
mod ids;
mod initialize;
mod link;
mod messages;
mod store;

pub use store::ConversationStore;
