//! Encodes events as lines of a recording: numbered, redacted, answers paired with requests.

mod event_encoder;
mod pairing;

pub use event_encoder::{EventEncoder, FrameSource};
pub use pairing::MessageInfo;
