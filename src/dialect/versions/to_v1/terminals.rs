//! Terminals: those of a v2 agent are only shown, those of v1 are processes of the client.
//!
//! A client that reads the extension `terminal_output` gets the output under `_meta`; others get a
//! text in place of the terminal.

use data_encoding::{BASE64, BASE64_NOPAD};

use super::messages::Prefix;
use crate::memory;
use crate::object::{Json, object};
use crate::recent::Recent;
use crate::tree::Node;
use crate::versions::content::fenced;

/// How much output of a terminal is kept.
const OUTPUT: usize = 64 << 10;

/// The terminals of a session, by id.
#[derive(Debug, Default)]
pub(super) struct Terminals(pub(super) Recent<Terminal, 256, { 8 << 20 }>);

#[derive(Debug, Default)]
pub(super) struct Terminal {
    command: Option<String>,
    cwd: Option<String>,
    /// The end of its output.
    output: Vec<u8>,
    is_cut: bool,
    /// All of it.
    shown: Prefix,
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

impl Terminals {
    /// Applies `terminal_update` or `terminal_output_chunk`; returns the terminal's id if something
    /// that is shown has changed, and what its tool call shows under `_meta`.
    pub(super) fn update(&mut self, update: &Node<'_>) -> (Option<String>, Vec<Json>) {
        let Some(id) = update.id("terminalId") else {
            return (None, Vec::new());
        };
        let terminal = self.0.of(&id);
        let mut changed = false;
        if update.member("command").is_some() {
            let command = update.text("command");
            changed = terminal.command != command;
            terminal.command = command;
        }
        if update.member("cwd").is_some() {
            terminal.cwd = update.text("cwd");
        }
        let output = update.value("output");
        let shown = if update.says("sessionUpdate", "terminal_output_chunk") {
            decoded(update).map(|bytes| terminal.append(&bytes))
        } else if update.is_null("output") && terminal.shown.length > 0 {
            Some(terminal.replace(&[]))
        } else {
            let output = output.and_then(|output| decoded(&output));
            output.map(|bytes| terminal.replace(&bytes))
        };
        changed |= shown.is_some();
        let mut exits = false;
        if update.member("exitStatus").is_some() {
            let exit = update.value("exitStatus").map(|status| Exit {
                code: status
                    .value("exitCode")
                    .map(|code| code.json().into_owned()),
                signal: status.text("signal"),
            });
            changed |= exit != terminal.exit;
            exits = exit.is_some() && exit != terminal.exit;
            terminal.exit = exit;
        }
        let made = terminal.stream(&id, shown.unwrap_or_default(), exits);
        let size = terminal.size();
        self.0.weigh(&id, size);
        (changed.then_some(id), made)
    }

    /// Lets a new tool call show the terminal under `_meta`, unless another one shows it.
    pub(super) fn own(&mut self, id: &str, call: &str) -> bool {
        let terminal = self.0.of(id);
        let is_free = terminal.owner.is_none();
        terminal.owner.get_or_insert_with(|| call.to_owned());
        let size = terminal.size();
        self.0.weigh(id, size);
        is_free
    }

    /// The tool call that shows the terminal under `_meta`.
    pub(super) fn owner(&self, id: &str) -> Option<&str> {
        self.0.get(id)?.owner.as_deref()
    }

    /// What the tool call that begins to show the terminal says of it.
    pub(super) fn info(&self, id: &str) -> Json {
        let cwd = self.0.get(id).and_then(|terminal| terminal.cwd.as_deref());
        object! { "terminal_id": id, "cwd": cwd }
    }

    /// What it says after that of what there was before.
    pub(super) fn catch_up(&mut self, id: &str) -> Vec<Json> {
        let terminal = self.0.of(id);
        terminal.partial.clear();
        let before = terminal.output.clone();
        let shown = terminal.complete(&before);
        let exits = terminal.exit.is_some();
        terminal.stream(id, shown, exits)
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
}

impl Terminal {
    /// Adds output; returns the text of it.
    fn append(&mut self, bytes: &[u8]) -> String {
        self.shown.extend(bytes);
        let kept = bytes.len().min(2 * OUTPUT);
        self.output.extend_from_slice(&bytes[bytes.len() - kept..]);
        if self.output.len() > OUTPUT {
            self.is_cut = true;
            let from = self.output.len() - OUTPUT;
            let kept = &self.output[from..];
            // A line or a character begins there.
            let mut first = kept[..kept.len() / 2].iter();
            let line = first.position(|byte| *byte == b'\n').map(|at| at + 1);
            let is_start = |byte: &u8| *byte & 0xc0 != 0x80;
            let start = line.or_else(|| kept.iter().position(is_start)).unwrap_or(0);
            self.output.drain(..from + start);
            self.output.shrink_to(2 * OUTPUT);
        }
        self.complete(bytes)
    }

    /// Replaces the output; returns the text that makes it of what was shown.
    fn replace(&mut self, all: &[u8]) -> String {
        if self.shown.begins(all) {
            let length = self.shown.length;
            return self.append(&all[length..]);
        }
        self.shown = Prefix::default();
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
        self.partial = self.partial.split_off(end);
        text
    }

    /// What its tool call says under `_meta` of further output, and of its end.
    fn stream(&mut self, id: &str, mut shown: String, exits: bool) -> Vec<Json> {
        let mut made = Vec::new();
        let Some(owner) = &self.owner else {
            return made;
        };
        let mut say = |meta: Json| {
            let update = "tool_call_update";
            made.push(object! { "sessionUpdate": update, "toolCallId": &**owner, "_meta": meta });
        };
        if exits {
            shown.push_str(&String::from_utf8_lossy(&std::mem::take(&mut self.partial)));
        }
        if !shown.is_empty() {
            let output = object! { "terminal_id": id, "data": shown };
            say(object! { "terminal_output": output });
        }
        if let Some(Exit { code, signal }) = self.exit.as_ref().filter(|_| exits) {
            let null = || Node::raw(b"null");
            let exit = object! {
                "terminal_id": id,
                "exit_code": code.clone().map_or_else(null, Node::owned),
                "signal": signal.as_deref().map_or_else(null, Node::string),
            };
            say(object! { "terminal_exit": exit });
        }
        made
    }

    /// The memory behind it, in bytes.
    fn size(&self) -> usize {
        let texts = [&self.command, &self.cwd, &self.owner];
        let texts = texts.map(|text| memory::text(text.as_ref()));
        let exit = self.exit.as_ref().map_or(0, |Exit { code, signal }| {
            code.as_ref().map_or(0, Vec::capacity) + memory::text(signal.as_ref())
        });
        let output = self.output.capacity() + self.partial.capacity();
        output + exit + texts.iter().sum::<usize>()
    }
}

/// The bytes of `data`.
fn decoded(object: &Node<'_>) -> Option<Vec<u8>> {
    let data = object.text("data")?;
    let data = data.trim_end_matches('=');
    let plain = BASE64_NOPAD.decode(data.as_bytes());
    plain.or_else(|_| BASE64.decode(data.as_bytes())).ok()
}

/// The end of the text that is complete: an incomplete character may follow.
fn complete_end(bytes: &[u8]) -> usize {
    let last = bytes.len().saturating_sub(3);
    let begins = |byte: &u8| *byte & 0xc0 != 0x80;
    let at = bytes[last..].iter().rposition(begins).map(|at| last + at);
    let is_cut = |at: &usize| {
        let text = std::str::from_utf8(&bytes[*at..]);
        text.is_err_and(|error| error.error_len().is_none())
    };
    at.filter(is_cut).unwrap_or(bytes.len())
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
