//! `merge_plan`: updates that contain only a part of the todos (Cursor's `merge`).
//!
//! A plan of v1 is always the whole list. The list that a session received last is remembered; an
//! entry to merge replaces the one with the same id, which is parked beside it, or is appended; a
//! todo without text keeps the previous text, and one that the table drops is removed. The table
//! says how todos are named, and which are done.

use crate::message::Message;
use crate::pointer::own_pointer;
use crate::step::Step;
use crate::translator::Translator;
use crate::tree::Node;

const ENTRIES: &str = "/update/entries";

/// Maximum size of a plan that is remembered, in bytes.
const MAX_PLAN: usize = 256 << 10;

impl Translator {
    pub(super) fn merge_plan(&mut self, message: &mut Message<'_>, step: &Step<'_, '_>) {
        let Some(session) = message.session() else {
            return;
        };
        let sent = items(message, ENTRIES);
        let merge = step.original.get("/merge");
        let mut plan = sent.clone();
        if merge.is_some_and(|look| &*look.json() == b"true") {
            plan = elements(std::mem::take(&mut self.sessions.see(&session).plan));
            plan.retain(|entry| !left_out(&step.original, &sent, entry));
            for entry in sent {
                merge_one(&mut plan, entry);
            }
            message.set(ENTRIES, Node::Array(plan.clone()));
        }
        let plan = Node::Array(plan).json().into_owned();
        if plan.len() <= MAX_PLAN {
            self.sessions.see(&session).plan = plan;
        }
    }
}

/// Replaces the entry with the same id, or appends the entry.
fn merge_one(plan: &mut Vec<Node<'static>>, mut entry: Node<'static>) {
    let content = own_pointer("/content");
    let id = id(&entry);
    let known = plan
        .iter_mut()
        .find(|known| id.is_some() && self::id(known) == id);
    let has_text = entry.get(&content).is_some();
    match known {
        Some(known) => {
            if let Some(old) = known.text_at(&content).filter(|_| !has_text) {
                // An entry is an object, so `put` cannot be blocked.
                let _ = entry.put(content.names(), Node::string(&old));
            }
            *known = entry;
        }
        None if has_text => plan.push(entry),
        // There is no text for it.
        None => {}
    }
}

/// Whether the todo of that entry was sent, and the table dropped it.
fn left_out(original: &Message<'_>, sent: &[Node<'_>], entry: &Node<'_>) -> bool {
    let own = id(entry);
    own.is_some()
        && !sent.iter().any(|entry| id(entry) == own)
        && items(original, "/todos")
            .iter()
            .any(|todo| todo.text_at(&own_pointer("/id")) == own)
}

fn id(entry: &Node<'_>) -> Option<String> {
    entry.text_at(&own_pointer("/_meta/acp-relay/id"))
}

/// The elements of the list at a place.
fn items(message: &Message<'_>, at: &str) -> Vec<Node<'static>> {
    message.json_at(at).map_or_else(Vec::new, elements)
}

fn elements(list: Vec<u8>) -> Vec<Node<'static>> {
    let mut list = Node::owned(list);
    list.items().map(std::mem::take).unwrap_or_default()
}
