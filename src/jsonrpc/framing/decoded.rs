//! What a decoder cuts out of a stream.

use crate::{Frame, FrameError};

/// One item cut out of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// A message, or a stray line; `scan` decides which.
    Frame(Frame),
    /// A message that could not be read whole. The stream goes on.
    Error(Box<FrameError>),
}
