//! Separates replayed history from the updates of the turn after a session was loaded.
//!
//! The messages of a session that is loaded belong before the answer to `session/load`; some agents
//! (Gemini CLI) send them after it, when the next turn has already begun. The thread's record holds
//! the earlier messages, so an update is recognised as history by its text.

use serde_json::Value;

use super::run_request::text_of;

/// Recognises updates that replay the history of a reloaded session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// The first message of the user.
    first: String,
    /// The text of the agent's last message.
    last: String,
    /// Number of messages of the user in the history.
    users: usize,
    /// How many of those were replayed.
    told: usize,
    /// The message that is being replayed.
    now: Option<(Speaker, String)>,
    over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    User,
    Agent,
}

impl Past {
    /// A filter for a thread with these messages of the user and the agent.
    #[must_use]
    pub fn of(messages: &[&Value]) -> Self {
        let is_human = |message: &&&Value| matches!(role(message), "human" | "user");
        let humans = messages.iter().filter(is_human);
        let last = messages
            .last()
            .filter(|message| !is_human(message))
            .map(|message| said(message));
        Self {
            first: humans
                .clone()
                .next()
                .map(|message| said(message))
                .unwrap_or_default(),
            last: last.unwrap_or_default(),
            users: humans.count(),
            told: 0,
            now: None,
            over: messages.is_empty(),
        }
    }

    /// Whether an update of the session replays its history.
    pub fn covers(&mut self, update: &Value) -> bool {
        if self.over {
            return false;
        }
        let kind = update.get("sessionUpdate").and_then(Value::as_str);
        let text = update.pointer("/content/text").and_then(Value::as_str);
        match (kind, text) {
            (Some("user_message_chunk"), text) => self.user(text.unwrap_or_default()),
            // The turn has begun without a replay.
            (Some("agent_message_chunk" | "agent_thought_chunk" | "tool_call"), _)
                if self.told == 0 =>
            {
                self.end();
            }
            // Updates of commands and modes may come at any time.
            _ if self.told == 0 => return false,
            // The updates of this turn can only follow the last turn of the history.
            (Some("agent_message_chunk"), Some(text)) if self.told == self.users => {
                return self.agent(text);
            }
            // The next chunk of the user belongs to another message.
            _ if matches!(self.now, Some((Speaker::User, _))) => self.now = None,
            _ => {}
        }
        !self.over
    }

    fn user(&mut self, text: &str) {
        match &mut self.now {
            Some((Speaker::User, said)) => said.push_str(text),
            // The agent echoes the prompt of this turn.
            _ if self.told == self.users => return self.end(),
            _ => {
                self.told += 1;
                self.now = Some((Speaker::User, text.to_owned()));
            }
        }
        if let (1, Some((_, said))) = (self.told, &self.now)
            && !said.starts_with(&self.first)
            && !self.first.starts_with(said.as_str())
        {
            self.end();
        } else if self.told == self.users && self.last.is_empty() {
            // The agent's last message had no text to compare with.
            self.end();
        }
    }

    /// Adds a chunk of the agent's last message; tells whether the chunk is part of it.
    fn agent(&mut self, text: &str) -> bool {
        let mut said = match self.now.take() {
            Some((Speaker::Agent, said)) => said,
            _ => String::new(),
        };
        said.push_str(text);
        let known = self.last.starts_with(&said);
        if !known || said.len() == self.last.len() {
            self.end();
        }
        self.now = Some((Speaker::Agent, said));
        known
    }

    const fn end(&mut self) {
        self.over = true;
    }
}

fn role(message: &Value) -> &str {
    message
        .get("role")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn said(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => text_of(blocks),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn past() -> Past {
        let messages = [
            json!({ "role": "human", "content": "one" }),
            json!({ "role": "ai", "content": "first" }),
            json!({ "role": "human", "content": [{ "type": "text", "text": "two" }] }),
            json!({ "role": "ai", "content": "second" }),
        ];
        Past::of(&messages.iter().collect::<Vec<_>>())
    }

    fn chunk(who: &str, text: &str) -> Value {
        json!({ "sessionUpdate": format!("{who}_message_chunk"), "content": { "type": "text", "text": text } })
    }

    #[test]
    fn the_past_ends_with_its_last_message() {
        let mut past = past();
        for (who, text) in [
            ("user", "o"),
            ("user", "ne"),
            ("agent", "first"),
            ("user", "two"),
            ("agent", "sec"),
            ("agent", "ond"),
        ] {
            assert!(past.covers(&chunk(who, text)), "{who} {text}");
        }
        // The same text again belongs to the turn.
        assert!(!past.covers(&chunk("agent", "second")));
        assert!(!past.covers(&chunk("user", "one")));
    }

    #[test]
    fn a_turn_without_a_past_is_heard_whole() {
        let mut past_of_nothing = Past::of(&[]);
        assert!(!past_of_nothing.covers(&chunk("user", "one")));
        assert!(!past().covers(&chunk("agent", "second")));
        let mut late = past();
        assert!(!late.covers(&json!({ "sessionUpdate": "available_commands_update" })));
        assert!(late.covers(&chunk("user", "one")));
        let mut echo = past();
        assert!(!echo.covers(&chunk("user", "three")));
        assert!(!echo.covers(&chunk("agent", "third")));
    }

    #[test]
    fn what_is_not_as_recorded_is_news() {
        let mut past = past();
        for (who, text) in [("user", "one"), ("agent", "x"), ("user", "two")] {
            assert!(past.covers(&chunk(who, text)), "{who} {text}");
        }
        assert!(!past.covers(&chunk("agent", "third")));
    }
}
