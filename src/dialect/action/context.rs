//! What an action can read and change besides its message.

use crate::dialect::message::Message;
use crate::dialect::table::Way;

/// What an action can read and change besides its message.
#[derive(Debug)]
pub(in crate::dialect) struct ActionContext<'s, 'a> {
    pub(in crate::dialect) way: Way,
    /// The message as it was received.
    pub(in crate::dialect) original: &'s Message<'a>,
    /// Messages to send before this one.
    pub(in crate::dialect) before: Vec<Message<'a>>,
    /// Why this message is not forwarded now.
    pub(in crate::dialect) hold: Option<String>,
    /// The error to answer the sender with instead of forwarding the message.
    pub(in crate::dialect) refuse: Option<Box<[u8]>>,
}
