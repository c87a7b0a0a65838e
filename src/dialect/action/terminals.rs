//! `known_terminals`: an agent that loads a session repeats tool calls with terminals of an earlier
//! run, and clients drop the whole update for a terminal that they do not know. In tool content, a
//! terminal that this conversation has not made becomes the text of the call's output, if there is one
//! and nothing else is shown, or goes.
//!
//! Known are the terminals that the client has made (the slot `terminals` of a table), and one that the
//! agent has made for its client to show (`_meta.terminal_info`).

use crate::message::Message;
use crate::step::Step;
use crate::text;
use crate::translation::DialectEvent;
use crate::translator::{Translator, slot_key};
use crate::tree::Node;

const CONTENT: &str = "/update/content";

/// Where a text of the output may be.
const OUTPUTS: [&str; 5] = [
    "/update/rawOutput",
    "/update/rawOutput/output",
    "/update/rawOutput/stdout",
    "/update/rawOutput/text",
    "/update/_meta/terminal_output/data",
];

impl Translator {
    pub(super) fn known_terminals(&self, message: &mut Message<'_>, step: &mut Step<'_, '_>) {
        let Some(content) = message.json_at(CONTENT) else {
            return;
        };
        let session = message.session().unwrap_or_default();
        if !self.is_loading(&session) {
            return;
        }
        let shown = message.text_at("/update/_meta/terminal_info/terminal_id");
        let is_unknown = |item: &[u8]| {
            let word = |name| text::member(item, name).and_then(text::string);
            let id = word("terminalId").filter(|_| word("type").as_deref() == Some("terminal"));
            id.is_some_and(|id| {
                let key = slot_key("terminals", &session, Some(&id));
                shown.as_deref() != Some(&*id) && self.memory.get(&key).is_none()
            })
        };
        if !text::items(&content).any(is_unknown) {
            return;
        }
        let mut kept: Vec<Node<'static>> = text::items(&content)
            .filter(|item| !is_unknown(item))
            .map(|item| Node::owned(item.to_vec()))
            .collect();
        let mut outputs = OUTPUTS.iter().filter_map(|at| message.text_at(at));
        if kept.is_empty()
            && let Some(output) = outputs.find(|output| !output.is_empty())
        {
            let block = serde_json::json!({"type": "text", "text": output});
            let item = serde_json::json!({"type": "content", "content": block});
            kept.push(Node::owned(item.to_string().into_bytes()));
        }
        message.set(CONTENT, Node::Array(kept));
        let what = "a terminal that this conversation has not made";
        step.out.note(DialectEvent::Dropped, None, what);
    }
}
