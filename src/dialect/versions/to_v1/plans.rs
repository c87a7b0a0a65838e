//! Plans: v2 has several of several kinds, v1 one list of entries.

use crate::object::{Json, object};
use crate::recent::Recent;
use crate::tree::Node;
use crate::versions::out::Out;

/// How many entries of one plan are remembered.
const ENTRIES: usize = 1024;

/// The entries of the plans of a session, in the order in which they were first seen.
#[derive(Debug, Default)]
pub(super) struct Plans(pub(super) Recent<Vec<Json>, 64, { 1 << 20 }>);

impl Plans {
    /// `plan_update`; `is_open` tells that the client knows plans of other kinds.
    pub(super) fn update(
        &mut self,
        update: &Node<'_>,
        is_open: bool,
        out: &mut Out<'_>,
    ) -> Vec<Json> {
        out.rule("plans");
        let plan = update.part("plan");
        match &*plan.word("type") {
            "items" => {
                let id = plan.id("planId").unwrap_or_default();
                let entries = plan.list("entries");
                let entries: Vec<_> = entries.iter().take(ENTRIES).map(entry).collect();
                let size = entries.iter().map(Node::size).sum();
                *self.0.of(&id) = entries;
                self.0.weigh(&id, size);
                vec![self.shown(update)]
            }
            "file" | "markdown" if is_open => {
                let mut passed = update.only("sessionUpdate");
                passed.set("plan", plan.only("type planId uri content"));
                vec![passed]
            }
            kind => {
                out.dropped("plans", format!("v1 has no plans of type {kind}"));
                Vec::new()
            }
        }
    }

    /// `plan_removed`.
    pub(super) fn remove(
        &mut self,
        update: &Node<'_>,
        is_open: bool,
        out: &mut Out<'_>,
    ) -> Vec<Json> {
        out.rule("plans");
        let id = update.id("planId").unwrap_or_default();
        match self.0.remove(&id) {
            Some(_) => vec![self.shown(update)],
            None if is_open => vec![update.only("sessionUpdate planId")],
            None => Vec::new(),
        }
    }

    /// The list of all.
    fn shown(&self, update: &Node<'_>) -> Json {
        let plans = self.0.iter();
        let entries: Vec<_> = plans
            .flat_map(|(_, entries)| entries.iter().cloned())
            .collect();
        object! { "sessionUpdate": "plan", "entries": entries, "_meta": update.value("_meta") }
    }
}

fn entry(v2: &Json) -> Json {
    let mut made = v2.only("content priority status");
    if !matches!(
        v2.text("priority").as_deref(),
        Some("high" | "medium" | "low")
    ) {
        made.set("priority", "medium");
    }
    match v2.text("status").as_deref() {
        Some("pending" | "in_progress" | "completed") => {}
        Some("cancelled") => {
            let content = v2.word("content");
            made.set("content", format!("(cancelled) {content}"));
            made.set("status", "completed");
        }
        _ => made.set("status", "pending"),
    }
    made
}
