//! Tracks the content sent to a client in a run, to find what is new in a snapshot.
//!
//! Values replace the whole state each time; ACP's chunks only add. So if a text grew, only its new
//! end is sent; if it was rewritten, it is sent again.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::content::{is_agent, is_human, plain_text, push_block, text_block, text_in, text_of};

/// The content that a client has received in a run.
#[derive(Clone, Debug, Default)]
pub struct SentContent {
    /// Ids of messages that are older than the run.
    old_ids: HashSet<String>,
    /// The content sent of each message, by its id or its position.
    messages: HashMap<String, Vec<Value>>,
    /// The content of forwarded ACP updates.
    updates: Vec<Value>,
}

impl SentContent {
    /// The state at the start of a run, on a thread that holds messages with these ids.
    pub fn new(old_ids: HashSet<String>) -> Self {
        Self {
            old_ids,
            ..Self::default()
        }
    }

    /// Records an update that was forwarded unchanged.
    pub fn record_update(&mut self, update: &Value) {
        if update["sessionUpdate"] == "agent_message_chunk" && !update["content"].is_null() {
            push(&mut self.updates, update["content"].clone());
        }
    }

    /// Content blocks for what is new in these messages; they count as sent.
    pub fn take_new(&mut self, messages: &[Value]) -> Vec<Value> {
        let messages = self.run_messages(messages);
        if !self.updates.is_empty() {
            let mut all = Vec::new();
            for block in messages.into_iter().flat_map(|(_, blocks)| blocks) {
                push(&mut all, block);
            }
            return take_new(&mut self.updates, all);
        }
        let mut new = Vec::new();
        for (key, blocks) in messages {
            new.extend(take_new(self.messages.entry(key).or_default(), blocks));
        }
        new
    }

    /// The block that a chunk adds to its message; `None` if it adds nothing or names no message.
    pub fn add_chunk(&mut self, message: &Value) -> Option<Value> {
        let id = id(message).filter(|id| is_agent(message) && !self.old_ids.contains(*id))?;
        let block = content(message).into_iter().next()?;
        let sent = self.messages.entry(id.to_owned()).or_default();
        push(sent, block.clone());
        Some(block)
    }

    /// Content blocks for what is new in messages of this run, without the messages before them.
    pub fn add_messages(&mut self, messages: &[Value]) -> Vec<Value> {
        let named = messages.iter().filter(|message| id(message).is_some());
        let named: Vec<Value> = named.cloned().collect();
        self.take_new(&named)
    }

    /// Whether nothing was sent.
    pub fn is_empty(&self) -> bool {
        self.messages.values().all(Vec::is_empty) && self.updates.is_empty()
    }

    /// The agent's messages of this run.
    fn run_messages(&self, messages: &[Value]) -> Vec<(String, Vec<Value>)> {
        let is_new = |message: &&Value| id(message).is_none_or(|id| !self.old_ids.contains(id));
        let new = after_last_human(messages).filter(is_new).enumerate();
        new.map(|(at, message)| {
            let key = id(message).map_or_else(|| format!("#{at}"), str::to_owned);
            (key, content(message))
        })
        .collect()
    }
}

/// The updates that replay the messages of a thread.
pub fn replay_updates(messages: &[Value]) -> impl Iterator<Item = Value> {
    messages.iter().flat_map(|message| {
        let kind = if is_human(message) {
            Some("user_message_chunk")
        } else {
            is_agent(message).then_some("agent_message_chunk")
        };
        let blocks = kind.map(|_| content(message)).unwrap_or_default();
        let update = move |block| json!({ "sessionUpdate": kind, "content": block });
        blocks.into_iter().map(update)
    })
}

/// The ids of messages, where they have one.
pub fn message_ids(messages: &[Value]) -> HashSet<String> {
    let ids = messages.iter().filter_map(|message| id(message));
    ids.map(str::to_owned).collect()
}

/// The agent's messages, as one text.
pub fn answer_text(messages: &[Value]) -> String {
    let blocks: Vec<Value> = after_last_human(messages).flat_map(content).collect();
    text_of(&blocks)
}

/// The agent's messages after the last one of the user.
fn after_last_human(messages: &[Value]) -> impl Iterator<Item = &Value> {
    let start = messages.iter().rposition(is_human).map_or(0, |at| at + 1);
    messages[start..].iter().filter(|message| is_agent(message))
}

/// What `now` adds to `sent`; `sent` becomes `now`.
fn take_new(sent: &mut Vec<Value>, now: Vec<Value>) -> Vec<Value> {
    let mut new = Vec::new();
    for (at, block) in now.iter().enumerate() {
        match sent.get(at) {
            Some(before) if before == block => {}
            Some(before) => match (text_in(before), text_in(block)) {
                (Some(before), Some(after)) => {
                    let rest = after.strip_prefix(before).unwrap_or(after);
                    if !rest.is_empty() {
                        new.push(text_block(rest));
                    }
                }
                _ => new.push(block.clone()),
            },
            None => new.push(block.clone()),
        }
    }
    *sent = now;
    new
}

/// A message's content in ACP's blocks, with neighbouring texts merged. Content that has no ACP
/// block becomes JSON text.
fn content(message: &Value) -> Vec<Value> {
    let list = match &message["content"] {
        text @ Value::String(_) => std::slice::from_ref(text),
        Value::Array(list) => list,
        _ => &[],
    };
    let mut blocks = Vec::new();
    for block in list {
        let block = match block["type"].as_str() {
            Some("text") => text_block(text_in(block).unwrap_or_default()),
            Some("image" | "audio" | "resource" | "resource_link") => block.clone(),
            _ => text_block(&plain_text(block)),
        };
        push(&mut blocks, block);
    }
    blocks
}

fn push(blocks: &mut Vec<Value>, block: Value) {
    if text_in(&block) != Some("") {
        push_block(blocks, block);
    }
}

fn id(message: &Value) -> Option<&str> {
    message["id"].as_str()
}
