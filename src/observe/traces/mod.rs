//! What goes on in a conversation, as spans of OpenTelemetry.
//!
//! A [`Tracer`] is the tap: one span for the connection, one for each session, one for each request
//! of either side, of which a prompt's is the turn, and one for each tool call. What is over goes
//! into an [`Outlet`], which never waits. Not here: where it goes from there (see `cli::traces`).
//!
//! # Why
//!
//! **A request is one span, of the kind SERVER.** We stand between two peers and could say the same
//! as a client of the other one, beginning and ending with it; that would tell nobody more.
//!
//! **A request that says what trace it belongs to stays in that trace**, with a link to our own. One
//! that does not is a child of the turn it came in, else of its session, else of the connection.
//!
//! **Nothing is written into messages unless that was asked for**, for it changes their bytes
//! (`--trace-context insert`); and what a peer has written there is never replaced.
//!
//! **The SDK's tracer is not used**, only its model, samplers and ids. Its spans live in contexts of
//! threads, and a conversation knows what belongs together better than a thread does.

mod context;
mod outlet;
mod span;
mod story;
mod tracer;

pub use outlet::{Outlet, Tally};
pub use span::Maker;
pub use story::About;
pub use tracer::{Marks, Tracer};
