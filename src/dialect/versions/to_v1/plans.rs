//! Plans: v2 has several of several kinds, v1 one list of entries.

use hashlink::LinkedHashMap;

use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::Exchange;
use crate::dialect::versions::json::{array, only, set, text, value};

/// How many plans of a session are remembered.
const PLANS: usize = 64;
/// How many entries of one plan.
const ENTRIES: usize = 1024;

/// The entries of the plans of a session, in the order in which they were first seen.
#[derive(Debug, Default)]
pub(super) struct Plans(LinkedHashMap<String, Vec<Node<'static>>>);

impl Plans {
    /// `plan_update`; `is_open` tells that the client knows plans of other kinds.
    pub(super) fn update(
        &mut self,
        update: &Node<'_>,
        is_open: bool,
        out: &mut Exchange<'_>,
        made: &mut Vec<Node<'static>>,
    ) {
        out.rule("plans");
        let plan = value(update, "plan").unwrap_or(Node::Absent);
        let kind = text(&plan, "type").unwrap_or_default();
        let id = text(&plan, "planId").unwrap_or_default();
        match &*kind {
            "items" => {
                let mut entries = array(&plan, "entries").unwrap_or_default();
                entries.truncate(ENTRIES);
                let entries: Vec<_> = entries.iter().map(entry).collect();
                // A plan that is known keeps its place.
                match self.0.get_mut(&id) {
                    Some(known) => *known = entries,
                    None => drop(self.0.insert(id, entries)),
                }
                if self.0.len() > PLANS {
                    self.0.pop_front();
                }
                made.push(self.shown(update));
            }
            "file" | "markdown" if is_open => {
                let mut passed = only(update, &["sessionUpdate", "_meta"]);
                let names = ["type", "planId", "uri", "content", "_meta"];
                set(&mut passed, "plan", only(&plan, &names));
                made.push(passed);
            }
            _ => {
                let what = format!("v1 has no plans of type {kind}");
                out.note(DialectEvent::Dropped, "plans", what);
            }
        }
    }

    /// `plan_removed`.
    pub(super) fn remove(
        &mut self,
        update: &Node<'_>,
        is_open: bool,
        out: &mut Exchange<'_>,
        made: &mut Vec<Node<'static>>,
    ) {
        out.rule("plans");
        let id = text(update, "planId").unwrap_or_default();
        if self.0.remove(&id).is_some() {
            made.push(self.shown(update));
        } else if is_open {
            made.push(only(update, &["sessionUpdate", "planId", "_meta"]));
        }
    }

    /// The list of all.
    fn shown(&self, update: &Node<'_>) -> Node<'static> {
        let entries = self.0.values().flatten().cloned().collect();
        let mut made = Node::object(vec![
            ("sessionUpdate", Node::string("plan")),
            ("entries", Node::Array(entries)),
        ]);
        if let Some(meta) = value(update, "_meta") {
            set(&mut made, "_meta", meta);
        }
        made
    }
}

fn entry(v2: &Node<'static>) -> Node<'static> {
    let mut made = only(v2, &["content", "priority", "status", "_meta"]);
    let priority = text(v2, "priority").unwrap_or_default();
    if !matches!(&*priority, "high" | "medium" | "low") {
        set(&mut made, "priority", Node::string("medium"));
    }
    let status = text(v2, "status").unwrap_or_default();
    match &*status {
        "pending" | "in_progress" | "completed" => {}
        "cancelled" => {
            let content = text(v2, "content").unwrap_or_default();
            let content = format!("(cancelled) {content}");
            set(&mut made, "content", Node::string(&content));
            set(&mut made, "status", Node::string("completed"));
        }
        _ => set(&mut made, "status", Node::string("pending")),
    }
    made
}
