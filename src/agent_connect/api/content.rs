//! Messages of Agent Connect, and the content blocks of ACP in them.

use serde_json::{Value, json};

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

fn role(message: &Value) -> Option<&str> {
    message["role"]
        .as_str()
        .or_else(|| message["type"].as_str())
}
