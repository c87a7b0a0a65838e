//! A sequence diagram in Mermaid.
//!
//! Runs of chunks become one arrow and texts are cut: Mermaid rejects diagrams of more than
//! 50 000 characters.

use super::{Form, Said};
use crate::cli::inspect::detail::detail;
use crate::cli::inspect::fold::{Folding, Run};
use crate::cli::inspect::units::took;
use crate::jsonrpc::Side;
use crate::recording::{Event, Header, MessageKind, What, parted, tree};

/// Maximum characters of a label.
const SHOWN: usize = 60;

#[derive(Default)]
pub(super) struct Mermaid {
    chunks: Folding,
}

impl Form for Mermaid {
    fn begin(&mut self, _: &Header, out: &mut Vec<u8>) {
        out.extend_from_slice(
            b"sequenceDiagram\n  participant C as Client\n  participant A as Agent\n",
        );
    }

    fn message(&mut self, said: &Said<'_>, out: &mut Vec<u8>) -> bool {
        if let Some(chunk) = Run::begin(said.event) {
            if let Some(run) = self.chunks.add(chunk) {
                tell(out, &run);
            }
            return true;
        }
        self.end_run(out);
        let method = said.method();
        let (arrow, text) = match said.kind() {
            Some(MessageKind::Request) => ("->>", format!("{method}{}", more(said))),
            Some(MessageKind::Notification) => ("-)", format!("{method}{}", more(said))),
            Some(kind) => {
                let after = said.took.map(|took_| format!(", {}", took(took_)));
                let after = after.unwrap_or_default();
                (
                    "-->>",
                    format!("{method} {}{}{after}", kind.name(), more(said)),
                )
            }
            None => ("-x", "no message".to_owned()),
        };
        draw(out, said.from, arrow, &text);
        true
    }

    fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        if let What::Mark(text) = &event.what {
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
            tell(out, &run);
        }
    }
}

fn tell(out: &mut Vec<u8>, run: &Run) {
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

/// The words that tell this message from others of the same method.
fn more(said: &Said<'_>) -> String {
    match tree(said.bytes).map(|tree| detail(&tree)) {
        Some(detail) if !detail.is_empty() => format!(": {detail}"),
        _ => String::new(),
    }
}

/// A text with characters escaped that have a meaning in Mermaid.
fn label(text: &str) -> String {
    let mut out = String::new();
    for (at, character) in parted(text).chars().enumerate() {
        if at == SHOWN {
            out.push('…');
            break;
        }
        match character {
            'a'..='z'
            | 'A'..='Z'
            | '0'..='9'
            | ' '
            | '/'
            | '_'
            | '.'
            | ','
            | ':'
            | '-'
            | '('
            | ')' => {
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
