//! Accumulates the updates of a turn into the output of a run.

use serde_json::{Map, Value, json};

use super::content::{push_block, text_block, text_of};

/// The output of a turn so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnOutput {
    /// The content of the agent's message; neighbouring texts are merged.
    blocks: Vec<Value>,
    /// Tool calls, in the order in which they first appeared.
    tools: Vec<Map<String, Value>>,
    plan: Option<Value>,
}

impl TurnOutput {
    /// Applies one `update` of a `session/update`.
    pub fn apply(&mut self, update: &Value) {
        match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk") => {
                let content = &update["content"];
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
        let known = self
            .tools
            .iter()
            .position(|call| call.get("toolCallId") == id);
        let at = known.unwrap_or(self.tools.len());
        if known.is_none() {
            self.tools.push(Map::new());
        }
        let call = &mut self.tools[at];
        for (name, value) in members {
            if name != "sessionUpdate" && !value.is_null() {
                call.insert(name.clone(), value.clone());
            }
        }
    }
}
