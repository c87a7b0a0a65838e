//! A recording as the agent: `replay:PATH`.
//!
//! Who connects to it hears what the recorded client heard. [`Spot`] is how it is named, [`link`]
//! what is at the other end. With `agent_connect` it is one of the two transports that know what
//! messages mean. Not here: what is said when (see `recording::replay`).

mod link;
mod spot;
mod transport;

pub use spot::Spot;
pub(super) use transport::Replay;
