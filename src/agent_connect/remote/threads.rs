//! Sessions are threads: created, loaded, listed and deleted.

use std::sync::Arc;

use hyper::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::agent::{RemoteAgent, RemoteSession};
use super::server::segment;
use crate::api::descriptor::{Descriptor, Generation};
use crate::api::error::{RpcError, RpcResult};
use crate::api::{run_event, sent_content};

/// Maximum number of threads in a list.
const MAX_LISTED: u64 = 100;

/// `session/new`.
pub(super) async fn new(agent: &Arc<RemoteAgent>, params: &Value) -> RpcResult<Value> {
    let known = agent.descriptor().await?;
    if known.needs_key {
        return Err(key_required());
    }
    warn_of_servers(&known, params);
    let meta = &params["_meta"]["agentConnect"];
    let id = if known.has_threads() {
        let mut metadata = known.thread_metadata(params);
        metadata.extend(meta["metadata"].as_object().cloned().unwrap_or_default());
        let body = json!({ "metadata": metadata, "if_exists": "raise" });
        let response = agent.server.post("/threads", &body).await?;
        // In the prose specification the first run creates the thread.
        if response.is_absent() && known.generation == Generation::Old {
            None
        } else {
            let missing = || RpcError::internal("the server returned no thread_id");
            let thread = response.json()?;
            Some(thread["thread_id"].as_str().ok_or_else(missing)?.to_owned())
        }
    } else {
        None
    };
    let is_thread = id.is_some();
    let id = id.unwrap_or_else(|| Uuid::new_v4().to_string());
    let session = agent.session(&id, is_thread)?;
    session.state().meta = meta.clone();
    Ok(with_options(json!({ "sessionId": id }), &known, &session))
}

/// `session/set_config_option`: the value is sent with the runs that follow.
pub(super) async fn set_option(agent: &Arc<RemoteAgent>, params: &Value) -> RpcResult<Value> {
    let known = agent.descriptor().await?;
    let unknown = || RpcError::new(-32002, "there is no such session");
    let session = agent
        .find_session(session_id(params)?)
        .ok_or_else(unknown)?;
    let id = params["configId"].as_str();
    let choice = id.and_then(|id| Some((id.to_owned(), known.choice(id, &params["value"])?)));
    let (id, value) = choice
        .ok_or_else(|| RpcError::invalid("there is no such option, or it has no such value"))?;
    session.state().options.insert(id, value);
    let options = known.options(&session.state().options);
    Ok(json!({ "configOptions": options }))
}

/// `session/load`: replays the thread's messages. Its tool calls are not known.
pub(super) async fn load(agent: &Arc<RemoteAgent>, params: &Value) -> RpcResult<Value> {
    let known = agent.descriptor().await?;
    let id = session_id(params)?;
    warn_of_servers(&known, params);
    let mut messages = run_event::messages(&get_thread(agent, id, "").await?);
    // If a thread does not include its messages, its state does.
    if messages.is_empty() && known.generation == Generation::Old {
        let state = get_thread(agent, id, "/state").await.unwrap_or_default();
        messages = run_event::messages(&state);
    }
    let session = agent.session(id, true)?;
    {
        let mut notes = session.state();
        notes.old_ids = sent_content::message_ids(&messages);
        notes.meta = params["_meta"]["agentConnect"].clone();
    }
    for update in sent_content::replay_updates(&messages) {
        agent.update(id, &update).await;
    }
    Ok(with_options(json!({}), &known, &session))
}

/// `session/list`.
pub(super) async fn list(agent: &Arc<RemoteAgent>, params: &Value) -> RpcResult<Value> {
    let body = json!({ "limit": MAX_LISTED });
    let response = agent.server.post("/threads/search", &body).await?;
    let found = response.json()?;
    let wanted = params["cwd"].as_str();
    let shown = |thread: &Value| {
        let cwd = ["/metadata/acp_cwd", "/metadata/cwd"];
        let cwd = cwd.iter().find_map(|at| thread.pointer(at)?.as_str());
        let cwd = cwd.unwrap_or("/");
        if wanted.is_some_and(|wanted| wanted != cwd) {
            return None;
        }
        let mut session = json!({ "sessionId": thread["thread_id"].as_str()?, "cwd": cwd });
        if let Some(at) = thread["updated_at"].as_str() {
            session["updatedAt"] = json!(at);
        }
        Some(session)
    };
    let sessions = found.as_array().into_iter().flatten().filter_map(shown);
    Ok(json!({ "sessions": sessions.collect::<Vec<Value>>() }))
}

/// `session/delete`.
pub(super) async fn delete(agent: &Arc<RemoteAgent>, params: &Value) -> RpcResult<Value> {
    let id = session_id(params)?;
    let path = format!("/threads/{}", segment(id));
    let response = agent.server.request(Method::DELETE, &path, None).await?;
    response.check()?;
    agent.remove_session(id);
    Ok(json!({}))
}

/// The result of a request that opened a session, with its options.
fn with_options(mut answer: Value, known: &Descriptor, session: &RemoteSession) -> Value {
    let options = known.options(&session.state().options);
    if !options.is_empty() {
        answer["configOptions"] = json!(options);
    }
    answer
}

/// The session id in a request.
pub(super) fn session_id(params: &Value) -> RpcResult<&str> {
    let id = params["sessionId"].as_str();
    id.filter(|id| !id.is_empty())
        .ok_or_else(|| RpcError::invalid("\"sessionId\" is missing"))
}

/// The server requires a key.
pub(super) fn key_required() -> RpcError {
    let what = "Authentication required: the server asks for a key; start acp-relay with \
                --bearer-file, or with --header \"x-api-key: …\"";
    RpcError::new(-32000, what)
}

async fn get_thread(agent: &RemoteAgent, id: &str, below: &str) -> RpcResult<Value> {
    let path = format!("/threads/{}{below}", segment(id));
    agent.server.get(&path).await?.json()
}

/// Logs a warning for ignored MCP servers: they run where the agent runs, and most agents behind
/// Agent Connect cannot use them.
fn warn_of_servers(known: &Descriptor, params: &Value) {
    let count = params["mcpServers"].as_array().map_or(0, Vec::len);
    if count > 0 && !known.configures("mcp_servers") {
        tracing::warn!(
            count,
            "the agent does not support MCP servers; they are ignored"
        );
    }
}
