//! Sessions are threads: created, loaded, listed and deleted.

use std::sync::Arc;

use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};

use super::agent::{Agent, Session};
use super::server::segment;
use crate::agent_connect::remote::descriptor::{Descriptor, Generation};
use crate::agent_connect::remote::failure::Failure;
use crate::agent_connect::remote::{heard, told};
use crate::agent_connect::uuid::Uuid;

/// Maximum number of threads in a list.
const LISTED: u64 = 100;

/// `session/new`.
pub(super) async fn new(agent: &Arc<Agent>, params: &Value) -> Result<Value, Failure> {
    let known = agent.descriptor().await?;
    if known.locked {
        return Err(locked());
    }
    warn_of_servers(&known, params);
    let meta = params.pointer("/_meta/agentConnect").cloned();
    let id = if known.threads() {
        let mut metadata = known.thread_metadata(params);
        let given = meta
            .as_ref()
            .and_then(|meta| meta.get("metadata")?.as_object());
        metadata.extend(given.cloned().unwrap_or_default());
        let body = json!({ "metadata": metadata, "if_exists": "raise" });
        let told = agent.server.post("/threads", &body).await?;
        // In the prose specification the first run creates the thread.
        if told.is_absent() && known.generation == Generation::Old {
            None
        } else {
            let id = told
                .json()?
                .get("thread_id")
                .and_then(Value::as_str)
                .map(str::to_owned);
            let missing = "the server returned no thread_id";
            Some(id.ok_or_else(|| Failure::internal(missing))?)
        }
    } else {
        None
    };
    let is_thread = id.is_some();
    let id = match id {
        Some(id) => id,
        None => local()?,
    };
    let session = agent.session(&id, is_thread)?;
    session.notes().meta = meta.unwrap_or_default();
    Ok(with_options(json!({ "sessionId": id }), &known, &session))
}

/// `session/set_config_option`: the value is sent with the runs that follow.
pub(super) async fn choose(agent: &Arc<Agent>, params: &Value) -> Result<Value, Failure> {
    let known = agent.descriptor().await?;
    let unknown = || Failure::new(-32002, "there is no such session");
    let session = agent.known(named(params)?).ok_or_else(unknown)?;
    let id = params.get("configId").and_then(Value::as_str);
    let value = params.get("value").unwrap_or(&Value::Null);
    let chosen = id.and_then(|id| Some((id.to_owned(), known.choice(id, value)?)));
    let (id, value) = chosen
        .ok_or_else(|| Failure::invalid("there is no such option, or it has no such value"))?;
    session.notes().chosen.insert(id, value);
    let options = known.options(&session.notes().chosen);
    Ok(json!({ "configOptions": options }))
}

/// `session/load`: replays the thread's messages. Its tool calls are not known.
pub(super) async fn load(agent: &Arc<Agent>, params: &Value) -> Result<Value, Failure> {
    let known = agent.descriptor().await?;
    let id = named(params)?;
    warn_of_servers(&known, params);
    let mut messages = heard::messages(&thread(agent, id, "").await?);
    // If a thread does not include its messages, its state does.
    if messages.is_empty() && known.generation == Generation::Old {
        let state = thread(agent, id, "/state").await.unwrap_or_default();
        messages = heard::messages(&state);
    }
    let session = agent.session(id, true)?;
    {
        let mut notes = session.notes();
        notes.old = told::ids(&messages);
        notes.meta = params
            .pointer("/_meta/agentConnect")
            .cloned()
            .unwrap_or_default();
    }
    for update in told::replayed(&messages) {
        agent.update(id, &update).await;
    }
    Ok(with_options(json!({}), &known, &session))
}

/// `session/list`.
pub(super) async fn list(agent: &Arc<Agent>, params: &Value) -> Result<Value, Failure> {
    let body = json!({ "limit": LISTED });
    let told = agent.server.post("/threads/search", &body).await?;
    let found = told.json()?;
    let wanted = params.get("cwd").and_then(Value::as_str);
    let shown = |thread: &Value| {
        let cwd = ["/metadata/acp_cwd", "/metadata/cwd"];
        let cwd = cwd.iter().find_map(|at| thread.pointer(at)?.as_str());
        let cwd = cwd.unwrap_or("/");
        if wanted.is_some_and(|wanted| wanted != cwd) {
            return None;
        }
        let mut session = json!({ "sessionId": thread.get("thread_id")?.as_str()?, "cwd": cwd });
        if let Some(at) = thread.get("updated_at").and_then(Value::as_str) {
            session["updatedAt"] = json!(at);
        }
        Some(session)
    };
    let sessions: Vec<Value> = found
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(shown)
        .collect();
    Ok(json!({ "sessions": sessions }))
}

/// `session/delete`.
pub(super) async fn delete(agent: &Arc<Agent>, params: &Value) -> Result<Value, Failure> {
    let id = named(params)?;
    let path = format!("/threads/{}", segment(id));
    let told = agent.server.delete(&path).await?;
    if !told.is_good() {
        return Err(told.refusal());
    }
    agent.forget(id);
    Ok(json!({}))
}

/// The result of a request that opened a session, with its options.
fn with_options(mut answer: Value, known: &Descriptor, session: &Session) -> Value {
    let options = known.options(&session.notes().chosen);
    if !options.is_empty() {
        answer["configOptions"] = json!(options);
    }
    answer
}

/// An id for a local session.
fn local() -> Result<String, Failure> {
    let mut random = [0; 16];
    SystemRandom::new()
        .fill(&mut random)
        .map_err(|_| Failure::internal("the system has no random numbers"))?;
    Ok(Uuid::random(random).to_string())
}

/// The session id in a request.
pub(super) fn named(params: &Value) -> Result<&str, Failure> {
    let id = params.get("sessionId").and_then(Value::as_str);
    id.filter(|id| !id.is_empty())
        .ok_or_else(|| Failure::invalid("\"sessionId\" is missing"))
}

/// The server requires a key.
pub(super) fn locked() -> Failure {
    let what = "Authentication required: the server asks for a key; start acp-relay with \
                --bearer-file, or with --header \"x-api-key: …\"";
    Failure::new(-32000, what)
}

async fn thread(agent: &Agent, id: &str, below: &str) -> Result<Value, Failure> {
    let path = format!("/threads/{}{below}", segment(id));
    agent.server.get(&path).await?.json()
}

/// Logs a warning for ignored MCP servers: they run where the agent runs, and most agents behind
/// Agent Connect cannot use them.
fn warn_of_servers(known: &Descriptor, params: &Value) {
    let servers = params.get("mcpServers").and_then(Value::as_array);
    let count = servers.map_or(0, Vec::len);
    if count > 0 && !known.configures("mcp_servers") {
        tracing::warn!(
            count,
            "the agent does not support MCP servers; they are ignored"
        );
    }
}
