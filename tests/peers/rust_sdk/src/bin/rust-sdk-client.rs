//! The official Rust SDK as a remote client; counterpart of `http_client.mjs`.
//!
//!     rust-sdk-client --url http://HOST:PORT/acp|ws://… --cwd DIR --prompt TEXT --cancel-prompt TEXT
//!                     [--auth METHOD] [--expect LIST] [--file NAME]
//!
//! Only the SDK implements the protocol here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AuthenticateRequest, CancelNotification, ClientCapabilities, ContentBlock,
    FileSystemCapabilities, InitializeRequest, LoadSessionRequest, NewSessionRequest,
    PermissionOptionKind, PromptRequest, ReadTextFileRequest, ReadTextFileResponse,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionNotification, TextContent, WriteTextFileRequest,
    WriteTextFileResponse,
};
use agent_client_protocol::{Agent, Client, Error};
use agent_client_protocol_http::HttpClient;
use serde_json::json;
use tokio::sync::Notify;

#[derive(Default)]
struct Summary {
    updates: BTreeMap<String, u32>,
    sessions: BTreeMap<String, u32>,
    permissions: u32,
    reads: u32,
    writes: u32,
    stops: Vec<String>,
    loaded: Option<u32>,
}

type Shared = Arc<Mutex<Summary>>;

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let options: BTreeMap<String, String> = words
        .chunks(2)
        .map(|pair| (pair[0].trim_start_matches('-').to_owned(), pair[1].clone()))
        .collect();
    let summary = Shared::default();
    let talk = converse(&options, summary.clone());
    let error = match tokio::time::timeout(Duration::from_secs(90), talk).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("{error:?}")),
        Err(_) => Some("timed out".to_owned()),
    };
    let seen = summary.lock().unwrap();
    let count = |kind: &str| seen.updates.get(kind).copied().unwrap_or(0);
    let stopped = |at: usize, reason: &str| seen.stops.get(at).is_some_and(|one| one == reason);
    let missing: Vec<&str> = options.get("expect").map_or("", String::as_str).split(',')
        .filter(|name| match *name {
            "" => false,
            "text" => count("agent_message_chunk") < 2,
            "tool_call" => count("tool_call") + count("tool_call_update") == 0,
            "permission" => seen.permissions == 0,
            "read" => seen.reads == 0,
            "write" => seen.writes == 0,
            "end_turn" => !stopped(0, "end_turn") || !stopped(1, "end_turn"),
            "cancelled" => !stopped(2, "cancelled"),
            "load" => seen.loaded.is_none_or(|count| count == 0),
            "answered" => seen.stops.len() != 3,
            _ => true,
        })
        .collect();
    let file = options.get("file").and_then(|name| {
        std::fs::read_to_string(PathBuf::from(&options["cwd"]).join(name)).ok()
    });
    println!("{}", json!({
        "updates": seen.updates, "sessions": seen.sessions, "permissions": seen.permissions,
        "stops": seen.stops, "loaded": seen.loaded, "missing": missing, "error": error, "file": file,
    }));
    std::process::exit(i32::from(error.is_some() || !missing.is_empty()));
}

async fn converse(options: &BTreeMap<String, String>, summary: Shared) -> Result<(), Error> {
    let enough = Arc::new(Notify::new());
    let transport = HttpClient::with_endpoint(&options["url"])
        .map_err(|error| Error::internal_error().data(error.to_string()))?;
    let (seen, started) = (summary.clone(), enough.clone());
    let (permitted, read, written) = (summary.clone(), summary.clone(), summary.clone());
    let options = options.clone();
    Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _cx| {
                let update = serde_json::to_value(&notification.update).unwrap();
                let kind = update["sessionUpdate"].as_str().unwrap_or("?").to_owned();
                let mut seen = seen.lock().unwrap();
                if kind == "agent_message_chunk" {
                    started.notify_one();
                }
                *seen.updates.entry(kind).or_default() += 1;
                *seen.sessions.entry(notification.session_id.to_string()).or_default() += 1;
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _cx| {
                permitted.lock().unwrap().permissions += 1;
                let allow = request.options.iter()
                    .find(|option| option.kind == PermissionOptionKind::AllowOnce)
                    .unwrap_or(&request.options[0]);
                responder.respond(RequestPermissionResponse::new(
                    RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(
                        allow.option_id.clone(),
                    )),
                ))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ReadTextFileRequest, responder, _cx| {
                read.lock().unwrap().reads += 1;
                let text = std::fs::read_to_string(&request.path).unwrap_or_default();
                responder.respond(ReadTextFileResponse::new(text))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: WriteTextFileRequest, responder, _cx| {
                written.lock().unwrap().writes += 1;
                std::fs::write(&request.path, &request.content).unwrap();
                responder.respond(WriteTextFileResponse::new())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(transport, |agent: ConnectionTo<Agent>| async move {
            talk(&agent, &options, &summary, &enough).await
        })
        .await
}

async fn talk(
    agent: &ConnectionTo<Agent>,
    options: &BTreeMap<String, String>,
    summary: &Shared,
    enough: &Notify,
) -> Result<(), Error> {
    let files = FileSystemCapabilities::new().read_text_file(true).write_text_file(true);
    let hello = agent
        .send_request(
            InitializeRequest::new(ProtocolVersion::V1)
                .client_capabilities(ClientCapabilities::new().fs(files)),
        )
        .block_task()
        .await?;
    if let Some(method) = options.get("auth") {
        agent.send_request(AuthenticateRequest::new(method.clone())).block_task().await?;
    }
    let cwd = PathBuf::from(&options["cwd"]);
    let one = agent.send_request(NewSessionRequest::new(cwd.clone())).block_task().await?.session_id;
    let two = agent.send_request(NewSessionRequest::new(cwd.clone())).block_task().await?.session_id;
    let prompt = |session: &agent_client_protocol::v1::schema::SessionId, text: &str| {
        let text = ContentBlock::Text(TextContent::new(text.to_owned()));
        agent.send_request(PromptRequest::new(session.clone(), vec![text])).block_task()
    };
    let text = &options["prompt"];
    let (first, second) = futures::join!(prompt(&one, text), prompt(&two, text));
    let stop = |reason| serde_json::to_value(reason).unwrap().as_str().unwrap().to_owned();
    for answer in [first?, second?] {
        summary.lock().unwrap().stops.push(stop(answer.stop_reason));
    }
    // Discard a notification of the previous prompts.
    let _ = tokio::time::timeout(Duration::ZERO, enough.notified()).await;
    let turn = prompt(&one, &options["cancel-prompt"]);
    let cancel = async {
        enough.notified().await;
        agent.send_notification(CancelNotification::new(one.clone()))
    };
    let (answer, cancelled) = futures::join!(turn, cancel);
    cancelled?;
    summary.lock().unwrap().stops.push(stop(answer?.stop_reason));
    if hello.agent_capabilities.load_session {
        let count = || summary.lock().unwrap().sessions.get(&*two.to_string()).copied().unwrap_or(0);
        let before = count();
        // An agent may refuse; `--expect load` makes that a failure.
        let loaded = agent.send_request(LoadSessionRequest::new(two.clone(), cwd)).block_task().await;
        for _ in 0..100 {
            if loaded.is_err() || count() > before {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        summary.lock().unwrap().loaded = Some(count() - before);
    }
    if summary.lock().unwrap().sessions.len() < 2 {
        return Err(Error::internal_error().data("one session received no update"));
    }
    Ok(())
}
