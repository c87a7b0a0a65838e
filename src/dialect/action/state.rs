//! What the actions remember of a conversation besides its sessions (see `sessions`). All of it is
//! bounded: the oldest entry is evicted.

use std::collections::VecDeque;

use crate::recent::Recent;
use jsonrpc::Frame;

/// Maximum number of waiting messages, and of their bytes.
pub(super) const WAITING: usize = 1024;
pub(super) const WAITING_BYTES: usize = 1 << 20;

/// The state of all actions.
#[derive(Debug, Default)]
pub(crate) struct ActionState {
    /// The `authMethods` of `initialize`.
    pub(super) auth_methods: Vec<u8>,
    /// The tool calls that have been announced.
    announced: Recent<(), 4096, { 1 << 20 }>,
    // Of the original protocol.
    /// The last number given to a tool call by the bridge.
    pub(super) last: u32,
    /// The numbers of canonical tool calls; `None` until the client has answered.
    pub(super) numbers: Recent<Option<String>, 4096, { 1 << 20 }>,
    /// An update that waits for the number of its tool call, and all messages after it.
    pub(crate) waiting: VecDeque<Frame>,
    pub(super) waiting_bytes: usize,
    /// Whether a session was requested.
    pub(super) session_requested: bool,
    /// Whether the session is open.
    pub(super) has_session: bool,
    /// The error that answered the last request for a session.
    pub(super) session_error: Option<Vec<u8>>,
    /// Prompts that wait for the session.
    pub(super) prompts: Vec<Frame>,
    /// The working directory of the relay, and so of the agent that it starts.
    pub(crate) cwd: String,
    /// Whether the agent has reported that the user is not signed in.
    pub(super) signed_out: bool,
    /// The notice to send before the answer that is being written: the session and the text.
    pub(super) stop_notice: Option<(String, &'static str)>,
}

impl ActionState {
    /// Adds a message to those that wait. Returns whether there is room for it.
    pub(super) fn queue(&mut self, frame: Frame) -> bool {
        let has_room = self.waiting_bytes < WAITING_BYTES && self.waiting.len() < WAITING;
        if has_room {
            self.waiting_bytes += frame.weight();
            self.waiting.push_back(frame);
        }
        has_room
    }

    /// The memory behind it, in bytes.
    pub(crate) fn weight(&self) -> usize {
        let prompts: usize = self.prompts.iter().map(Frame::weight).sum();
        self.auth_methods.capacity()
            + self.announced.bytes
            + self.numbers.bytes
            + self.waiting_bytes
            + self.session_error.as_ref().map_or(0, Vec::capacity)
            + prompts
    }

    /// Remembers that a tool call is announced. Returns whether it was not.
    pub(super) fn announce(&mut self, session: &str, call: &str) -> bool {
        let key = format!("{} {session}{call}", session.len());
        let is_new = self.announced.get(&key).is_none();
        is_new && self.announced.insert(&key, (), 0)
    }
}
