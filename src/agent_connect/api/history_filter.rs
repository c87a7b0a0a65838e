//! Separates replayed history from the updates of the turn after a session was loaded.
//!
//! The messages of a session that is loaded belong before the answer to `session/load`; some agents
//! (Gemini CLI) send them after it, when the next turn has already begun. The thread's record holds
//! the earlier messages, so an update is recognised as history by its text.

use serde_json::Value;

use super::content::{is_human, text_of};

/// Recognises updates that replay the history of a reloaded session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryFilter {
    /// The first message of the user.
    first: String,
    /// What is left of the text of the agent's last message.
    last: String,
    /// Number of messages of the user that were not replayed yet.
    left: usize,
    has_begun: bool,
    /// The last update belongs to a message of the user.
    in_user_message: bool,
    is_done: bool,
}

impl HistoryFilter {
    /// A filter for a thread with these messages of the user and the agent.
    #[must_use]
    pub fn new(messages: &[Value]) -> Self {
        let humans = messages.iter().filter(|message| is_human(message));
        let last = messages.last().filter(|message| !is_human(message));
        let text = |message: Option<&Value>| match message.map(|one| &one["content"]) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(blocks)) => text_of(blocks),
            _ => String::new(),
        };
        Self {
            first: text(humans.clone().next()),
            last: text(last),
            left: humans.count(),
            has_begun: false,
            in_user_message: false,
            is_done: messages.is_empty(),
        }
    }

    /// Whether an update of the session replays its history.
    pub fn is_history(&mut self, update: &Value) -> bool {
        let text = update["content"]["text"].as_str().unwrap_or_default();
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        let continues = std::mem::replace(&mut self.in_user_message, kind == "user_message_chunk");
        match kind {
            _ if self.is_done => {}
            "user_message_chunk" if continues => {}
            "user_message_chunk" => {
                // Another user message than the first one, or one more, echoes the prompt.
                let is_first = self.first.starts_with(text) || text.starts_with(&self.first);
                self.is_done = self.left == 0 || !self.has_begun && !is_first;
                self.left = self.left.saturating_sub(1);
                self.has_begun = true;
            }
            // The turn has begun without a replay.
            "agent_message_chunk" | "agent_thought_chunk" | "tool_call" if !self.has_begun => {
                self.is_done = true;
            }
            // Updates of commands and modes may come at any time.
            _ if !self.has_begun => return false,
            // The updates of this turn can only follow the last turn of the history.
            "agent_message_chunk" if self.left == 0 => match self.last.strip_prefix(text) {
                Some(rest) if !self.last.is_empty() => {
                    let rest = rest.to_owned();
                    self.is_done = rest.is_empty();
                    self.last = rest;
                    return true;
                }
                _ => self.is_done = true,
            },
            _ => {}
        }
        !self.is_done
    }
}
