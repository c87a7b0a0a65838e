//! A resumable link: two relays keep the messages of a conversation through any number of lost
//! connections, each of which is an *attachment* of the link. For both ends of any connection that
//! may be lost while messages are under way.
//!
//! ```
//! use link::ReplayBuffer;
//! use jsonrpc::Frame;
//!
//! let mut sent = ReplayBuffer::default();
//! for text in ["1", "2", "3"] {
//!     sent.push(Frame::from(text)).expect("there are numbers left");
//! }
//! while sent.next(1 << 20).is_some() {} // written, and then the connection was lost
//! sent.acknowledge(1).expect("it was sent"); // by the next attachment
//! sent.rewind();
//! assert_eq!(sent.next(1 << 20).map(|(number, _)| number), Some(2));
//! ```
//!
//! Nothing here does I/O or reads a clock. [`Header`] is the line before each message on the wire,
//! [`ReplayBuffer`] the messages that the peer has not acknowledged, [`LinkState`] one end of a link
//! with its sequence numbers and acknowledgements, [`LinkTable`] the links that a relay keeps and who
//! may resume them, [`Backoff`] and [`Retention`] when to reconnect and how long to keep the agent
//! meanwhile, [`LinkEvents`] what is counted.
//!
//! # Why
//!
//! **Numbers and generations, both.** A connection that was given up is not read any more, and an
//! older generation begins none; what comes late or twice all the same is refused by its number.
//! Either suffices, and a fault in one does no harm.
//!
//! **No room is reserved for cancellations.** Messages keep their order, so one never overtakes what
//! waits before it; and neither direction waits for the other, so one that is full holds back no
//! cancellation of the other side.
//!
//! **An acknowledgement means that the message was handled**: it is in the next queue of this
//! process. What was not acknowledged is sent again, so nothing is lost; what comes twice is dropped
//! by its number.
//!
//! **A gap is never skipped.** A number beyond the expected one ends the attachment, and the next
//! one begins where this end stands.

mod events;
mod header;
mod replay_buffer;
mod retention;
mod state;
mod table;

pub use events::{Attach, LinkEvents, LinkSource, LinkTotals};
pub use header::{
    CLIENT_DIED, End, Header, HeaderError, Hello, MAX_HEADER, Refusal, RefusalCode, ResumeKey,
    Welcome, longest,
};
pub use replay_buffer::{Exhausted, ReplayBuffer, Size, WrongAck};
pub use retention::{Backoff, Retention};
pub use state::{AttachError, LinkState, Received, WINDOW};
pub use table::{LinkTable, NewKeys};
