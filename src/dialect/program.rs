//! A stack of tables, compiled once: which rules a message meets is one lookup.
//!
//! The stack is flattened when it is loaded: own table first, then those it extends. Reading goes
//! down the stack, from the dialect to canonical; writing goes up. A message that no table names
//! costs one lookup and no allocation, however many tables there are. Not here: applying rules.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::rewrite::holds;
use super::table::{
    Action, Conversion, Each, Emit, Fill, Jsonrpc, Kinds, Memory, Row, Rule, Selector, Shape,
    Table, Way,
};
use super::tree::Node;
use crate::wire::{Kind, Side};

/// Lists of rules by way, sending side, kind and method.
type Routes<T> = [[[HashMap<Box<str>, T>; 4]; 2]; 2];

/// One dialect, ready to be carried out.
#[derive(Debug)]
pub struct Program {
    pub(super) layers: Vec<Layer>,
    /// Whether any layer names a message, or anything of it is remembered.
    known: Routes<()>,
    pub(super) memory: Vec<Memory>,
    pub(super) sessions: bool,
}

/// One table of the stack.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) table: Arc<Table>,
    routes: Routes<Vec<usize>>,
}

/// A rule that was applied.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fired {
    /// Its table.
    pub dialect: String,
    /// Its id.
    pub rule: String,
}

impl fmt::Display for Fired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.dialect, self.rule)
    }
}

impl Program {
    /// Compiles a stack, own table first.
    #[must_use]
    pub fn new(stack: Vec<Arc<Table>>) -> Self {
        let mut program = Self {
            layers: Vec::new(),
            known: Routes::default(),
            memory: Vec::new(),
            sessions: false,
        };
        for table in stack {
            for memory in &table.memory {
                if !program.memory.iter().any(|known| known.name == memory.name) {
                    program.memory.push(memory.clone());
                }
            }
            let mut layer = Layer {
                routes: Routes::default(),
                table: Arc::clone(&table),
            };
            for (at, rule) in table.rules.iter().enumerate() {
                program.sessions |= needs_sessions(rule, &table.shapes);
                for way in [Way::Read, Way::Write] {
                    let Some(name) = rule.on.what.names().before(way) else {
                        continue;
                    };
                    for kind in kinds(rule, way).iter().copied() {
                        let side = rule.on.from;
                        let place = |routes: &mut Routes<Vec<usize>>| {
                            let list = &mut routes[way as usize][side as usize][kind as usize];
                            list.entry(name.into()).or_default().push(at);
                        };
                        place(&mut layer.routes);
                        program.know(way, side, kind, name);
                        // What an upper table renames, a lower one knows by its canonical name.
                        if let Some(after) = rule.on.what.names().after(way) {
                            program.know(way, side, kind, after);
                        }
                    }
                }
            }
            program.layers.push(layer);
        }
        let slots: Vec<_> = program
            .memory
            .iter()
            .map(|memory| memory.slot.on.clone())
            .collect();
        for on in slots {
            let kinds: &[Kind] = match on.what {
                Selector::Method(_) => &[Kind::Request, Kind::Notification],
                Selector::Answers(_) => &[Kind::Result],
                Selector::ErrorsOf(_) => &[Kind::Error],
            };
            for kind in kinds {
                if let Some(name) = on.what.names().canonical.as_deref() {
                    program.know(Way::Read, on.from, *kind, name);
                    program.know(Way::Write, on.from, *kind, name);
                }
            }
        }
        if program.sessions {
            for way in [Way::Read, Way::Write] {
                program.know(way, Side::Client, Kind::Notification, "session/cancel");
                program.know(way, Side::Agent, Kind::Notification, "session/update");
            }
        }
        program
    }

    fn know(&mut self, way: Way, side: Side, kind: Kind, name: &str) {
        self.known[way as usize][side as usize][kind as usize].insert(name.into(), ());
    }

    /// The dialect's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.layers.first().map_or("", |layer| &layer.table.name)
    }

    /// Whether anything is done with such a message: the one lookup.
    #[must_use]
    pub fn knows(&self, way: Way, from: Side, kind: Kind, method: &str) -> bool {
        let known = &self.known[way as usize][from as usize][kind as usize];
        known.contains_key(method) || (kind == Kind::Error && known.contains_key("*"))
    }

    /// Whether nothing is ever done: the dialect is canonical.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layers.iter().all(|layer| layer.table.rules.is_empty())
            && *self.jsonrpc() == Jsonrpc::Always
    }

    /// Whether a notification that is known by name can be passed by: nothing of it is remembered,
    /// and no rule's guard holds. Costs no allocation.
    pub(super) fn passes(&self, way: Way, from: Side, method: &str, body: &Node<'_>) -> bool {
        let kind = Kind::Notification;
        let met = |rule: &Rule| rule.base.works(way) && holds(body, rule.base.before(way));
        let layers = || self.layers.iter();
        !self.sessions
            && self.memory.is_empty()
            && !layers().any(|layer| layer.rules(way, from, kind, method).any(met))
    }

    pub(super) fn jsonrpc(&self) -> &Jsonrpc {
        self.layers
            .first()
            .map_or(&Jsonrpc::Always, |layer| &layer.table.jsonrpc)
    }

    pub(super) fn int_ids(&self) -> bool {
        self.layers.first().is_some_and(|layer| layer.table.int_ids)
    }
}

impl Layer {
    /// The rules for a message of that name.
    pub(super) fn rules(
        &self,
        way: Way,
        from: Side,
        kind: Kind,
        method: &str,
    ) -> impl Iterator<Item = &Rule> {
        let routes = &self.routes[way as usize][from as usize][kind as usize];
        let all = (kind == Kind::Error).then(|| routes.get("*")).flatten();
        let found = routes.get(method).into_iter().chain(all);
        found.flatten().map(|at| &self.table.rules[*at])
    }
}

/// What a rule's messages are on the side they come from.
fn kinds(rule: &Rule, way: Way) -> &'static [Kind] {
    match (&rule.on.what, rule.on.kinds, way) {
        (Selector::Answers(_), ..) => &[Kind::Result],
        (Selector::ErrorsOf(_), ..) => &[Kind::Error],
        (_, Some(Kinds::DialectAsks), Way::Read) => &[Kind::Request],
        (_, Some(Kinds::DialectAsks), Way::Write) => &[Kind::Notification],
        _ => &[Kind::Request, Kind::Notification],
    }
}

/// Whether a rule asks for more than its own message.
fn needs_sessions(rule: &Rule, shapes: &[Shape]) -> bool {
    let shaped = shapes.iter().flat_map(|shape| &shape.cases);
    std::iter::once(&rule.base)
        .chain(&rule.cases)
        .chain(shaped)
        .any(|case| {
            let emitted = case.emit.iter().flat_map(|emit: &Emit| &emit.rows);
            let acts = case
                .actions
                .iter()
                .any(|action| *action != Action::RejectUnsupported);
            acts || case.rows.iter().chain(emitted).any(recalls_sessions)
        })
}

fn recalls_sessions(row: &Row) -> bool {
    let own = matches!(&row.fill, Some(Fill::Recall(recall)) if recall.slot == PROMPTING);
    own || row.convert.iter().any(|conversion| match conversion {
        Conversion::In(rows) | Conversion::Each(Each::Rows(rows)) => {
            rows.iter().any(recalls_sessions)
        }
        _ => false,
    })
}

/// The slot that every table has: the session whose prompt is in flight.
pub(super) const PROMPTING: &str = "prompting_session";
