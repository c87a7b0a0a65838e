//! Reads the formats that other programs write, detected by their content.
//!
//! A message keeps its bytes where the format has them; `trace` and `zed` read formats that split a
//! message into its parts.

use serde_json::Value;
use serde_json::value::RawValue;

use super::capture::{Capture, Item, micros};
use super::{trace, zed};
use crate::acp;
use crate::jsonrpc::{Kind, Limits, Side, is_json, printable};
use crate::recording::capture::{LineContent, Lines};
use crate::recording::{expand, members, one_line};

/// The format that has messages only.
const BARE_MESSAGES: &str = "bare messages";

/// The error for a file without a message.
const NO_MESSAGE: &str = "there is no message in it; expected bare messages (one a line, printed over \
                       several, in an array, or below Content-Length headers), a capture \
                       ({\"dir\":\"c2a\",\"ts\":0.1,\"msg\":{…}}), a trace (.jsons), a HAR file, an \
                       export of acp-devtools or a copied log of Zed's";

/// Reads a capture of any format.
pub(super) fn read(text: &[u8]) -> Result<Capture, String> {
    let text = expand(text).map_err(|error| error.to_string())?;
    let mut capture = detect(&text)?;
    let odd = capture.items.iter().filter(|item| !item.is_message());
    capture.odd = odd.count() as u64;
    // A format that names the senders may have captured only other output.
    let is_bare = capture.items.is_empty() || capture.format == BARE_MESSAGES;
    if is_bare && capture.odd == capture.items.len() as u64 {
        return Err(NO_MESSAGE.to_owned());
    }
    Ok(capture)
}

fn detect(text: &[u8]) -> Result<Capture, String> {
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
        _ if has(first, "type") && has(first, "from") && has(first, "to") => trace::read(text),
        _ if zed::is_zed_line(first) => zed::read(text),
        Some(whole) if whole.starts_with(b"[") => array(whole),
        Some(whole) => lines(&Vec::from_iter(one_line(whole))),
        None => lines(text),
    }
}

/// Reads an array of items that could also be one per line.
fn array(text: &[u8]) -> Result<Capture, String> {
    let items: Vec<&RawValue> = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let all: Vec<_> = items
        .iter()
        .map(|item| Vec::from_iter(one_line(item.get().as_bytes())))
        .collect();
    let text = all.join(&b'\n');
    match all.first() {
        Some(first) if zed::is_zed_line(first) => zed::read(&text),
        _ => lines(&text),
    }
}

/// An export of acp-devtools, version 1.
fn devtools(text: &[u8]) -> Result<Capture, String> {
    let whole = pick(text, &["version", "session"])?;
    let messages = members(text).find(|(name, _)| *name == b"messages");
    let messages = messages.map_or(&b"[]"[..], |(_, at)| &text[at]);
    let messages: Vec<&RawValue> =
        serde_json::from_slice(messages).map_err(|error| error.to_string())?;
    if whole["version"] != 1 {
        return Err(format!(
            "version {} of acp-devtools' exports is not known here",
            whole["version"]
        ));
    }
    let session = &whole["session"];
    let began = micros(&session["startedAt"], 1e3);
    let peer_name = |name: &str| session[name].as_str().map(str::to_owned);
    let mut capture = Capture {
        began,
        client: peer_name("clientName"),
        agent: peer_name("agentCommand"),
        ..Capture::of("an export of acp-devtools")
    };
    for message in messages {
        let wanted = ["direction", "raw", "timestamp"];
        let message = pick(message.get().as_bytes(), &wanted)?;
        let to = match message["direction"].as_str() {
            Some("editor-to-agent") => Side::Agent,
            Some("agent-to-editor") => Side::Client,
            _ => {
                capture.left_out += 1;
                continue;
            }
        };
        let bytes = message["raw"].as_str().unwrap_or_default();
        let t = micros(&message["timestamp"], 1e3).saturating_sub(began);
        capture
            .items
            .push(Item::unchanged(t, to, bytes.as_bytes().to_vec()));
    }
    Ok(capture)
}

/// An object with only these members: others may be values that `serde_json::Value` rejects, such
/// as `1e999`.
fn pick(text: &[u8], names: &[&str]) -> Result<Value, String> {
    let wanted = members(text).filter_map(|(name, at)| {
        let name = names.iter().find(|wanted| wanted.as_bytes() == name)?;
        let value = serde_json::from_slice(&text[at]).map_err(|error| error.to_string());
        Some(value.map(|value: Value| ((*name).to_owned(), value)))
    });
    Ok(Value::Object(wanted.collect::<Result<_, _>>()?))
}

/// A HAR file with WebSocket messages, as browsers write them.
fn har(text: &[u8]) -> Result<Capture, String> {
    let whole: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let entries = whole["log"]["entries"].as_array().into_iter().flatten();
    let mut capture = Capture::of("a HAR file");
    for entry in entries {
        let messages = entry["_webSocketMessages"].as_array();
        for message in messages.into_iter().flatten() {
            let to = if message["type"] == "send" {
                Side::Agent
            } else {
                Side::Client
            };
            let time = micros(&message["time"], 1e6);
            if message["opcode"] != 1 {
                capture.left_out += 1;
                continue;
            }
            if capture.items.is_empty() {
                capture.began = time;
            }
            let bytes = message["data"].as_str().unwrap_or_default().into();
            let t = time.saturating_sub(capture.began);
            capture.items.push(Item::unchanged(t, to, bytes));
        }
    }
    if capture.items.is_empty() {
        return Err("there are no messages of a WebSocket in it (`_webSocketMessages`)".to_owned());
    }
    Ok(capture)
}

/// A capture with directions, or bare messages.
fn lines(text: &[u8]) -> Result<Capture, String> {
    let mut capture = Capture::of("a capture");
    let mut conversation = acp::Checker::new(false);
    let mut last = 0;
    // Reading from memory does not fail.
    for line in Lines::new(text).flatten() {
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
    direction.map(|(_, at)| line[at.clone()].to_vec())
}
