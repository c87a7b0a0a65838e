//! Finds an agent on a server: its id, its descriptor, and the server's API generation.

use serde_json::{Value, json};

use super::server::{RemoteServer, segment};
use crate::api::agent::parse_id;
use crate::api::descriptor::{Descriptor, Generation};
use crate::api::error::RpcResult;

/// Finds an agent by its id or its name.
pub(super) async fn find_agent(server: &RemoteServer, agent: &str) -> RpcResult<Descriptor> {
    let (mut no_agents, is_id) = (false, parse_id(agent).is_some());
    let id = match is_id {
        true => agent.to_owned(),
        false => {
            let wanted = json!({ "name": agent });
            let found = server.post("/agents/search", &wanted).await?;
            match found.status {
                401 | 403 => return Ok(Descriptor::unknown(agent.to_owned(), true)),
                // A server without a search may know the agent by that name, or reports an error
                // later.
                _ if found.is_absent() => {
                    no_agents = true;
                    agent.to_owned()
                }
                _ => id_of(&found.json()?, agent),
            }
        }
    };
    if no_agents && let Some(graph) = assistant(server, &id, is_id).await? {
        return Ok(graph);
    }
    let place = segment(&id);
    for (path, generation) in [
        (format!("/agents/{place}/descriptor"), Generation::New),
        (format!("/agents/{place}/manifest"), Generation::Old),
        (format!("/agents/agent/{place}/manifest"), Generation::Old),
    ] {
        let response = server.get(&path).await?;
        match response.status {
            401 | 403 => return Ok(Descriptor::unknown(id, true)),
            _ if response.is_absent() => {}
            _ => return Ok(Descriptor::new(id, generation, response.json()?)),
        }
    }
    if is_id && let Some(graph) = assistant(server, &id, is_id).await? {
        return Ok(graph);
    }
    tracing::warn!(%agent, "the server does not describe this agent");
    Ok(Descriptor::unknown(id, false))
}

/// The assistant of that id, or of the graph of that name, if the server has LangGraph's paths.
async fn assistant(
    server: &RemoteServer,
    agent: &str,
    is_id: bool,
) -> RpcResult<Option<Descriptor>> {
    let response = if is_id {
        let path = format!("/assistants/{}", segment(agent));
        server.get(&path).await?
    } else {
        let wanted = json!({ "graph_id": agent, "limit": 1 });
        let path = "/assistants/search";
        server.post(path, &wanted).await?
    };
    if matches!(response.status, 401 | 403) {
        return Ok(Some(Descriptor::unknown(agent.to_owned(), true)));
    }
    if !response.is_success() {
        return Ok(None);
    }
    let found = match response.json()? {
        Value::Array(all) => all.into_iter().next(),
        one => Some(one),
    };
    Ok(found.and_then(|document| {
        let id = document["assistant_id"].as_str()?.to_owned();
        Some(Descriptor::new(id, Generation::LangGraph, document))
    }))
}

/// The id of the agent of that name; the name itself if the server lists no such agent.
fn id_of(found: &Value, agent: &str) -> String {
    // Before 0.1 an entry has `id`.
    let id_of = |entry: &Value| {
        let id = entry["agent_id"]
            .as_str()
            .or_else(|| entry["id"].as_str())?;
        let name = entry.pointer("/metadata/ref/name");
        let is_it = name.is_none_or(|name| name == agent);
        is_it.then(|| id.to_owned())
    };
    let found = found.as_array().into_iter().flatten().find_map(id_of);
    found.unwrap_or_else(|| agent.to_owned())
}
