//! A small agent without a model.
//!
//! It sends a plan, reads a file through the editor, asks for permission to change it, and writes
//! it through the editor.

use serde_json::{Value, json};

use super::rpc::{Failure, RpcLink};
use crate::transport::registry;
use crate::transport::{Endpoint, Setup};

/// Runs the agent on our stdin and stdout until the client closes.
pub(super) async fn play() -> Result<(), Failure> {
    let mut link = RpcLink::new(registry::connect(&Endpoint::Stdio, &Setup::default()).await?);
    let mut folder = String::new();
    while let Some(message) = link.receive().await? {
        let Some(id) = message.get("id") else {
            continue;
        };
        match message["method"].as_str() {
            Some("initialize") => {
                let about = json!({
                    "protocolVersion": 1,
                    "agentCapabilities": {},
                    "agentInfo": { "name": "acp-relay-demo", "version": env!("CARGO_PKG_VERSION") },
                    "authMethods": [],
                });
                link.answer(id, about).await?;
            }
            Some("session/new") => {
                message["params"]["cwd"]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(&mut folder);
                link.answer(id, json!({ "sessionId": "demo" })).await?;
            }
            Some("session/prompt") => {
                turn(&mut link, &folder).await?;
                link.answer(id, json!({ "stopReason": "end_turn" })).await?;
            }
            Some(other) => {
                link.refuse(id, &format!("the demo agent does not know {other}"))
                    .await?
            }
            None => {}
        }
    }
    Ok(())
}

async fn turn(link: &mut RpcLink, folder: &str) -> Result<(), Failure> {
    let path = format!("{folder}/greeting.txt");
    let plan = [
        ("Read the greeting", "in_progress"),
        ("Make it warmer", "pending"),
    ];
    let entries: Vec<Value> =
        plan.iter().map(|(content, status)| json!({ "content": content, "priority": "medium", "status": status })).collect();
    update(link, json!({ "sessionUpdate": "plan", "entries": entries })).await?;
    for text in ["Let me see ", "what the greeting says."] {
        update(link, json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } })).await?;
    }
    let read = request(
        link,
        "fs/read_text_file",
        json!({ "sessionId": "demo", "path": path }),
    )
    .await?;
    let old = read["content"].as_str().unwrap_or_default().to_owned();
    let new = old.replace("hello", "a very warm welcome");

    let diff = json!([{ "type": "diff", "path": path, "oldText": old, "newText": new }]);
    let call = json!({
        "toolCallId": "edit-1", "title": "Edit greeting.txt", "kind": "edit", "status": "pending",
        "content": diff, "locations": [{ "path": path }],
    });
    let mut announced = call.clone();
    announced["sessionUpdate"] = json!("tool_call");
    update(link, announced).await?;
    let options = json!([
        { "optionId": "yes", "name": "Allow once", "kind": "allow_once" },
        { "optionId": "no", "name": "Reject", "kind": "reject_once" },
    ]);
    let params = json!({ "sessionId": "demo", "toolCall": call, "options": options });
    let decision = request(link, "session/request_permission", params).await?;

    let allowed = decision["outcome"]["optionId"] == "yes";
    let (status, closing) = if allowed {
        request(
            link,
            "fs/write_text_file",
            json!({ "sessionId": "demo", "path": path, "content": new }),
        )
        .await?;
        ("completed", "Done: the greeting is warmer now.")
    } else {
        ("failed", "Then the greeting stays as it is.")
    };
    update(
        link,
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "edit-1", "status": status }),
    )
    .await?;
    update(link, json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": closing } })).await
}

async fn update(link: &mut RpcLink, update: Value) -> Result<(), Failure> {
    link.notify(
        "session/update",
        json!({ "sessionId": "demo", "update": update }),
    )
    .await
}

/// Sends a request to the client, which sends nothing else meanwhile.
async fn request(link: &mut RpcLink, method: &str, params: Value) -> Result<Value, Failure> {
    link.request(method, params, |_, _| Ok(Value::Null)).await
}
