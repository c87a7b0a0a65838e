//! Tool calls: v1 creates and patches them, v2 only patches; null clears in v2.

use hashlink::LinkedHashMap;

use super::parts::{MAX_ID, absolute, drop_nulls, keep_only};
use super::terminals::Terminals;
use super::{content, diffs};
use crate::dialect::text;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::Exchange;
use crate::dialect::versions::json::{array, remove, set, text as text_of, text_block, value};

/// How many tool calls of a session are remembered.
const MAX_CALLS: usize = 4096;
/// The longest title that is remembered, in bytes.
const MAX_TITLE: usize = 4096;
/// The members of a tool call that both versions have.
const MEMBERS: [&str; 11] = [
    "sessionUpdate",
    "toolCallId",
    "name",
    "title",
    "kind",
    "status",
    "content",
    "locations",
    "rawInput",
    "rawOutput",
    "_meta",
];

/// The tool calls of a session.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// The working directory of the session.
    pub(super) cwd: Option<String>,
    /// The titles of the calls, which may be empty.
    pub(super) titles: LinkedHashMap<Box<str>, String>,
    terminals: Terminals,
}

impl Tools {
    /// Notices a call. Returns whether it was not known.
    pub(super) fn see(&mut self, call: &Node<'_>) -> bool {
        let id = text_of(call, "toolCallId").unwrap_or_default();
        if id.len() > MAX_ID {
            return false;
        }
        let is_new = !self.titles.contains_key(&*id);
        let title = text_of(call, "title").filter(|title| title.len() <= MAX_TITLE);
        if let Some(title) = title.or_else(|| is_new.then(String::new)) {
            self.titles.insert(id.into(), title);
        }
        if self.titles.len() > MAX_CALLS {
            self.titles.pop_front();
        }
        is_new
    }

    /// Takes out of a call what it states about terminals; none when it states nothing.
    pub(super) fn terminals(&mut self, call: &mut Node<'_>) -> Option<Vec<Node<'static>>> {
        self.terminals.take(call, self.cwd.as_deref())
    }

    /// Converts a call.
    pub(super) fn convert(&self, call: &mut Node<'_>, out: &mut Exchange<'_>) {
        let cwd = self.cwd.as_deref();
        if keep_only(call, &MEMBERS) {
            out.note(
                DialectEvent::Dropped,
                "tool-call",
                "members that v2 does not have",
            );
        }
        drop_nulls(call);
        if let Some(mut content) = array(call, "content") {
            content.iter_mut().for_each(|item| self.content(item, out));
            set(call, "content", Node::Array(content));
        }
        let Some(mut locations) = array(call, "locations") else {
            return;
        };
        for location in &mut locations {
            if let Some(path) = text_of(location, "path") {
                set(location, "path", Node::string(&absolute(&path, cwd)));
            }
            let line = value(location, "line").and_then(|line| text::integer(&line.json()));
            if line.is_none_or(|line| line == "0" || line.starts_with('-')) {
                remove(location, "line");
            }
        }
        set(call, "locations", Node::Array(locations));
    }

    fn content(&self, item: &mut Node<'static>, out: &mut Exchange<'_>) {
        let kind = text_of(item, "type").unwrap_or_default();
        match &*kind {
            "content" => {
                if let Some(mut block) = value(item, "content") {
                    content::to_v2(&mut block);
                    set(item, "content", block);
                }
            }
            "diff" => *item = diffs::to_v2(item, self.cwd.as_deref()),
            "terminal" => {
                let id = text_of(item, "terminalId").unwrap_or_default();
                if !self.terminals.knows(&id) {
                    out.note(
                        DialectEvent::Dropped,
                        "terminal",
                        "a terminal of the client",
                    );
                    let text = format!("[terminal {id} is not available]");
                    *item = wrapped(text_block(&text));
                }
            }
            // The documentation of v1 has such an item.
            kind if content::TYPES.contains(&kind) => {
                content::to_v2(item);
                *item = wrapped(item.clone());
            }
            _ => {}
        }
    }
}

fn wrapped(block: Node<'static>) -> Node<'static> {
    Node::object(vec![("type", Node::string("content")), ("content", block)])
}
