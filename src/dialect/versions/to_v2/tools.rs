//! Tool calls: v1 creates and patches them, v2 only patches; null clears in v2. Terminals are what
//! agents of v1 describe under `_meta` of their tool calls.

use data_encoding::BASE64;

use super::diffs;
use crate::object::{Json, object};
use crate::recent::Recent;
use crate::text;
use crate::tree::Node;
use crate::versions::content::{self, absolute, item, text_item};
use crate::versions::out::Out;

/// The longest title that is remembered, in bytes.
const MAX_TITLE: usize = 4096;

/// The members of a tool call that both versions have.
const MEMBERS: &str =
    "sessionUpdate toolCallId name title kind status content locations rawInput rawOutput";

/// What agents state of terminals, in the order in which it is shown, and the update of v2.
const STATED: [(&str, &str); 4] = [
    ("terminal_info", "terminal_update"),
    ("terminal_output", "terminal_output_chunk"),
    ("terminal_output_delta", "terminal_output_chunk"),
    ("terminal_exit", "terminal_update"),
];

/// The tool calls of a session.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// The working directory of the session.
    pub(super) cwd: Option<String>,
    /// The titles of the calls, which may be empty.
    titles: Recent<String, 4096, { 1 << 20 }>,
    /// The tool calls of terminals.
    terminals: Recent<String, 1024, { 1 << 20 }>,
}

impl Tools {
    /// The memory behind them, in bytes.
    pub(super) const fn weight(&self) -> usize {
        self.titles.bytes + self.terminals.bytes
    }

    /// Notices a call. Returns whether it was not known.
    pub(super) fn see(&mut self, call: &Node<'_>) -> bool {
        let Some(id) = call.id("toolCallId") else {
            return false;
        };
        let is_new = self.titles.get(&id).is_none();
        let title = call.text("title").filter(|title| title.len() <= MAX_TITLE);
        if let Some(title) = title.or_else(|| is_new.then(String::new)) {
            let size = title.len();
            self.titles.insert(&id, title, size);
        }
        is_new
    }

    /// The title of a call; it may be empty.
    pub(super) fn title(&self, call: &Node<'_>) -> &str {
        let id = call.word("toolCallId");
        self.titles.get(&id).map_or("", |title| title)
    }

    /// Forgets the calls and the terminals.
    pub(super) fn forget(&mut self) {
        self.forget_calls();
        self.terminals = Recent::default();
    }

    /// The calls are replayed.
    pub(super) fn forget_calls(&mut self) {
        self.titles = Recent::default();
    }

    /// Takes out of a call what it states about terminals, as updates; none when it states nothing.
    pub(super) fn terminals(&mut self, call: &mut Node<'_>) -> Option<Vec<Json>> {
        let mut meta = call.value("_meta")?;
        let mut updates = None;
        for (name, update) in STATED {
            let Some(stated) = meta.value(name) else {
                continue;
            };
            meta.remove(name);
            let updates = updates.get_or_insert_with(Vec::new);
            let Some(id) = self.terminal(&stated, call) else {
                continue;
            };
            let mut update = object! { "sessionUpdate": update, "terminalId": id };
            match name {
                "terminal_info" => {
                    let input = call.value("rawInput");
                    let place = stated.text("cwd");
                    let cwd = self.cwd.as_deref();
                    update.set("command", input.and_then(|input| input.text("command")));
                    update.set("cwd", place.map(|place| absolute(&place, cwd)));
                }
                "terminal_exit" => {
                    let code = stated.value("exit_code");
                    let code = code.and_then(|code| text::integer(&code.json()));
                    let code = code.map(|code| Node::owned(code.into_bytes()));
                    let exit = object! { "exitCode": code, "signal": stated.text("signal") };
                    update.set("exitStatus", exit);
                }
                _ => {
                    // Some agents write Base64 here; it is shown as it is.
                    let data = stated.word("data");
                    update.set("data", BASE64.encode(data.as_bytes()));
                }
            }
            updates.push(update);
        }
        if updates.is_some() {
            let is_empty = meta.members().is_some_and(|members| members.is_empty());
            call.set("_meta", (!is_empty).then_some(meta));
        }
        updates
    }

    /// The terminal that is meant, which is known from now on. Some agents leave the id out.
    fn terminal(&mut self, stated: &Node<'_>, call: &Node<'_>) -> Option<String> {
        let tool = call.word("toolCallId");
        let Some(id) = stated.id("terminal_id") else {
            let mut all = self.terminals.iter().rev();
            return all.find_map(|(id, of)| (*of == tool).then(|| id.to_owned()));
        };
        let size = tool.len();
        self.terminals.insert(&id, tool, size);
        Some(id)
    }

    /// Converts a call.
    pub(super) fn convert(&self, call: &mut Node<'_>, out: &mut Out<'_>) {
        let cwd = self.cwd.as_deref();
        if call.keep_only(MEMBERS) {
            out.dropped("tool-call", "members that v2 does not have");
        }
        call.drop_nulls();
        call.change_each("content", |item| self.content(item, out));
        call.change_each("locations", |location| {
            if let Some(path) = location.text("path") {
                location.set("path", absolute(&path, cwd));
            }
            let line = location
                .value("line")
                .and_then(|line| text::integer(&line.json()));
            if line.is_none_or(|line| line == "0" || line.starts_with('-')) {
                location.remove("line");
            }
        });
    }

    fn content(&self, part: &mut Json, out: &mut Out<'_>) {
        match &*part.word("type") {
            "content" => part.change("content", content::to_v2),
            "diff" => *part = diffs::to_v2(part, self.cwd.as_deref()),
            "terminal" => {
                let id = part.word("terminalId");
                if self.terminals.get(&id).is_none() {
                    out.dropped("terminal", "a terminal of the client");
                    *part = text_item(&format!("[terminal {id} is not available]"));
                }
            }
            // The documentation of v1 has such an item.
            kind if content::is_block(kind) => {
                content::to_v2(part);
                *part = item(part.clone());
            }
            _ => {}
        }
    }
}
