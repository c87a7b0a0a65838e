//! Formats for people: a transcript in Markdown and a sequence diagram in Mermaid.
//!
//! Runs of chunks become one item. In the transcript all text is quoted and HTML tags are escaped.
//! The texts of the diagram are cut: Mermaid rejects diagrams of more than 50 000 characters.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Exported, Format};
use crate::chunk_run::ChunkRun;
use crate::text::summary;
use jsonrpc::{Kind, Side, printable};
use recording::{EventKind, Header, RecordedEvent, join_halves, parse_json, rfc3339, show_halves};

/// Maximum characters of a label.
const MAX_LABEL: usize = 60;

/// A transcript: prompts, answers, tool calls and permissions, turn by turn.
#[derive(Debug, Default)]
pub(super) struct Markdown {
    turns: u64,
    /// Titles of tool calls by id.
    tools: BTreeMap<String, String>,
}

/// A sequence diagram.
#[derive(Debug)]
pub(super) struct Mermaid;

impl Format for Markdown {
    fn begin(&mut self, header: &Header, out: &mut Vec<u8>) {
        let (client, agent) = (inline(&header.client.name), inline(&header.agent.name));
        let began = rfc3339(header.began);
        let text = format!("# Conversation of {began}\n\nClient: {client}  \nAgent: {agent}\n");
        out.extend_from_slice(text.as_bytes());
    }

    fn message(&mut self, msg: &Exported<'_>, out: &mut Vec<u8>) -> bool {
        let tree = parse_json(msg.bytes).unwrap_or_default();
        let word = |place: &str| tree.pointer(place).and_then(Value::as_str);
        let shown = |text: Option<&str>| inline(text.unwrap_or("?"));
        let text = match (msg.kind(), msg.method()) {
            (Some(Kind::Request), "session/prompt") => self.prompt(&tree["params"]),
            (Some(Kind::Notification), "session/update") => self.update(&tree["params"]["update"]),
            (Some(Kind::Notification), "session/cancel") => "*The client cancels.*".to_owned(),
            (Some(Kind::Result), "session/prompt") => {
                let after = msg.after(" after ");
                format!(
                    "*The turn ends{after}: {}*",
                    shown(word("/result/stopReason"))
                )
            }
            (Some(Kind::Result), "session/request_permission") => {
                let chosen =
                    word("/result/outcome/optionId").or_else(|| word("/result/outcome/outcome"));
                format!("- permission: **{}**", shown(chosen))
            }
            (Some(Kind::Request), "session/request_permission") => {
                let title = word("/params/toolCall/title")
                    .or_else(|| self.title(&tree["params"]["toolCall"]));
                format!("- permission request: {}", shown(title))
            }
            (Some(Kind::Error), method) => {
                format!(
                    "*{} fails: {}*",
                    inline(method),
                    shown(word("/error/message"))
                )
            }
            (None, _) => format!("*{} sends a line that is no message.*", msg.from),
            _ => String::new(),
        };
        paragraph(out, &text);
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
        paragraph(out, &text);
    }

    fn run(&mut self, run: &ChunkRun, out: &mut Vec<u8>) {
        let heading = match (run.kind.as_str(), run.message.to) {
            ("agent_thought_chunk", _) => "**Agent thinks:**",
            ("user_message_chunk", _) => "**Client (replayed):**",
            (_, Side::Client) => "**Agent:**",
            (_, Side::Agent) => "**Client:**",
        };
        let text = quote(&join_halves(&run.text));
        paragraph(out, &format!("{heading}\n\n{text}"));
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
        let parts = parts.collect::<Vec<_>>().join("\n>\n");
        format!("## Turn {}\n\n**Client:**\n\n{parts}", self.turns)
    }

    fn update(&mut self, update: &Value) -> String {
        let word = |name: &str| update[name].as_str();
        let status = word("status").unwrap_or_default();
        match word("sessionUpdate") {
            Some("tool_call") => {
                let id = word("toolCallId").unwrap_or_default();
                let title = word("title").unwrap_or(id);
                self.tools.insert(id.to_owned(), title.to_owned());
                let kind = inline(word("kind").unwrap_or("tool"));
                let title = printable(title.replace('`', "'").replace('\n', " ").as_bytes());
                format!("- {kind} `{title}` {}", inline(status))
            }
            Some("tool_call_update") if ["completed", "failed"].contains(&status) => {
                format!("- {status}: {}", inline(self.title(update).unwrap_or("?")))
            }
            Some(kind @ ("plan" | "plan_update")) => {
                let plan = match kind {
                    "plan" => update,
                    _ => &update["plan"],
                };
                if let Some(text) = plan["content"].as_str() {
                    return quote(text);
                }
                let entries = plan["entries"].as_array().into_iter().flatten();
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
            Some("subagent_update") => {
                let name = word("title").or_else(|| word("sessionId")).unwrap_or("?");
                let state = update["state"]["state"].as_str().unwrap_or_default();
                format!("- subagent {} {}", inline(name), inline(state))
            }
            _ => String::new(),
        }
    }

    /// The title of the tool call that `of` names.
    fn title(&self, of: &Value) -> Option<&str> {
        self.tools
            .get(of["toolCallId"].as_str()?)
            .map(String::as_str)
    }
}

fn paragraph(out: &mut Vec<u8>, text: &str) {
    if !text.is_empty() {
        out.extend_from_slice(format!("\n{text}\n").as_bytes());
    }
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
    let line = show_halves(text).replace(['\n', '\r', '\t'], " ");
    let mut out = String::new();
    for character in printable(line.as_bytes()).chars() {
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
        let method = msg.method();
        // The words that distinguish this message from others of the same method.
        let words = parse_json(msg.bytes)
            .map(|tree| summary(&tree))
            .filter(|text| !text.is_empty());
        let words = words.map(|text| format!(": {text}")).unwrap_or_default();
        let (arrow, text) = match msg.kind() {
            Some(Kind::Request) => ("->>", format!("{method}{words}")),
            Some(Kind::Notification) => ("-)", format!("{method}{words}")),
            Some(kind) => (
                "-->>",
                format!("{method} {}{words}{}", kind.name(), msg.after(", ")),
            ),
            None => ("-x", "no message".to_owned()),
        };
        draw(out, msg.from, arrow, &text);
        true
    }

    fn event(&mut self, event: &RecordedEvent, out: &mut Vec<u8>) {
        if let EventKind::Mark(text) = &event.kind {
            out.extend_from_slice(format!("  Note over C,A: {}\n", label(text)).as_bytes());
        }
    }

    fn run(&mut self, run: &ChunkRun, out: &mut Vec<u8>) {
        let text = format!("{}: {}", run.title(), run.text);
        draw(out, run.message.to.other(), "-)", &text);
    }
}

fn draw(out: &mut Vec<u8>, from: Side, arrow: &str, text: &str) {
    let (from, to) = match from {
        Side::Client => ("C", "A"),
        Side::Agent => ("A", "C"),
    };
    out.extend_from_slice(format!("  {from}{arrow}{to}: {}\n", label(text)).as_bytes());
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
