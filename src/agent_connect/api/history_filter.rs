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
    /// The text of the agent's last message.
    last: String,
    /// Number of messages of the user in the history.
    user_count: usize,
    /// How many of those were replayed.
    replayed: usize,
    /// The message that is being replayed.
    current: Option<(Speaker, String)>,
    is_done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    User,
    Agent,
}

impl HistoryFilter {
    /// A filter for a thread with these messages of the user and the agent.
    #[must_use]
    pub fn new(messages: &[&Value]) -> Self {
        let humans = messages.iter().filter(|message| is_human(message));
        let last = messages.last().filter(|message| !is_human(message));
        let text = |message: Option<&&Value>| message.map(|one| message_text(one));
        Self {
            first: text(humans.clone().next()).unwrap_or_default(),
            last: text(last).unwrap_or_default(),
            user_count: humans.count(),
            replayed: 0,
            current: None,
            is_done: messages.is_empty(),
        }
    }

    /// Whether an update of the session replays its history.
    pub fn is_history(&mut self, update: &Value) -> bool {
        if self.is_done {
            return false;
        }
        let kind = update["sessionUpdate"].as_str();
        let text = update["content"]["text"].as_str();
        match (kind, text) {
            (Some("user_message_chunk"), text) => self.user_text(text.unwrap_or_default()),
            // The turn has begun without a replay.
            (Some("agent_message_chunk" | "agent_thought_chunk" | "tool_call"), _)
                if self.replayed == 0 =>
            {
                self.end();
            }
            // Updates of commands and modes may come at any time.
            _ if self.replayed == 0 => return false,
            // The updates of this turn can only follow the last turn of the history.
            (Some("agent_message_chunk"), Some(text)) if self.replayed == self.user_count => {
                return self.agent_text(text);
            }
            // The next chunk of the user belongs to another message.
            _ if matches!(self.current, Some((Speaker::User, _))) => self.current = None,
            _ => {}
        }
        !self.is_done
    }

    fn user_text(&mut self, text: &str) {
        match &mut self.current {
            Some((Speaker::User, current)) => current.push_str(text),
            // The agent echoes the prompt of this turn.
            _ if self.replayed == self.user_count => return self.end(),
            _ => {
                self.replayed += 1;
                self.current = Some((Speaker::User, text.to_owned()));
            }
        }
        if let (1, Some((_, current))) = (self.replayed, &self.current)
            && !current.starts_with(&self.first)
            && !self.first.starts_with(current.as_str())
        {
            self.end();
        } else if self.replayed == self.user_count && self.last.is_empty() {
            // The agent's last message had no text to compare with.
            self.end();
        }
    }

    /// Adds a chunk of the agent's last message; returns whether the chunk is part of it.
    fn agent_text(&mut self, text: &str) -> bool {
        let mut current = match self.current.take() {
            Some((Speaker::Agent, text)) => text,
            _ => String::new(),
        };
        current.push_str(text);
        let known = self.last.starts_with(&current);
        if !known || current.len() == self.last.len() {
            self.end();
        }
        self.current = Some((Speaker::Agent, current));
        known
    }

    const fn end(&mut self) {
        self.is_done = true;
    }
}

fn message_text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => text_of(blocks),
        _ => String::new(),
    }
}
