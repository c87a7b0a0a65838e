//! A transcript for people: prompts, answers, tool calls and permissions, turn by turn.
//!
//! All text is quoted, and HTML tags are escaped.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::{Exported, Format};
use crate::cli::inspect::chunk_run::{ChunkFolder, ChunkRun};
use crate::cli::inspect::units::duration;
use crate::jsonrpc::{Kind, Side, printable};
use crate::recording::rfc3339;
use crate::recording::{EventKind, Header, RecordedEvent, join_halves, parse_json, show_halves};

#[derive(Default)]
pub(super) struct Markdown {
    turns: u64,
    chunks: ChunkFolder,
    /// Titles of tool calls by id.
    tools: BTreeMap<String, String>,
}

impl Format for Markdown {
    fn begin(&mut self, header: &Header, out: &mut Vec<u8>) {
        let mut text = format!("# Conversation of {}\n", rfc3339(header.began));
        // Writing to a string does not fail.
        let _ = writeln!(text, "\nClient: {}  ", inline(&header.client.name));
        let _ = writeln!(text, "Agent: {}", inline(&header.agent.name));
        out.extend_from_slice(text.as_bytes());
    }

    fn message(&mut self, msg: &Exported<'_>, out: &mut Vec<u8>) -> bool {
        if let Some(chunk) = ChunkRun::from_event(msg.event) {
            if let Some(run) = self.chunks.add(chunk) {
                write_run(out, &run);
            }
            return true;
        }
        let tree = parse_json(msg.bytes).unwrap_or(Value::Null);
        let text = match (msg.kind(), msg.method()) {
            (Some(Kind::Request), "session/prompt") => self.prompt(&tree["params"]),
            (Some(Kind::Notification), "session/update") => self.update(&tree["params"]["update"]),
            (Some(Kind::Notification), "session/cancel") => "*The client cancels.*".to_owned(),
            (Some(Kind::Result), "session/prompt") => {
                let reason = tree["result"]["stopReason"].as_str().unwrap_or("?");
                let after = msg
                    .duration
                    .map(|micros| format!(" after {}", duration(micros)));
                format!(
                    "*The turn ends{}: {}*",
                    after.unwrap_or_default(),
                    inline(reason)
                )
            }
            (Some(Kind::Result), "session/request_permission") => {
                let outcome = &tree["result"]["outcome"];
                let chosen = outcome["optionId"]
                    .as_str()
                    .or_else(|| outcome["outcome"].as_str());
                format!("- permission: **{}**", inline(chosen.unwrap_or("?")))
            }
            (Some(Kind::Request), "session/request_permission") => {
                let call = &tree["params"]["toolCall"];
                let title = call["title"]
                    .as_str()
                    .or_else(|| self.title(&call["toolCallId"]));
                format!("- permission request: {}", inline(title.unwrap_or("?")))
            }
            (Some(Kind::Error), method) => {
                let why = tree["error"]["message"].as_str().unwrap_or("?");
                format!("*{} fails: {}*", inline(method), inline(why))
            }
            (None, _) => format!("*{} sends a line that is no message.*", msg.from),
            _ => String::new(),
        };
        if !text.is_empty() {
            self.end_run(out);
            paragraph(out, &text);
        }
        true
    }

    fn event(&mut self, event: &RecordedEvent, out: &mut Vec<u8>) {
        let text = match &event.kind {
            EventKind::Mark(text) => format!("**Mark:** {}", inline(text)),
            EventKind::Process { event, detail } => {
                format!("*process {}: {}*", inline(event), inline(detail))
            }
            EventKind::Gap { events, .. } => format!("*{events} events are missing here.*"),
            _ => return,
        };
        self.end_run(out);
        paragraph(out, &text);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.end_run(out);
    }
}

impl Markdown {
    fn prompt(&mut self, params: &Value) -> String {
        self.turns += 1;
        let parts = params["prompt"].as_array().into_iter().flatten();
        let parts = parts.map(|part| match part["text"].as_str() {
            Some(text) => quote(text),
            None => format!("> *({})*", inline(part["type"].as_str().unwrap_or("?"))),
        });
        let parts: Vec<String> = parts.collect();
        format!(
            "## Turn {}\n\n**Client:**\n\n{}",
            self.turns,
            parts.join("\n>\n")
        )
    }

    fn update(&mut self, update: &Value) -> String {
        let status = update["status"].as_str().unwrap_or_default();
        match update["sessionUpdate"].as_str() {
            Some("tool_call") => {
                let id = update["toolCallId"].as_str().unwrap_or_default();
                let title = update["title"].as_str().unwrap_or(id);
                self.tools.insert(id.to_owned(), title.to_owned());
                let kind = update["kind"].as_str().unwrap_or("tool");
                format!(
                    "- {} `{}` {}",
                    inline(kind),
                    title.replace('`', "'").replace('\n', " "),
                    inline(status)
                )
            }
            Some("tool_call_update") if ["completed", "failed"].contains(&status) => {
                let title = self.title(&update["toolCallId"]).unwrap_or("?");
                format!("- {status}: {}", inline(title))
            }
            Some("plan") => {
                let entries = update["entries"].as_array().into_iter().flatten();
                let lines = entries.map(|entry| {
                    let done = if entry["status"] == "completed" {
                        "x"
                    } else {
                        " "
                    };
                    format!(
                        "- [{done}] {}",
                        inline(entry["content"].as_str().unwrap_or("?"))
                    )
                });
                lines.collect::<Vec<_>>().join("\n")
            }
            _ => String::new(),
        }
    }

    fn title(&self, id: &Value) -> Option<&str> {
        self.tools.get(id.as_str()?).map(String::as_str)
    }

    fn end_run(&mut self, out: &mut Vec<u8>) {
        if let Some(run) = self.chunks.end() {
            write_run(out, &run);
        }
    }
}

fn write_run(out: &mut Vec<u8>, run: &ChunkRun) {
    let heading = match (run.kind.as_str(), run.message.to) {
        ("agent_thought_chunk", _) => "**Agent thinks:**",
        ("user_message_chunk", _) => "**Client (replayed):**",
        (_, Side::Client) => "**Agent:**",
        (_, Side::Agent) => "**Client:**",
    };
    paragraph(
        out,
        &format!("{heading}\n\n{}", quote(&join_halves(&run.text))),
    );
}

fn paragraph(out: &mut Vec<u8>, text: &str) {
    out.push(b'\n');
    out.extend_from_slice(text.as_bytes());
    out.push(b'\n');
}

/// A text as a quotation; it may be Markdown itself, with code blocks.
fn quote(text: &str) -> String {
    let mut fenced = false;
    let lines = text.lines().map(|line| {
        let plain = printable(show_halves(line).replace('\t', "    ").as_bytes());
        let fence = line.trim_start().starts_with("```");
        let shown = if fenced || fence {
            plain
        } else {
            plain.replace('<', "&lt;")
        };
        fenced ^= fence;
        format!("> {shown}").trim_end().to_owned()
    });
    let mut lines: Vec<String> = lines.collect();
    if fenced {
        lines.push("> ```".to_owned());
    }
    lines.join("\n")
}

/// A text within a line, with Markdown escaped.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for character in printable(
        show_halves(text)
            .replace(['\n', '\r', '\t'], " ")
            .as_bytes(),
    )
    .chars()
    {
        match character {
            '<' => out.push_str("&lt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '!' | '|' => out.extend(['\\', character]),
            _ => out.push(character),
        }
    }
    out
}
