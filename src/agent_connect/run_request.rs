//! The body of requests that start a run.
//!
//! Three generations of bodies are read. The published OpenAPI document (0.2.3) has `input`,
//! `config.configurable` and `webhook`; the one before it has `thread_id` in the body; the prose
//! specification before that has `message` at the top and `callback`.

use serde_json::{Map, Value, json};

use super::api_error::ApiError;
use super::fields::RequestFields;
use super::session::SessionConfig;
use super::uuid::Uuid;

/// Longest delay of a run, in seconds: a week.
const MAX_DELAY: u64 = 7 * 86_400;

/// Highest recursion limit of a run. ACP has none, so the value is only checked.
pub(super) const MAX_RECURSION: u64 = 2_147_483_647;

/// Longest URL of a webhook, in bytes.
const MAX_WEBHOOK_LEN: usize = 2048;

/// A request to start a run.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The agent; optional when there is only one.
    pub agent: Option<Uuid>,
    /// The thread to run on, when the body names it.
    pub thread: Option<Uuid>,
    /// The input for the agent.
    pub input: Input,
    /// How its session is created, if one is needed.
    pub setup: SessionConfig,
    /// How permission requests of the agent are answered.
    pub permissions: Option<Permissions>,
    /// `_meta` that is sent to the agent with the prompt.
    pub meta: Option<Value>,
    /// The URL that is called when its status changes.
    pub webhook: Option<String>,
    /// What is streamed.
    pub stream_modes: StreamModes,
    /// Cancel the run when the stream that started it disconnects.
    pub cancel_on_disconnect: bool,
    /// What happens when the thread is busy.
    pub strategy: Strategy,
    /// Delay before it starts, in seconds.
    pub delay: u64,
    /// Keep the thread that was created for this run alone.
    pub keep_thread: bool,
    /// Create the thread if it does not exist.
    pub create_thread: bool,
    /// The body, unchanged.
    pub creation: Value,
}

/// The input of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The prompt, in ACP's content blocks.
    pub prompt: Vec<Value>,
    /// Earlier messages that the client sent along, for an agent that has not received them.
    pub history: Option<String>,
    /// The client's message, as stored in the thread.
    pub message: Value,
    /// The input was `message`, as in the prose specification; the answer uses the same form.
    pub is_message: bool,
}

/// What is streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamModes {
    /// The whole values, repeatedly.
    pub values: bool,
    /// Each update of the agent.
    pub custom: bool,
}

/// What happens when the thread is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// The request is rejected with 409.
    Reject,
    /// The current run is cancelled.
    Interrupt,
    /// The run is queued.
    Enqueue,
}

/// How permission requests of an agent are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permissions {
    /// By the client: the run is interrupted.
    Interrupt,
    /// Allowed, once.
    Allow,
    /// Rejected.
    Reject,
}

impl Permissions {
    /// Their names, in the order of the variants.
    pub const NAMES: [&str; 3] = ["interrupt", "allow", "reject"];

    pub(super) const fn from_index(index: usize) -> Self {
        match index {
            0 => Self::Interrupt,
            1 => Self::Allow,
            _ => Self::Reject,
        }
    }
}

impl RunRequest {
    /// Reads a body.
    ///
    /// # Errors
    /// 422, when a member is invalid.
    pub fn read(body: Value) -> Result<Self, ApiError> {
        let fields = RequestFields::new(&body)?;
        let input = Input::read(fields)?;
        let config = fields.nested("config")?;
        let (mut tags, mut configurable) = (None, None);
        if let Some(config) = config {
            tags = config.list("tags")?;
            if tags.is_some_and(|tags| tags.iter().any(|tag| !tag.is_string())) {
                return Err(ApiError::invalid("\"tags\" must be an array of strings"));
            }
            let recursion_limit = config.number("recursion_limit")?;
            if recursion_limit.is_some_and(|limit| limit > MAX_RECURSION) {
                return Err(ApiError::invalid(format!(
                    "\"recursion_limit\" must be {MAX_RECURSION} or less"
                )));
            }
            configurable = config.nested("configurable")?;
        }
        let metadata = fields.object("metadata")?;
        let webhook = webhook(fields)?;
        let delay = fields.number("after_seconds")?.unwrap_or(0);
        if delay > MAX_DELAY {
            let what = format!("\"after_seconds\" must be {MAX_DELAY} or less");
            return Err(ApiError::invalid(what));
        }
        let strategies = ["reject", "rollback", "interrupt", "enqueue"];
        let strategy = match fields.choice("multitask_strategy", &strategies)? {
            None | Some(0) => Strategy::Reject,
            Some(1) => {
                return Err(ApiError::invalid(
                    "multitask_strategy rollback is not possible: what an agent has done to files \
                     cannot be undone",
                ));
            }
            Some(2) => Strategy::Interrupt,
            Some(_) => Strategy::Enqueue,
        };
        let permissions = match configurable {
            Some(fields) => fields.choice("permissions", &Permissions::NAMES)?,
            None => None,
        };
        Ok(Self {
            agent: fields.uuid("agent_id")?,
            thread: fields.uuid("thread_id")?,
            setup: configurable
                .map_or_else(|| Ok(SessionConfig::default()), SessionConfig::read)?,
            permissions: permissions.map(Permissions::from_index),
            meta: meta(metadata, tags),
            webhook,
            stream_modes: StreamModes::read(fields)?,
            cancel_on_disconnect: fields.choice("on_disconnect", &["cancel", "continue"])?
                != Some(1),
            strategy,
            delay,
            keep_thread: fields.choice("on_completion", &["delete", "keep"])? == Some(1)
                || input.is_message,
            create_thread: fields.choice("if_not_exists", &["reject", "create"])? == Some(1),
            input,
            creation: body,
        })
    }
}

impl StreamModes {
    fn read(fields: RequestFields<'_>) -> Result<Self, ApiError> {
        let given = match fields.get("stream_mode") {
            None => {
                return Ok(Self {
                    values: true,
                    custom: false,
                });
            }
            Some(Value::Array(list)) => list.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        let has = |word: &str| given.iter().any(|mode| mode == word);
        let known = |mode: &Value| mode == "values" || mode == "custom";
        if given.is_empty() || !given.iter().all(known) {
            return Err(ApiError::invalid(
                "\"stream_mode\" must be values, custom or both",
            ));
        }
        Ok(Self {
            values: has("values"),
            custom: has("custom"),
        })
    }
}

impl Input {
    fn read(fields: RequestFields<'_>) -> Result<Self, ApiError> {
        let nothing = "\"input\" must hold \"messages\" with one of role human, \"prompt\" with \
                       content blocks, or \"message\"";
        let Some(input) = fields.get("input") else {
            let message = fields
                .text("message")?
                .ok_or_else(|| ApiError::invalid(nothing))?;
            return Self::message(message);
        };
        if let Value::String(text) = input {
            let mut read = Self::message(text)?;
            read.is_message = false;
            return Ok(read);
        }
        let inner = RequestFields::new(input).map_err(|_| ApiError::invalid(nothing))?;
        if let Some(messages) = inner.list("messages")? {
            Self::messages(messages)
        } else if let Some(prompt) = inner.list("prompt")? {
            let prompt = blocks(prompt)?;
            Ok(Self {
                message: json!({ "role": "human", "content": prompt }),
                prompt,
                history: None,
                is_message: false,
            })
        } else if let Some(message) = inner.text("message")? {
            Self::message(message)
        } else {
            Err(ApiError::invalid(nothing))
        }
    }

    fn message(text: &str) -> Result<Self, ApiError> {
        if text.is_empty() {
            return Err(ApiError::invalid("the message is empty"));
        }
        Ok(Self {
            prompt: vec![text_block(text)],
            history: None,
            message: json!({ "role": "human", "content": text }),
            is_message: true,
        })
    }

    fn messages(messages: &[Value]) -> Result<Self, ApiError> {
        let mut read = Vec::new();
        for message in messages {
            let fields = RequestFields::new(message)
                .map_err(|_| ApiError::invalid("every one of \"messages\" must be an object"))?;
            let role = fields.text("role")?;
            let role = role.ok_or_else(|| ApiError::invalid("a message needs a \"role\""))?;
            let content = match fields.get("content") {
                Some(Value::String(text)) => vec![text_block(text)],
                Some(Value::Array(list)) => blocks(list)?,
                _ => {
                    let what = "\"content\" of a message must be a string or an array of blocks";
                    return Err(ApiError::invalid(what));
                }
            };
            read.push((role, content, message));
        }
        let human = |(role, ..): &(&str, Vec<Value>, &Value)| matches!(*role, "human" | "user");
        let last = read.iter().rposition(human);
        let last =
            last.ok_or_else(|| ApiError::invalid("none of \"messages\" has the role human"))?;
        let earlier: Vec<String> = read[..last]
            .iter()
            .map(|(role, content, _)| format!("{role}: {}", text_of(content)))
            .collect();
        let (_, prompt, message) = read.swap_remove(last);
        if prompt.is_empty() {
            return Err(ApiError::invalid("the last message of role human is empty"));
        }
        Ok(Self {
            prompt,
            history: (!earlier.is_empty()).then(|| earlier.join("\n\n")),
            message: message.clone(),
            is_message: false,
        })
    }
}

/// The text of content blocks, one below the other.
#[must_use]
pub fn text_of(content: &[Value]) -> String {
    let texts = content
        .iter()
        .filter_map(|block| block.get("text")?.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// ACP's content block for a text.
#[must_use]
pub fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// The content blocks of a message. `metadata` of a text block belongs to Agent Connect and is
/// dropped; all other blocks are passed to the agent unchanged.
fn blocks(list: &[Value]) -> Result<Vec<Value>, ApiError> {
    let mut blocks = Vec::new();
    for block in list {
        let kind = RequestFields::new(block).and_then(|fields| fields.text("type"));
        match kind {
            Ok(Some("text")) => {
                let text = RequestFields::new(block)?.text("text")?;
                let text =
                    text.ok_or_else(|| ApiError::invalid("a text block needs its \"text\""))?;
                blocks.push(text_block(text));
            }
            Ok(Some(_)) => blocks.push(block.clone()),
            _ => {
                return Err(ApiError::invalid(
                    "a content block must be an object with a \"type\"",
                ));
            }
        }
    }
    if blocks.is_empty() {
        return Err(ApiError::invalid("a message must not be empty"));
    }
    Ok(blocks)
}

/// `webhook`, or `callback` of the prose specification: a URL, or `{"POST": URL}`.
fn webhook(fields: RequestFields<'_>) -> Result<Option<String>, ApiError> {
    let given = match fields.text("webhook")? {
        Some(given) => given,
        None => match fields.get("callback") {
            None => return Ok(None),
            Some(Value::String(given)) => given,
            Some(other) => {
                let inner = RequestFields::new(other)?;
                let given = inner.text("POST")?.or(inner.text("url")?);
                given.ok_or_else(|| ApiError::invalid("\"callback\" must name where to POST"))?
            }
        },
    };
    if given.is_empty() || given.len() > MAX_WEBHOOK_LEN {
        return Err(ApiError::invalid(
            "\"webhook\" must be an address of 1 to 2048 bytes",
        ));
    }
    Ok(Some(given.to_owned()))
}

fn meta(metadata: Option<&Map<String, Value>>, tags: Option<&[Value]>) -> Option<Value> {
    let mut meta = Map::new();
    if let Some(metadata) = metadata.filter(|map| !map.is_empty()) {
        meta.insert("metadata".to_owned(), Value::Object(metadata.clone()));
    }
    if let Some(tags) = tags.filter(|tags| !tags.is_empty()) {
        meta.insert("tags".to_owned(), tags.into());
    }
    (!meta.is_empty()).then(|| json!({ "agentConnect": meta }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> RunRequest {
        RunRequest::read(body).expect("a good body")
    }

    #[test]
    fn only_the_last_message_is_the_prompt() {
        let request = read(json!({ "input": { "messages": [
            { "role": "human", "content": "I am John" }, { "role": "ai", "content": "Hello" },
            { "role": "user", "content": [{ "type": "text", "text": "And I?", "metadata": {} }] },
        ] } }));
        assert_eq!(
            request.input.prompt,
            [json!({ "type": "text", "text": "And I?" })]
        );
        assert_eq!(
            request.input.history.as_deref(),
            Some("human: I am John\n\nai: Hello")
        );
    }

    #[test]
    fn request_format_of_the_specification_text_is_read() {
        let request = read(json!({ "message": "Hi", "callback": { "POST": "https://x/y" } }));
        assert_eq!(
            request.input.prompt,
            [json!({ "type": "text", "text": "Hi" })]
        );
        assert_eq!(request.webhook.as_deref(), Some("https://x/y"));
        assert!(request.keep_thread);
    }

    #[test]
    fn invalid_bodies_are_rejected() {
        let good = json!({ "messages": [{ "role": "human", "content": "hi" }] });
        for bad in [
            json!([]),
            json!({}),
            json!({ "input": 7 }),
            json!({ "input": {} }),
            json!({ "input": { "messages": [] } }),
            json!({ "input": { "messages": [{ "role": "ai", "content": "hi" }] } }),
            json!({ "input": { "messages": [{ "role": "human" }] } }),
            json!({ "input": { "prompt": [{ "text": "hi" }] } }),
            json!({ "input": good, "multitask_strategy": "rollback" }),
            json!({ "input": good, "stream_mode": "events" }),
            json!({ "input": good, "after_seconds": -1 }),
            json!({ "input": good, "agent_id": "x" }),
            json!({ "input": good, "config": { "configurable": { "cwd": "relative" } } }),
            json!({ "input": good, "config": { "configurable": { "permissions": "ask" } } }),
        ] {
            let fault = RunRequest::read(bad.clone()).expect_err(&bad.to_string());
            assert_eq!(fault.status, 422, "{bad}");
        }
    }
}
