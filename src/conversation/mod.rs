//! One conversation's mind.
//!
//! A state machine between two mouths: it hears frames, decides what is said to whom, and knows
//! who still owes whom an answer. It does no I/O and reads no clock; time is an argument, and what
//! is to be done waits in the [`Outbox`]. It does not know that transports exist.
//!
//! # A message's way
//! `mind` takes it in: [`Core::handle_frame`] scans it, and one of a side that speaks a dialect is
//! made canonical by `interpret`, with what `speech` knows of that side. Then `mind` remembers a
//! request, or finds with `pending` what an answer is for; `customs` takes the message over the
//! border; and it goes into the `outbox`, through `interpret` again when the other side speaks a
//! dialect.
//!
//! `ending` sees to how a conversation ends, and `last_word` to what each side is told then, in the
//! words of `excuse`. `note` is what happened besides. `gist`, with `words`, `tokens` and `trail`,
//! is what a message comes to for those who count. `unfit` sees to what is heard and is no
//! message that can be passed on, and `babble` keeps what an agent prints.
//!
//! # Why
//! *Answers are matched by side.* The two sides number their requests independently (all
//! JavaScript and Python agents start at 0), so there is one table of open requests for each side
//! that asks.
//!
//! *A second request with an id still in flight is refused* rather than forwarded: two answers
//! with one id cannot be told apart by anybody.
//!
//! *An answer whose id differs only by how doubles are spelled is taken*, and leaves with the id
//! the asker used: half of the agents are JavaScript and cannot keep 9007199254740993.
//!
//! *Complaints without an id are passed on.* Programs built on the Rust SDK answer notifications
//! and broken lines with an error that has no id. It answers nothing, but it is for the peer.
//!
//! *A half-closed client may wait for what it asked.* When a client has ended its stream but still
//! listens, the time an agent has before SIGTERM is counted from its last word as long as it owes
//! an answer, so `printf … | acp-relay connect …` gets one. That time is the same few seconds as
//! ever, because a client that was killed looks no different from one that waits, and an agent
//! that neither speaks nor ends must not stay for it.
//!
//! *Who is asked to stop lets turns end.* Answers and permissions still pass while the relay
//! drains; only new requests are refused. A prompt that is cut off cannot be sent again by us.
//!
//! *The client's last requests are read before its link is closed.* What it had asked by the time
//! the agent died is answered; and a socket closed with unread bytes is reset, which could take
//! the answers with it.

mod babble;
mod customs;
mod ending;
mod excuse;
mod gist;
mod interpret;
mod last_word;
mod mind;
mod note;
mod outbox;
mod pending;
mod speech;
mod tokens;
mod trail;
mod unfit;
mod words;

/// What a note about a dialect consists of.
pub use crate::dialect::{Fired, Happened};
pub use babble::Discretion;
pub use ending::Cause;
pub use gist::{Gist, Said, Session, Topic};
pub use mind::{Core, Manners};
pub use note::Note;
pub use outbox::{Order, Outbox};
pub use speech::{Choice, Recognised, Speech};
pub use tokens::{TokenKind, Tokens};
pub use trail::{Marker, Trail};
pub use words::{Method, StopReason, ToolKind, ToolStatus, Verdict};
