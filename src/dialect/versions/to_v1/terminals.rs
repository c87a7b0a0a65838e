//! Terminals: those of a v2 agent are only shown, those of v1 are processes of the client.
//!
//! A client that reads the extension `terminal_output` gets the output under `_meta`; others get a
//! text in place of the terminal.

use data_encoding::{BASE64, BASE64_NOPAD};
use hashlink::LinkedHashMap;

use super::content::fenced;
use super::messages::{FNV, hash};
use crate::dialect::tree::Node;
use crate::dialect::versions::json::{id, is_null, member, text, value};

/// How much output of a terminal is kept.
const OUTPUT: usize = 64 << 10;
/// How many terminals of a session are remembered.
const TERMINALS: usize = 256;

/// How a client is shown terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Display {
    /// Under `_meta`, if the terminal came with the tool call; else as text.
    Extension,
    /// As text.
    Text,
    /// Not at all.
    Off,
}

/// The terminals of a session, by id.
#[derive(Debug, Default)]
pub(super) struct Terminals(LinkedHashMap<String, Terminal>);

#[derive(Debug)]
struct Terminal {
    command: Option<String>,
    cwd: Option<String>,
    /// The end of its output.
    output: Vec<u8>,
    is_cut: bool,
    /// How much output there was, and a hash of it.
    length: usize,
    hash: u64,
    exit: Option<Exit>,
    /// The tool call that shows it under `_meta`.
    owner: Option<String>,
    /// The bytes of a character that is not complete.
    partial: Vec<u8>,
}

/// How its command has ended.
#[derive(Debug, PartialEq, Eq)]
struct Exit {
    /// The code, as JSON.
    code: Option<Vec<u8>>,
    signal: Option<String>,
}

impl Default for Terminal {
    fn default() -> Self {
        Self {
            command: None,
            cwd: None,
            output: Vec::new(),
            is_cut: false,
            length: 0,
            hash: FNV,
            exit: None,
            owner: None,
            partial: Vec::new(),
        }
    }
}

impl Terminals {
    /// Applies `terminal_update` or `terminal_output_chunk`; returns the terminal's id if something
    /// that is shown has changed. What its tool call shows under `_meta` is added to `made`.
    pub(super) fn update(
        &mut self,
        update: &Node<'_>,
        is_chunk: bool,
        made: &mut Vec<Node<'static>>,
    ) -> Option<String> {
        let id = id(update, "terminalId")?;
        let terminal = self.get(&id);
        let mut changed = false;
        for (name, own) in [
            ("command", &mut terminal.command),
            ("cwd", &mut terminal.cwd),
        ] {
            if member(update, name).is_some() {
                let new = text(update, name);
                changed |= name == "command" && *own != new;
                *own = new;
            }
        }
        let mut shown = None;
        if is_chunk {
            let bytes = decoded(update)?;
            shown = Some(terminal.append(&bytes));
        } else if is_null(update, "output") && terminal.length > 0 {
            shown = Some(terminal.replace(&[]));
        } else if let Some(output) = value(update, "output") {
            shown = decoded(&output).map(|bytes| terminal.replace(&bytes));
        }
        changed |= shown.is_some();
        let mut exits = false;
        if member(update, "exitStatus").is_some() {
            let exit = value(update, "exitStatus").map(|status| Exit {
                code: value(&status, "exitCode").map(|code| code.json().into_owned()),
                signal: text(&status, "signal"),
            });
            changed |= exit != terminal.exit;
            exits = exit.is_some() && exit != terminal.exit;
            terminal.exit = exit;
        }
        terminal.stream(&id, shown.unwrap_or_default(), exits, made);
        changed.then_some(id)
    }

    /// Lets a new tool call show the terminal under `_meta`; returns what it must say when it is
    /// sent, unless another one shows it.
    pub(super) fn own(&mut self, id: &str, call: &str) -> Option<Node<'static>> {
        let terminal = self.get(id);
        if terminal.owner.is_some() {
            return None;
        }
        terminal.owner = Some(call.to_owned());
        let mut info = vec![("terminal_id", Node::string(id))];
        info.extend(
            terminal
                .cwd
                .as_deref()
                .map(|cwd| ("cwd", Node::string(cwd))),
        );
        Some(Node::object(info))
    }

    /// The tool call that shows the terminal under `_meta`.
    pub(super) fn owner(&self, id: &str) -> Option<&str> {
        self.0.get(id)?.owner.as_deref()
    }

    /// What the tool call that has just begun to show the terminal says of what there was before.
    pub(super) fn catch_up(&mut self, id: &str, made: &mut Vec<Node<'static>>) {
        let terminal = self.get(id);
        terminal.partial.clear();
        let before = terminal.output.clone();
        let shown = terminal.complete(&before);
        let exits = terminal.exit.is_some();
        terminal.stream(id, shown, exits, made);
    }

    /// The terminal as a text; `None` while it is empty.
    pub(super) fn text(&self, id: &str) -> Option<String> {
        let terminal = self.0.get(id)?;
        if terminal.command.is_none() && terminal.output.is_empty() && terminal.exit.is_none() {
            return None;
        }
        let mut shown = String::new();
        if let Some(command) = &terminal.command {
            shown.push_str(&format!("$ {command}\n"));
        }
        if terminal.is_cut {
            shown.push_str("[earlier output is not shown]\n");
        }
        let end = match terminal.exit {
            Some(_) => terminal.output.len(),
            None => complete_end(&terminal.output),
        };
        let output = String::from_utf8_lossy(&terminal.output[..end]);
        shown.push_str(&plain(&output.replace("\r\n", "\n")));
        let mut made = fenced("console", &shown);
        if let Some(Exit { code, signal }) = &terminal.exit {
            made.push_str(&match (signal, code) {
                (Some(signal), _) => format!("\nTerminated by signal: {signal}"),
                (None, Some(code)) => format!("\nExit code: {}", String::from_utf8_lossy(code)),
                (None, None) => String::new(),
            });
        }
        Some(made)
    }

    fn get(&mut self, id: &str) -> &mut Terminal {
        if self.0.len() >= TERMINALS && !self.0.contains_key(id) {
            self.0.pop_front();
        }
        self.0
            .entry(id.to_owned())
            .or_insert_with(Terminal::default)
    }
}

impl Terminal {
    /// Adds output; returns the text of it.
    fn append(&mut self, bytes: &[u8]) -> String {
        self.length += bytes.len();
        self.hash = hash(self.hash, bytes);
        self.output.extend_from_slice(bytes);
        if self.output.len() > OUTPUT {
            self.is_cut = true;
            let from = self.output.len() - OUTPUT;
            let kept = &self.output[from..];
            // A line or a character begins there.
            let is_end = |byte: &u8| *byte == b'\n';
            let is_start = |byte: &u8| *byte & 0xc0 != 0x80;
            let line = kept[..kept.len() / 2]
                .iter()
                .position(is_end)
                .map(|at| at + 1);
            let start = line.or_else(|| kept.iter().position(is_start)).unwrap_or(0);
            self.output.drain(..from + start);
        }
        self.complete(bytes)
    }

    /// Replaces the output; returns the text that makes it of what was shown.
    fn replace(&mut self, all: &[u8]) -> String {
        let begun = all.get(..self.length);
        if begun.is_some_and(|begun| hash(FNV, begun) == self.hash) {
            let length = self.length;
            return self.append(&all[length..]);
        }
        (self.length, self.hash) = (0, FNV);
        self.is_cut = false;
        self.output.clear();
        self.partial.clear();
        // `ESC c` resets a terminal.
        format!("\u{1b}c{}", self.append(all))
    }

    /// The text of the bytes, with those that were held back; an incomplete character is.
    fn complete(&mut self, bytes: &[u8]) -> String {
        self.partial.extend_from_slice(bytes);
        let end = complete_end(&self.partial);
        let text = String::from_utf8_lossy(&self.partial[..end]).into_owned();
        self.partial.drain(..end);
        text
    }

    /// What its tool call says under `_meta` of further output, and of its end.
    fn stream(&mut self, id: &str, mut shown: String, exits: bool, made: &mut Vec<Node<'static>>) {
        let Some(owner) = &self.owner else {
            return;
        };
        let mut say = |name: &'static str, what: Vec<(&'static str, Node<'static>)>| {
            let meta = Node::object(vec![(name, Node::object(what))]);
            made.push(Node::object(vec![
                ("sessionUpdate", Node::string("tool_call_update")),
                ("toolCallId", Node::string(owner)),
                ("_meta", meta),
            ]));
        };
        if exits {
            shown.push_str(&String::from_utf8_lossy(&std::mem::take(&mut self.partial)));
        }
        if !shown.is_empty() {
            let data = Node::string(&shown);
            say(
                "terminal_output",
                vec![("terminal_id", Node::string(id)), ("data", data)],
            );
        }
        if let Some(Exit { code, signal }) = self.exit.as_ref().filter(|_| exits) {
            let null = || Node::raw(b"null");
            let signal = signal.as_deref().map_or_else(null, Node::string);
            say(
                "terminal_exit",
                vec![
                    ("terminal_id", Node::string(id)),
                    ("exit_code", code.clone().map_or_else(null, Node::owned)),
                    ("signal", signal),
                ],
            );
        }
    }
}

/// The bytes of `data`.
fn decoded(object: &Node<'_>) -> Option<Vec<u8>> {
    let data = text(object, "data")?;
    let data = data.trim_end_matches('=');
    let plain = BASE64_NOPAD.decode(data.as_bytes());
    plain.or_else(|_| BASE64.decode(data.as_bytes())).ok()
}

/// The end of the text that is complete: an incomplete character may follow.
fn complete_end(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let length = match bytes[at] {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        return if length > back { at } else { bytes.len() };
    }
    bytes.len()
}

/// The text without escape sequences (ECMA-48).
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            // A control sequence ends with a letter or a sign of that range.
            Some('[') => drop(letters.find(|letter| matches!(letter, '@'..='~'))),
            // A string ends with BEL or `ESC \`.
            Some(']' | 'P' | 'X' | '^' | '_') => {
                while let Some(inside) = letters.next() {
                    if inside == '\u{7}' || inside == '\u{1b}' && letters.next() == Some('\\') {
                        break;
                    }
                }
            }
            // Others may have signs of that range before their last letter.
            Some(' '..='/') => drop(letters.find(|letter| !matches!(letter, ' '..='/'))),
            _ => {}
        }
    }
    out
}
