//! Tool calls: v1 creates and patches them, v2 only patches; null clears in v2.

use hashlink::LinkedHashMap;

use super::parts::{absolute, drop_nulls, keep_only, member, put, remove, text_of};
use super::terminals::Terminals;
use super::{content, diffs};
use crate::dialect::text;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::Exchange;

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
    titles: LinkedHashMap<Box<str>, Box<str>>,
    terminals: Terminals,
}

impl Tools {
    /// Forgets the calls, which the agent is going to replay.
    pub(super) fn restart(&mut self) {
        self.titles.clear();
    }

    /// The title of a call.
    pub(super) fn title(&self, id: &str) -> Option<&str> {
        self.titles
            .get(id)
            .map(|title| &**title)
            .filter(|title| !title.is_empty())
    }

    /// Notices a call. Returns whether it was not known.
    pub(super) fn see(&mut self, call: &Node<'_>) -> bool {
        let Some(id) = text_of(call, "toolCallId") else {
            return false;
        };
        let known = self.titles.get(&*id).cloned();
        let title = text_of(call, "title").filter(|title| title.len() <= MAX_TITLE);
        let is_new = known.is_none();
        if let Some(title) = title.map(Box::from).or(is_new.then(Box::default)) {
            self.titles.insert(id.into(), title);
        }
        if self.titles.len() > MAX_CALLS {
            self.titles.pop_front();
        }
        is_new
    }

    /// Takes out of a call what it states about terminals.
    pub(super) fn terminals(&mut self, call: &mut Node<'_>) -> Vec<Node<'static>> {
        self.terminals.take(call, self.cwd.as_deref())
    }

    /// Converts a call.
    pub(super) fn convert(&self, call: &mut Node<'_>, out: &mut Exchange<'_>) {
        if keep_only(call, &MEMBERS) {
            let what = "a member of a tool call that v2 does not have";
            out.note(DialectEvent::Dropped, "tool-call", what);
        }
        drop_nulls(call);
        if let Some(mut content) = member(call, "content") {
            for item in content.items().into_iter().flatten() {
                self.content(item, out);
            }
            put(call, "content", content);
        }
        if let Some(mut locations) = member(call, "locations") {
            for location in locations.items().into_iter().flatten() {
                if let Some(path) = text_of(location, "path") {
                    put(
                        location,
                        "path",
                        Node::string(&absolute(&path, self.cwd.as_deref())),
                    );
                }
                let line = member(location, "line").and_then(|line| text::integer(&line.json()));
                if line.is_none_or(|line| line == "0" || line.starts_with('-')) {
                    remove(location, "line");
                }
            }
            put(call, "locations", locations);
        }
    }

    fn content(&self, item: &mut Node<'_>, out: &mut Exchange<'_>) {
        let kind = text_of(item, "type").unwrap_or_default();
        match &*kind {
            "content" => {
                if let Some(mut block) = member(item, "content") {
                    content::to_v2(&mut block);
                    put(item, "content", block);
                }
            }
            "diff" => diffs::to_v2(item, self.cwd.as_deref()),
            "terminal" => {
                let id = text_of(item, "terminalId").unwrap_or_default();
                if !self.terminals.knows(&id) {
                    let what = "a terminal of the client, which is not hosted";
                    out.note(DialectEvent::Dropped, "terminal", what);
                    *item = text_item(&format!("[terminal {id} is not available]"));
                }
            }
            // The documentation of v1 has such an item.
            kind if content::TYPES.contains(&kind) => {
                let mut block = std::mem::replace(item, Node::Absent);
                content::to_v2(&mut block);
                *item = wrapped(block);
            }
            _ => {}
        }
    }
}

fn text_item(text: &str) -> Node<'static> {
    wrapped(Node::object(vec![
        ("type", Node::string("text")),
        ("text", Node::string(text)),
    ]))
}

fn wrapped(block: Node<'_>) -> Node<'_> {
    Node::object(vec![("type", Node::string("content")), ("content", block)])
}
