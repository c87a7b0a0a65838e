//! Messages of Agent Connect, the content blocks of ACP in them, and the updates that they come from.

use serde_json::{Map, Value, json};

/// The output of a turn so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnOutput {
    /// The content of the agent's message; neighbouring texts are merged.
    blocks: Vec<Value>,
    /// Tool calls, in the order in which they first appeared.
    tools: Vec<Map<String, Value>>,
    plan: Option<Value>,
    /// The length of the blocks and the tool calls as JSON, in bytes.
    len: usize,
}

impl TurnOutput {
    /// About how long it is as JSON, in bytes.
    #[must_use]
    pub const fn json_len(&self) -> usize {
        self.len
    }

    /// Applies one `update` of a `session/update`.
    pub fn apply(&mut self, update: &Value) {
        match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk") => {
                let content = &update["content"];
                self.len += length(content);
                match content["text"].as_str() {
                    Some(text) if content["type"] == "text" => {
                        push_block(&mut self.blocks, text_block(text));
                    }
                    _ if content.is_null() || content["type"] == "text" => {}
                    _ => self.blocks.push(content.clone()),
                }
            }
            Some("tool_call" | "tool_call_update") => self.update_tool_call(update),
            Some("plan") => self.plan = update.get("entries").cloned(),
            _ => {}
        }
    }

    /// The agent's message; empty while the agent has sent none.
    #[must_use]
    pub fn messages(&self) -> Vec<Value> {
        let content = match self.blocks.as_slice() {
            [] => return Vec::new(),
            [only] if only["type"] == "text" => only["text"].clone(),
            blocks => blocks.into(),
        };
        vec![json!({ "role": "ai", "content": content })]
    }

    /// The text of the agent's message.
    #[must_use]
    pub fn text(&self) -> String {
        text_of(&self.blocks)
    }

    /// The tool calls and the plan, for the turn's record.
    #[must_use]
    pub fn activity(&self) -> Map<String, Value> {
        let mut activity = Map::new();
        if !self.tools.is_empty() {
            let tools = self.tools.iter().cloned().map(Value::Object);
            activity.insert("toolCalls".to_owned(), tools.collect());
        }
        if let Some(plan) = &self.plan {
            activity.insert("plan".to_owned(), plan.clone());
        }
        activity
    }

    /// A tool call or an update of one: each member that is given replaces the previous one.
    fn update_tool_call(&mut self, update: &Value) {
        let Some(members) = update.as_object() else {
            return;
        };
        let id = update.get("toolCallId");
        let known = |call: &Map<String, Value>| call.get("toolCallId") == id;
        let at = self.tools.iter().position(known).unwrap_or_else(|| {
            self.tools.push(Map::new());
            self.tools.len() - 1
        });
        let call = &mut self.tools[at];
        for (name, value) in members {
            if name != "sessionUpdate" && !value.is_null() {
                let replaced = call.insert(name.clone(), value.clone());
                let before = replaced.map_or(0, |value| length(&value));
                self.len = (self.len + length(value)).saturating_sub(before);
            }
        }
    }
}

/// The content block for a text.
#[must_use]
pub fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// The text of a block; `None` if it is of another type.
#[must_use]
pub fn text_in(block: &Value) -> Option<&str> {
    block["text"].as_str().filter(|_| block["type"] == "text")
}

/// The text of content blocks, one below the other.
#[must_use]
pub fn text_of(content: &[Value]) -> String {
    let texts = content.iter().filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// Adds a block to others; neighbouring texts are merged.
pub fn push_block(blocks: &mut Vec<Value>, block: Value) {
    let last = blocks.last_mut().filter(|last| last["type"] == "text");
    match (text_in(&block), last.map(|last| &mut last["text"])) {
        (Some(text), Some(Value::String(so_far))) => so_far.push_str(text),
        _ => blocks.push(block),
    }
}

/// Whether a message is one of the user.
#[must_use]
pub fn is_human(message: &Value) -> bool {
    matches!(role(message), Some("human" | "user"))
}

/// Whether a message is one of the agent.
#[must_use]
pub fn is_agent(message: &Value) -> bool {
    matches!(
        role(message),
        Some("ai" | "assistant" | "agent" | "AIMessageChunk")
    )
}

/// A value as text: a string as it is, anything else as JSON.
#[must_use]
pub fn plain_text(value: &Value) -> String {
    let text = value.as_str().map(str::to_owned);
    text.unwrap_or_else(|| value.to_string())
}

/// The length of a value as JSON, in bytes.
fn length(value: &Value) -> usize {
    value.to_string().len()
}

fn role(message: &Value) -> Option<&str> {
    message["role"]
        .as_str()
        .or_else(|| message["type"].as_str())
}
