//! The body of requests that start a run.
//!
//! Three generations of bodies are read. The published OpenAPI document (0.2.3) has `input`,
//! `config.configurable` and `webhook`; the one before it has `thread_id` in the body; the prose
//! specification before that has `message` at the top and `callback`.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::body::{check_metadata, read, read_as, read_members, whole};
use super::content::{text_block, text_of};
use super::error::{ApiError, ApiResult};
use super::session::SessionConfig;

/// Longest delay of a run, in seconds: a week.
const MAX_DELAY: u64 = 7 * 86_400;

/// Highest recursion limit of a run. ACP has none, so the value is only checked.
const MAX_RECURSION: u64 = 2_147_483_647;

/// Longest URL of a webhook, in bytes.
const MAX_WEBHOOK_LEN: usize = 2048;

/// A request to start a run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct RunRequest {
    /// The agent; optional when there is only one.
    #[serde(rename = "agent_id")]
    pub agent: Option<Uuid>,
    /// The thread to run on, when the body names it.
    #[serde(rename = "thread_id")]
    pub thread: Option<Uuid>,
    /// The URL that is called when its status changes.
    pub webhook: Option<String>,
    /// What is streamed.
    #[serde(rename = "stream_mode")]
    pub stream_modes: StreamModes,
    /// What happens when the stream that started it disconnects.
    pub on_disconnect: OnDisconnect,
    /// What happens when the thread is busy.
    #[serde(rename = "multitask_strategy")]
    pub strategy: Strategy,
    /// Delay before it starts, in seconds.
    #[serde(rename = "after_seconds", deserialize_with = "whole")]
    pub delay: u64,
    /// What happens to the thread that was created for this run alone.
    pub on_completion: OnCompletion,
    /// What happens when its thread does not exist.
    pub if_not_exists: IfNotExists,
    metadata: Map<String, Value>,
    config: Map<String, Value>,
    callback: Option<Callback>,
    /// The input for the agent.
    #[serde(skip)]
    pub input: Input,
    /// How its session is created, if one is needed.
    #[serde(skip)]
    pub setup: SessionConfig,
    /// `_meta` that is sent to the agent with the prompt.
    #[serde(skip)]
    pub meta: Option<Value>,
    /// The body, unchanged.
    #[serde(skip)]
    pub creation: Value,
}

/// `config`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RunConfig {
    #[serde(deserialize_with = "strings")]
    tags: Vec<String>,
    #[serde(deserialize_with = "whole")]
    recursion_limit: u64,
    configurable: Map<String, Value>,
}

/// The input of a run.
#[derive(Clone, Debug, Default, PartialEq)]
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

/// `input`, in any of its forms.
#[derive(Default, Deserialize)]
#[serde(default)]
struct InputMembers {
    messages: Option<Vec<Value>>,
    prompt: Option<Vec<Value>>,
    message: Option<String>,
}

/// One of `messages`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Message {
    role: Option<String>,
    content: Option<Content>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "must be a string or an array of blocks")]
enum Content {
    Text(String),
    Blocks(Vec<Value>),
}

/// `callback` of the prose specification: a URL, or `{"POST": URL}`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "must name where to POST")]
enum Callback {
    Url(String),
    Post {
        #[serde(rename = "POST", alias = "url")]
        url: String,
    },
}

/// What is streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamModes {
    /// The whole values, repeatedly.
    pub values: bool,
    /// Each update of the agent.
    pub custom: bool,
}

/// What happens to a run when the stream that started it disconnects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnDisconnect {
    /// It is cancelled.
    #[default]
    Cancel,
    /// It continues.
    Continue,
}

/// What happens when the thread is busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// The request is rejected with 409.
    #[default]
    Reject,
    /// Not possible.
    Rollback,
    /// The current run is cancelled.
    Interrupt,
    /// The run is queued.
    Enqueue,
}

/// What happens to the thread that was created for a run alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnCompletion {
    /// It is not stored.
    #[default]
    Delete,
    /// It is stored.
    Keep,
}

/// What happens when the thread of a run does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IfNotExists {
    /// The request is rejected with 404.
    #[default]
    Reject,
    /// It is created.
    Create,
}

impl RunRequest {
    /// Reads a body.
    ///
    /// # Errors
    /// 422, when a member is invalid.
    pub fn read(body: Value) -> ApiResult<Self> {
        let mut request: Self = read(&body)?;
        check_metadata(&request.metadata)?;
        let config: RunConfig = read_members(&request.config)?;
        for (name, given, max) in [
            ("recursion_limit", config.recursion_limit, MAX_RECURSION),
            ("after_seconds", request.delay, MAX_DELAY),
        ] {
            if given > max {
                let what = format!("\"{name}\" must be {max} or less");
                return Err(ApiError::invalid(what));
            }
        }
        if request.strategy == Strategy::Rollback {
            return Err(ApiError::invalid(
                "multitask_strategy rollback is not possible: what an agent has done to files \
                 cannot be undone",
            ));
        }
        let called_back = request.callback.take().map(|callback| match callback {
            Callback::Url(url) | Callback::Post { url } => url,
        });
        request.webhook = request.webhook.or(called_back);
        let fits = |url: &String| (1..=MAX_WEBHOOK_LEN).contains(&url.len());
        if !request.webhook.iter().all(fits) {
            let what = format!("\"webhook\" must be an address of 1 to {MAX_WEBHOOK_LEN} bytes");
            return Err(ApiError::invalid(what));
        }
        request.input = Input::read(&body)?;
        request.setup = read_members(&config.configurable)?;
        request.meta = meta(&request.metadata, &config.tags);
        request.creation = body;
        Ok(request)
    }

    /// Whether its thread is stored although it was created for this run alone. In the prose
    /// specification a run creates the thread that the next one names.
    #[must_use]
    pub fn keeps_thread(&self) -> bool {
        self.on_completion == OnCompletion::Keep || self.input.is_message
    }
}

/// One mode or an array of them.
impl<'de> Deserialize<'de> for StreamModes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let given = Value::deserialize(from)?;
        let names = match &given {
            Value::Array(all) => all.as_slice(),
            one => std::slice::from_ref(one),
        };
        let has = |name: &str| names.iter().any(|one| one == name);
        if names.is_empty() || names.iter().any(|one| one != "values" && one != "custom") {
            return Err(D::Error::custom("must be values, custom or both"));
        }
        Ok(Self {
            values: has("values"),
            custom: has("custom"),
        })
    }
}

impl Default for StreamModes {
    fn default() -> Self {
        Self {
            values: true,
            custom: false,
        }
    }
}

impl Input {
    fn read(body: &Value) -> ApiResult<Self> {
        let members = match body.get("input").filter(|input| !input.is_null()) {
            Some(Value::String(text)) => {
                return Ok(Self {
                    is_message: false,
                    ..Self::message(text)?
                });
            }
            Some(Value::Object(members)) => read_members(members)?,
            Some(_) => InputMembers::default(),
            None => InputMembers {
                message: read::<InputMembers>(&json!({ "message": body["message"] }))?.message,
                ..InputMembers::default()
            },
        };
        if let Some(messages) = members.messages {
            Self::messages(&messages)
        } else if let Some(prompt) = members.prompt {
            let prompt = blocks(&prompt)?;
            Ok(Self {
                message: json!({ "role": "human", "content": prompt }),
                prompt,
                ..Self::default()
            })
        } else if let Some(message) = members.message {
            Self::message(&message)
        } else {
            Err(ApiError::invalid(
                "\"input\" must hold \"messages\" with one of role human, \"prompt\" with content \
                 blocks, or \"message\"",
            ))
        }
    }

    fn message(text: &str) -> ApiResult<Self> {
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

    fn messages(messages: &[Value]) -> ApiResult<Self> {
        let read = messages.iter().map(|message| {
            let given: Message = read_as("every one of \"messages\"", message)?;
            let content = match given.content {
                Some(Content::Text(text)) => vec![text_block(&text)],
                Some(Content::Blocks(list)) => blocks(&list)?,
                None => {
                    let what = "\"content\" of a message must be a string or an array of blocks";
                    return Err(ApiError::invalid(what));
                }
            };
            let role = given.role;
            let role = role.ok_or_else(|| ApiError::invalid("a message needs a \"role\""))?;
            Ok((role, content))
        });
        let mut read: Vec<(String, Vec<Value>)> = read.collect::<ApiResult<_>>()?;
        let last = read
            .iter()
            .rposition(|(role, _)| matches!(role.as_str(), "human" | "user"));
        let last =
            last.ok_or_else(|| ApiError::invalid("none of \"messages\" has the role human"))?;
        let (_, prompt) = read.swap_remove(last);
        let earlier: Vec<String> = read[..last]
            .iter()
            .map(|(role, content)| format!("{role}: {}", text_of(content)))
            .collect();
        Ok(Self {
            prompt,
            history: (!earlier.is_empty()).then(|| earlier.join("\n\n")),
            message: messages[last].clone(),
            is_message: false,
        })
    }
}

fn strings<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let strings = Value::deserialize(from)
        .and_then(|given| serde_json::from_value(given).map_err(D::Error::custom));
    strings.map_err(|_| D::Error::custom("must be an array of strings"))
}

/// The content blocks of a message. `metadata` of a text block belongs to Agent Connect and is
/// dropped; all other blocks are passed to the agent unchanged.
fn blocks(list: &[Value]) -> ApiResult<Vec<Value>> {
    if list.is_empty() {
        return Err(ApiError::invalid("a message must not be empty"));
    }
    let block = |block: &Value| match (block["type"].as_str(), block["text"].as_str()) {
        (Some("text"), Some(text)) => Ok(text_block(text)),
        (Some("text"), None) => Err(ApiError::invalid("a text block needs its \"text\"")),
        (Some(_), _) => Ok(block.clone()),
        (None, _) => Err(ApiError::invalid(
            "a content block must be an object with a \"type\"",
        )),
    };
    list.iter().map(block).collect()
}

fn meta(metadata: &Map<String, Value>, tags: &[String]) -> Option<Value> {
    let mut meta = Map::new();
    if !metadata.is_empty() {
        meta.insert("metadata".to_owned(), json!(metadata));
    }
    if !tags.is_empty() {
        meta.insert("tags".to_owned(), json!(tags));
    }
    (!meta.is_empty()).then(|| json!({ "agentConnect": meta }))
}
