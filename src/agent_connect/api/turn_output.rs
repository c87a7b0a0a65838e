//! Accumulates the updates of a turn into the output of a run.

use serde_json::{Map, Value, json};

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
        match update.get("sessionUpdate").and_then(Value::as_str) {
            Some("agent_message_chunk") => {
                if let Some(content) = update.get("content") {
                    self.push_content(content);
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
        super::run_request::text_of(&self.blocks)
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

    fn push_content(&mut self, content: &Value) {
        let text = content.get("text").and_then(Value::as_str);
        match (content["type"] == "text", text, self.blocks.last_mut()) {
            (true, Some(text), Some(last)) if last["type"] == "text" => {
                if let Some(Value::String(so_far)) = last.get_mut("text") {
                    so_far.push_str(text);
                }
            }
            (true, Some(text), _) => self.blocks.push(super::run_request::text_block(text)),
            (true, None, _) => {}
            (false, ..) => self.blocks.push(content.clone()),
        }
    }

    /// A tool call or an update of one: each member that is given replaces the previous one.
    fn update_tool_call(&mut self, update: &Value) {
        let Some(members) = update.as_object() else {
            return;
        };
        let id = update.get("toolCallId");
        let known = self
            .tools
            .iter_mut()
            .find(|call| call.get("toolCallId") == id);
        let call = match known {
            Some(call) => call,
            None => {
                self.tools.push(Map::new());
                self.tools.last_mut().expect("it was just pushed")
            }
        };
        for (name, value) in members {
            if name != "sessionUpdate" && !value.is_null() {
                call.insert(name.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_connect::vectors::{cases, list};

    /// A case has the updates of a turn and what they amount to.
    #[test]
    fn updates_make_the_output_that_the_vectors_say() {
        for case in cases("outputs") {
            let mut output = TurnOutput::default();
            for update in list(&case, "updates") {
                output.apply(update);
            }
            assert_eq!(json!(output.messages()), case["messages"], "{case}");
            assert_eq!(output.text(), case["text"], "{case}");
            assert_eq!(json!(output.activity()), case["activity"], "{case}");
        }
    }
}
