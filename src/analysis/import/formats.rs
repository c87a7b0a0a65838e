//! Reads the formats that other programs write, detected by their content.
//!
//! A message keeps its bytes where the format has them; a trace of the conductor and Zed's log have
//! its parts, of whose bytes it is assembled.

use std::collections::HashSet;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::capture::{Capture, Item, Parts, micros};
use jsonrpc::text::members;
use jsonrpc::{Kind, Limits, Side, is_json, printable};
use recording::capture::{LineContent, Lines};
use recording::{expand, one_line};

/// The format that has messages only.
const BARE_MESSAGES: &str = "bare messages";

/// The error for a file without a message.
const NO_MESSAGE: &str = "there is no message in it; expected bare messages (one a line, printed over \
                       several, in an array, or below Content-Length headers), a capture \
                       ({\"dir\":\"c2a\",\"ts\":0.1,\"msg\":{…}}), a trace (.jsons), a HAR file, an \
                       export of acp-devtools or a copied log of Zed's";

/// Reads a capture of any format; `advance` is told how many bytes were read.
///
/// # Errors
/// Why it is none.
pub(super) fn read(text: &[u8], advance: fn(u64)) -> Result<Capture, String> {
    let text = expand(text).map_err(|error| error.to_string())?;
    let mut capture = detect(&text, advance)?;
    let odd = capture.items.iter().filter(|item| !item.is_message());
    capture.odd = odd.count() as u64;
    // A format that names the senders may have captured only other output.
    let is_bare = capture.items.is_empty() || capture.format == BARE_MESSAGES;
    if is_bare && capture.odd == capture.items.len() as u64 {
        return Err(NO_MESSAGE.to_owned());
    }
    Ok(capture)
}

fn detect(text: &[u8], advance: fn(u64)) -> Result<Capture, String> {
    let first = text
        .split(|byte| *byte == b'\n')
        .find(|line| !line.trim_ascii().is_empty());
    let first = first.ok_or("there is nothing in it")?;
    let has = |text: &[u8], name: &str| members(text).any(|(own, _)| own == name.as_bytes());
    // JSON over several lines is one document.
    let document = serde_json::from_slice::<&RawValue>(text)
        .ok()
        .map(|whole| whole.get().as_bytes());
    match document {
        Some(whole) if has(whole, "messages") && has(whole, "session") => devtools(text),
        Some(whole) if has(whole, "log") => har(text),
        _ if has(first, "type") && has(first, "from") && has(first, "to") => trace(text, advance),
        _ if is_zed_line(first) => zed(text, advance),
        Some(whole) if whole.starts_with(b"[") => array(whole, advance),
        Some(whole) => lines(&Vec::from_iter(one_line(whole)), advance),
        None => lines(text, advance),
    }
}

/// Reads an array of items that could also be one per line.
fn array(text: &[u8], advance: fn(u64)) -> Result<Capture, String> {
    let items: Vec<&RawValue> = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let all: Vec<_> = items
        .iter()
        .map(|item| Vec::from_iter(one_line(item.get().as_bytes())))
        .collect();
    let text = all.join(&b'\n');
    match all.first() {
        Some(first) if is_zed_line(first) => zed(&text, advance),
        _ => lines(&text, advance),
    }
}

/// The members of an export of acp-devtools that are used; others may have values that
/// `serde_json::Value` rejects, such as `1e999`.
#[derive(Deserialize)]
struct Devtools<'a> {
    version: u64,
    #[serde(default)]
    session: DevtoolsSession,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DevtoolsSession {
    started_at: f64,
    client_name: Option<String>,
    agent_command: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DevtoolsMessage {
    direction: String,
    raw: String,
    timestamp: f64,
}

/// An export of acp-devtools, version 1.
fn devtools(text: &[u8]) -> Result<Capture, String> {
    let whole: Devtools<'_> = read_json(text)?;
    if whole.version != 1 {
        let version = whole.version;
        return Err(format!(
            "version {version} of acp-devtools' exports is not known here"
        ));
    }
    let began = micros(whole.session.started_at, 1e3);
    let mut capture = Capture {
        began,
        client: whole.session.client_name,
        agent: whole.session.agent_command,
        ..Capture::of("an export of acp-devtools")
    };
    for message in whole.messages {
        let message: DevtoolsMessage = read_json(message.get().as_bytes())?;
        let to = match message.direction.as_str() {
            "editor-to-agent" => Side::Agent,
            "agent-to-editor" => Side::Client,
            _ => {
                capture.left_out += 1;
                continue;
            }
        };
        let t = micros(message.timestamp, 1e3).saturating_sub(began);
        capture
            .items
            .push(Item::unchanged(t, to, message.raw.into()));
    }
    Ok(capture)
}

/// A HAR file with WebSocket messages, as browsers write them.
fn har(text: &[u8]) -> Result<Capture, String> {
    let whole: Value = read_json(text)?;
    let mut capture = Capture::of("a HAR file");
    let entries = whole["log"]["entries"].as_array().into_iter().flatten();
    let messages = entries.filter_map(|entry| entry["_webSocketMessages"].as_array());
    for message in messages.flatten() {
        if message["opcode"] != 1 {
            capture.left_out += 1;
            continue;
        }
        let to = match message["type"] == "send" {
            true => Side::Agent,
            false => Side::Client,
        };
        let time = micros(message["time"].as_f64().unwrap_or(0.0), 1e6);
        if capture.items.is_empty() {
            capture.began = time;
        }
        let bytes = message["data"].as_str().unwrap_or_default().into();
        let t = time.saturating_sub(capture.began);
        capture.items.push(Item::unchanged(t, to, bytes));
    }
    if capture.items.is_empty() {
        return Err("there are no messages of a WebSocket in it (`_webSocketMessages`)".to_owned());
    }
    Ok(capture)
}

fn read_json<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(text).map_err(|error| error.to_string())
}

/// A capture with directions, or bare messages.
fn lines(text: &[u8], advance: fn(u64)) -> Result<Capture, String> {
    let mut capture = Capture::of("a capture");
    let mut conversation = acp::Checker::new(false);
    let mut last = 0;
    // Reading from memory does not fail.
    for line in Lines::new(text).flatten() {
        advance(line.bytes.len() as u64);
        let LineContent::Message { from, message, .. } = &line.content else {
            continue;
        };
        if from.is_none()
            && let Some(word) = unknown_direction(&line.bytes)
        {
            return Err(format!(
                "line {}: {} is no direction; expected \"c2a\" or \"a2c\", \"client\" or \"agent\"",
                line.number,
                printable(&word)
            ));
        }
        let verdict = conversation.check(*from, message);
        if from.is_none() {
            capture.format = BARE_MESSAGES;
        }
        let sender = verdict.from.unwrap_or_else(|| {
            capture.guessed += 1;
            // The method is unknown: agents send notifications of a session, clients requests.
            let of_session = memchr::memmem::find(message.as_bytes(), b"\"sessionId\"");
            match (verdict.kind, of_session) {
                (Some(Kind::Notification), Some(_)) => Side::Agent,
                _ => Side::Client,
            }
        });
        if from.is_some() {
            last = line.micros().unwrap_or(last);
        }
        let bytes = message.as_bytes().to_vec();
        let item = Item::unchanged(last, sender.other(), bytes);
        capture.items.push(item);
    }
    Ok(capture)
}

/// The invalid direction of a line that is otherwise one of a capture.
fn unknown_direction(line: &[u8]) -> Option<Vec<u8>> {
    if !is_json(line, &Limits::default()) {
        return None;
    }
    let known: Vec<_> = members(line).collect();
    let has = |name: &[u8]| known.iter().any(|(own, _)| *own == name);
    if has(b"jsonrpc") || has(b"method") || !(has(b"msg") || has(b"raw")) {
        return None;
    }
    let names: [&[u8]; 2] = [b"dir", b"side"];
    let direction = known.iter().find(|(own, _)| names.contains(own));
    direction.map(|(_, value)| value.to_vec())
}

/// A trace of the official conductor (`.jsons`). With proxies in between, a message appears once for
/// each hop; those at the two ends are used. MCP messages are left out.
fn trace(text: &[u8], advance: fn(u64)) -> Result<Capture, String> {
    let mut mcp_requests = HashSet::new();
    Capture::of_lines("a trace of the conductor", text, advance, |line| {
        Ok(trace_item(&Parts::of(line)?, &mut mcp_requests))
    })
}

/// The message of a line; `None` if it is between proxies, or MCP. `mcp_requests` has the open
/// requests of MCP.
fn trace_item(parts: &Parts<'_>, mcp_requests: &mut HashSet<String>) -> Option<Item> {
    let (from, to, id) = (parts.text("from")?, parts.text("to")?, parts.raw("id"));
    let kind = parts.text("type")?;
    if parts.text("protocol").as_deref() == Some("mcp") {
        mcp_requests.insert(format!("{to} {id}"));
        return None;
    }
    if kind == "response" && mcp_requests.remove(&format!("{from} {id}")) {
        return None;
    }
    let end = |name: &str| match name.to_lowercase().as_str() {
        "client" => Some(Side::Client),
        "agent" => Some(Side::Agent),
        _ => None,
    };
    let (hop, to, passed) = match (end(&from), end(&to)) {
        (Some(from), Some(_)) => (from, from.other(), true),
        (Some(from), None) => (from, from.other(), false),
        (None, Some(to)) => (to, to, false),
        (None, None) => return None,
    };
    let bytes = match kind.as_str() {
        "response" if parts.raw("is_error") == "true" => {
            parts.message("error", parts.raw("payload"))
        }
        "response" => parts.message("result", parts.raw("payload")),
        "request" | "notification" => parts.message(&kind, parts.raw("params")),
        _ => return None,
    };
    Some(Item {
        t: micros(serde_json::from_str(parts.raw("ts")).ok()?, 1e6),
        hop,
        to,
        passed,
        bytes,
    })
}

/// Whether a line is one of Zed's log.
fn is_zed_line(line: &[u8]) -> bool {
    let has = |name: &[u8]| members(line).any(|(own, _)| own == name);
    has(b"_direction") && has(b"_type")
}

/// Messages copied from Zed's ACP log, which has no times. An answer has its method, and its result or
/// error as `params`; no result of ACP has the form of an error.
fn zed(text: &[u8], advance: fn(u64)) -> Result<Capture, String> {
    Capture::of_lines("a log of Zed's", text, advance, |line| Ok(zed_item(line)))
}

fn zed_item(line: &[u8]) -> Option<Item> {
    let parts = Parts::of(line).ok()?;
    let to = match parts.text("_direction")?.as_str() {
        "outgoing" => Side::Agent,
        "incoming" => Side::Client,
        _ => return None,
    };
    let params = parts.raw("params");
    let bytes = match parts.text("_type")?.as_str() {
        kind @ ("request" | "notification") => parts.message(kind, params),
        "response" if is_error(params) => parts.message("error", params),
        "response" => parts.message("result", params),
        _ => return None,
    };
    Some(Item::unchanged(0, to, bytes))
}

/// Whether the body of an answer is an error.
fn is_error(body: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only whether they are there matters")]
    struct Failure<'a> {
        code: i64,
        #[serde(borrow)]
        message: &'a RawValue,
        data: Option<IgnoredAny>,
    }
    serde_json::from_str::<Failure<'_>>(body).is_ok()
}
