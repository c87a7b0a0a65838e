//! A sequence diagram in Mermaid.
//!
//! Runs of chunks become one arrow and texts are cut: Mermaid rejects diagrams of more than
//! 50 000 characters.

use super::{Exported, Format};
use crate::cli::inspect::chunk_run::{ChunkFolder, ChunkRun};
use crate::cli::inspect::summary::summary;
use crate::cli::inspect::units::duration;
use crate::jsonrpc::{Kind, Side};
use crate::recording::{EventKind, Header, RecordedEvent, parse_json, show_halves};

/// Maximum characters of a label.
const MAX_LABEL: usize = 60;

#[derive(Default)]
pub(super) struct Mermaid {
    chunks: ChunkFolder,
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
