//! What the relay that starts the agent checks: a session is opened in a folder that exists there.
//!
//! A client on another machine names a folder of its own. An agent that works on the files of its
//! machine would create it, or report the fault much later and in other words.

use dialect::MessageBody;
use jsonrpc::{Envelope, Frame};

/// The member of `initialize` with which the client's relay announces that the agent uses the
/// client's files, and its value. It is not passed on.
pub(super) const PLACE: &str = "/_meta/acp-relay/files";
pub(super) const WORD: &str = "editor";

/// The calls with which a client opens a session without an id.
pub(super) const OPENING: [&str; 2] = ["session/new", "session/fork"];
/// The calls with which it opens one by its id.
pub(super) const REOPENING: [&str; 2] = ["session/load", "session/resume"];

/// The check of one conversation.
#[derive(Clone, Copy, Debug)]
pub struct FolderCheck {
    /// Says what is wrong with a folder that does not exist.
    fault: fn(&str) -> Option<String>,
    /// The agent uses the client's files.
    is_off: bool,
}

impl FolderCheck {
    /// A check where `fault` says what is wrong with a folder.
    #[must_use]
    pub const fn new(fault: fn(&str) -> Option<String>) -> Self {
        Self {
            fault,
            is_off: false,
        }
    }

    /// Checks a request of the client; returns what passes in its place, if anything, and why.
    ///
    /// # Errors
    /// The reason why it does not pass.
    pub(super) fn check(
        &mut self,
        frame: &Frame,
        at: &Envelope,
    ) -> Result<Option<(Frame, String)>, String> {
        let method = at.method(frame);
        if method == "initialize" {
            let mut body = MessageBody::of(frame, at);
            self.is_off = body.take_text(PLACE, WORD);
            let what = "the agent uses the client's files, so folders are not checked";
            return Ok(self
                .is_off
                .then(|| (body.into_frame(frame, at), what.to_owned())));
        }
        if !self.is_off && is_opening(&method) {
            let folders = MessageBody::of(frame, at).strings(&["cwd"]);
            if let Some(why) = folders.iter().find_map(|folder| (self.fault)(folder)) {
                return Err(format!("{method} is refused: {why}"));
            }
        }
        Ok(None)
    }
}

/// Whether a client opens a session with it, in a folder.
pub(super) fn is_opening(method: &str) -> bool {
    OPENING.contains(&method) || REOPENING.contains(&method)
}
