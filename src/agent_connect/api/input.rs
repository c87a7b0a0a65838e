//! Maps a prompt to an agent's input, by the input's schema.

use serde_json::{Map, Value, json};

use super::error::{RpcError, RpcResult};

/// The `input` of a run for a prompt. `history` holds the earlier messages, for an agent without
/// threads.
///
/// # Errors
/// When the agent requires an object of its own and the prompt's text is not a JSON object.
pub fn input(schema: Option<&Value>, prompt: &[Value], history: &[Value]) -> RpcResult<Value> {
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    let has = |name: &str| properties.is_some_and(|all| all.contains_key(name));
    if has("prompt") && history.is_empty() {
        return Ok(json!({ "prompt": prompt }));
    }
    let text = prompt_text(prompt);
    let Some(properties) = properties.filter(|all| !all.is_empty() && !has("messages")) else {
        let mut messages = history.to_vec();
        let is_plain = |block: &Value| !matches!(block["type"].as_str(), Some("image" | "audio"));
        // Images and audio are only offered if the input has a place for them.
        messages.push(match prompt.iter().all(is_plain) {
            true => message("human", &text),
            false => json!({ "role": "human", "content": prompt }),
        });
        return Ok(json!({ "messages": messages }));
    };
    let strings: Vec<&String> = properties
        .iter()
        .filter(|(_, property)| property.get("type").is_some_and(|kind| kind == "string"))
        .map(|(name, _)| name)
        .collect();
    if let Ok(Value::Object(given)) = serde_json::from_str(&text) {
        return Ok(Value::Object(given));
    }
    let name = match strings.as_slice() {
        [only] => Some((*only).as_str()),
        several => several
            .iter()
            .map(|name| name.as_str())
            .find(|name| ["message", "prompt", "input", "query"].contains(name)),
    };
    let Some(name) = name else {
        let names: Vec<&str> = properties.keys().map(String::as_str).collect();
        return Err(RpcError::invalid(format!(
            "this agent takes a JSON object with {}; the prompt is not a JSON object",
            names.join(", ")
        )));
    };
    let mut input = Map::new();
    input.insert(name.to_owned(), text.into());
    Ok(Value::Object(input))
}

/// A message of a thread.
pub fn message(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

/// The text of a prompt. Links and embedded texts are written out; other blocks are not offered.
pub fn prompt_text(prompt: &[Value]) -> String {
    let block_text = |block: &Value| {
        let of = |pointer: &str| block.pointer(pointer).and_then(Value::as_str);
        match of("/type") {
            Some("text") => of("/text").map(str::to_owned),
            Some("resource_link") => {
                let uri = of("/uri")?;
                Some(format!("[{}]({uri})", of("/name").unwrap_or(uri)))
            }
            Some("resource") => of("/resource/text").map(str::to_owned),
            _ => None,
        }
    };
    let texts: Vec<String> = prompt.iter().filter_map(block_text).collect();
    texts.join("\n")
}
