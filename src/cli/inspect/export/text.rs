//! Formats for people: a transcript in Markdown and a sequence diagram in Mermaid.
//!
//! Runs of chunks become one item. In the transcript all text is quoted and HTML tags are escaped.
//! The texts of the diagram are cut: Mermaid rejects diagrams of more than 50 000 characters.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::{Exported, Format};
use crate::cli::inspect::chunk_run::{ChunkFolder, ChunkRun};
use crate::cli::inspect::text::{duration, summary};
use crate::jsonrpc::{Kind, Side, printable};
use crate::recording::{
    EventKind, Header, RecordedEvent, join_halves, parse_json, rfc3339, show_halves,
};

/// Maximum characters of a label.
const MAX_LABEL: usize = 60;

/// A transcript: prompts, answers, tool calls and permissions, turn by turn.
#[derive(Default)]
pub(super) struct Markdown {
    turns: u64,
    chunks: ChunkFolder,
    /// Titles of tool calls by id.
    tools: BTreeMap<String, String>,
}

/// A sequence diagram.
#[derive(Default)]
pub(super) struct Mermaid {
    chunks: ChunkFolder,
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

impl Format for Mermaid {
    fn begin(&mut self, _: &Header, out: &mut Vec<u8>) {
        out.extend_from_slice(
            b"sequenceDiagram\n  participant C as Client\n  participant A as Agent\n",
        );
    }

    fn message(&mut self, msg: &Exported<'_>, out: &mut Vec<u8>) -> bool {
        if let Some(chunk) = ChunkRun::from_event(msg.event) {
            if let Some(run) = self.chunks.add(chunk) {
                draw_run(out, &run);
            }
            return true;
        }
        self.end_run(out);
        let method = msg.method();
        let (arrow, text) = match msg.kind() {
            Some(Kind::Request) => ("->>", format!("{method}{}", detail(msg))),
            Some(Kind::Notification) => ("-)", format!("{method}{}", detail(msg))),
            Some(kind) => {
                let after = msg.duration.map(|micros| format!(", {}", duration(micros)));
                let after = after.unwrap_or_default();
                (
                    "-->>",
                    format!("{method} {}{}{after}", kind.name(), detail(msg)),
                )
            }
            None => ("-x", "no message".to_owned()),
        };
        draw(out, msg.from, arrow, &text);
        true
    }

    fn event(&mut self, event: &RecordedEvent, out: &mut Vec<u8>) {
        if let EventKind::Mark(text) = &event.kind {
            self.end_run(out);
            out.extend_from_slice(format!("  Note over C,A: {}\n", label(text)).as_bytes());
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.end_run(out);
    }
}

impl Mermaid {
    fn end_run(&mut self, out: &mut Vec<u8>) {
        if let Some(run) = self.chunks.end() {
            draw_run(out, &run);
        }
    }
}

fn draw_run(out: &mut Vec<u8>, run: &ChunkRun) {
    let text = format!("{}: {}", run.title(), run.text);
    draw(out, run.message.to.other(), "-)", &text);
}

fn draw(out: &mut Vec<u8>, from: Side, arrow: &str, text: &str) {
    let (from, to) = match from {
        Side::Client => ("C", "A"),
        Side::Agent => ("A", "C"),
    };
    out.extend_from_slice(format!("  {from}{arrow}{to}: {}\n", label(text)).as_bytes());
}

/// The words that distinguish this message from others of the same method.
fn detail(msg: &Exported<'_>) -> String {
    match parse_json(msg.bytes).map(|tree| summary(&tree)) {
        Some(text) if !text.is_empty() => format!(": {text}"),
        _ => String::new(),
    }
}

/// A text with characters escaped that have a meaning in Mermaid.
fn label(text: &str) -> String {
    let mut out = String::new();
    for (at, character) in show_halves(text).chars().enumerate() {
        if at == MAX_LABEL {
            out.push('…');
            break;
        }
        match character {
            _ if character.is_ascii_alphanumeric() || " /_.,:-()".contains(character) => {
                out.push(character);
            }
            _ if character.is_control() => out.push(' '),
            // `;`, `#`, `<` and other delimiters.
            _ if character.is_ascii() => out += &format!("#{};", u32::from(character)),
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            _ => out.push(character),
        }
    }
    out
}
