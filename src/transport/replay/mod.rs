//! A recording as the agent: `replay:PATH`.
//!
//! Who connects to it hears what the recorded client heard. [`Spot`] is how it is named, [`link`]
//! what is at the other end. The one transport that knows what messages are. Not here: what is
//! said when (see `recording::replay`).

mod link;
mod spot;
mod transport;

pub use spot::Spot;
pub(super) use transport::Replay;
