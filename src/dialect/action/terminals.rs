//! `past_terminals`: an agent that loads a session repeats tool calls with terminals of an earlier
//! run, and clients drop the whole update for a terminal that they do not know. In the history of a
//! loaded session, a terminal in tool content becomes the text of the call's output, if there is one and
//! nothing else is shown, or goes. One that the agent has made for its client to show
//! (`_meta.terminal_info`) stays.

use crate::message::Message;
use crate::step::Step;
use crate::text;
use crate::translation::DialectEvent;
use crate::translator::Translator;
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
    pub(super) fn past_terminals(&self, message: &mut Message<'_>, step: &mut Step<'_, '_>) {
        if !self
            .loading()
            .any(|id| message.session().as_deref() == Some(id))
        {
            return;
        }
        let Some(content) = message.json_at(CONTENT) else {
            return;
        };
        let shown = message.text_at("/update/_meta/terminal_info/terminal_id");
        let is_unknown = |item: &[u8]| {
            let word = |name| text::member(item, name).and_then(text::string);
            word("type").as_deref() == Some("terminal")
                && word("terminalId").as_deref() != shown.as_deref()
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
        let what = "a terminal of an earlier run, in the history of a loaded session";
        step.out.note(DialectEvent::Dropped, None, what);
    }
}
