//! A stack of tables, compiled once: the rules for a message are found by one lookup.
//!
//! The stack is flattened when it is loaded: the dialect's own table first, then those it extends.
//! Reading goes down the stack, from the dialect to canonical; writing goes up. A message without a
//! rule costs one lookup by its method and one in its body, and no allocation, however many tables
//! there are.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use super::message::Message;
use super::pending::PendingRequest;
use super::prefilter::Prefilter;
use super::sessions::Tracking;
use super::table::{
    Conversion, Each, Emit, Fill, Jsonrpc, KindChange, MessageFilter, PROMPTING, Row, Rule,
    Selector, Shape, Slot, Table, Way,
};
use crate::jsonrpc::{Kind, Side};

/// A value by way, sending side, kind and method.
type Routes<T> = [[[BTreeMap<Box<[u8]>, T>; 4]; 2]; 2];

/// One dialect, compiled.
#[derive(Debug)]
pub struct Program {
    pub(super) layers: Vec<Layer>,
    /// What a message must contain before a layer may apply to it, or a value of it is remembered.
    prefilters: Routes<Prefilter>,
    pub(super) memory: BTreeMap<String, Slot>,
    /// Methods of the agent that have another name in the dialect: by that name, the canonical
    /// method that a client with the dialect takes them for.
    renamed: HashMap<Box<[u8]>, Box<str>>,
    /// What must be tracked of sessions.
    pub(super) tracking: Tracking,
}

/// A table in a stack.
#[derive(Clone, Debug)]
pub struct StackEntry {
    /// The table.
    pub table: Arc<Table>,
    /// Whether messages are written with it; otherwise they are only read with it.
    pub writes: bool,
}

/// One table of the stack.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) table: Arc<Table>,
    pub(super) name: Arc<str>,
    routes: Routes<Vec<usize>>,
}

/// A rule that was applied.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FiredRule {
    /// Its table.
    pub dialect: Arc<str>,
    /// Its id.
    pub rule: Arc<str>,
}

impl fmt::Display for FiredRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.dialect, self.rule)
    }
}

impl Program {
    /// Compiles a stack; the dialect's own table is first.
    #[must_use]
    pub fn new(stack: Vec<StackEntry>) -> Self {
        let mut prefilters: Routes<Prefilter> = Routes::default();
        let mut layers = Vec::new();
        let mut memory = BTreeMap::new();
        let mut tracking = Tracking::default();
        let mut renamed = HashMap::new();
        for StackEntry { table, writes } in stack {
            for (name, slot) in &table.memory {
                memory.entry(name.clone()).or_insert_with(|| slot.clone());
            }
            for rule in &table.rules {
                add_tracking(rule, &table, &mut tracking);
                renamed.extend(rename(rule));
            }
            layers.push(Layer::new(table, writes, &mut prefilters));
        }
        // Where something is remembered, requests and answers are looked at in any case.
        for slot in memory.values() {
            if let Selector::Method(names) = &slot.on.what
                && let Some(name) = &names.canonical
            {
                for way in [Way::Read, Way::Write] {
                    let kind = Kind::Notification;
                    prefilter(&mut prefilters, way, slot.on.from, kind, name)
                        .add(slot.when.clone());
                }
            }
        }
        for methods in prefilters.iter_mut().flatten().flatten() {
            methods.values_mut().for_each(Prefilter::finish);
        }
        Self {
            layers,
            prefilters,
            memory,
            renamed,
            tracking,
        }
    }

    /// The dialect's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.table().map_or("", |table| &table.name)
    }

    /// The prefilter for such a message; `None` when no rule applies to it. This is the one lookup.
    pub(super) fn prefilter(
        &self,
        way: Way,
        from: Side,
        kind: Kind,
        method: &[u8],
    ) -> Option<&Prefilter> {
        let prefilters = &self.prefilters[way as usize][from as usize][kind as usize];
        prefilters.get(method).or_else(|| {
            let all = (kind == Kind::Error).then(|| prefilters.get(&b"*"[..]));
            all.flatten()
        })
    }

    /// The canonical method that a client takes a call of the agent for which has the dialect's
    /// name of that method, and so passes without a rule. Every table of the stack counts, and
    /// guards are ignored.
    pub(super) fn canonical_call(&self, method: &str) -> Option<&str> {
        self.renamed.get(method.as_bytes()).map(|name| &**name)
    }

    /// Whether anything of a conversation is remembered besides requests in flight.
    pub(super) fn remembers(&self) -> bool {
        self.tracking.turns || !self.memory.is_empty()
    }

    /// Whether nothing is ever changed: the dialect is canonical.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layers.iter().all(|layer| layer.table.rules.is_empty()) && !self.strips_jsonrpc()
    }

    /// The dialect's own table.
    fn table(&self) -> Option<&Table> {
        self.layers.first().map(|layer| &*layer.table)
    }

    pub(super) fn jsonrpc(&self) -> &Jsonrpc {
        self.table()
            .map_or(&Jsonrpc::Always, |table| &table.jsonrpc)
    }

    /// Whether some messages are written without the member `jsonrpc`.
    pub(super) fn strips_jsonrpc(&self) -> bool {
        *self.jsonrpc() != Jsonrpc::Always
    }

    /// Whether requests are written with `params` even if these are empty.
    pub(super) fn requires_params(&self) -> bool {
        self.table().is_some_and(|table| table.params)
    }

    pub(super) fn int_ids(&self) -> bool {
        self.table().is_some_and(|table| table.int_ids)
    }
}

impl Layer {
    /// Adds one table, and what its rules require of messages.
    fn new(table: Arc<Table>, writes: bool, prefilters: &mut Routes<Prefilter>) -> Self {
        let mut routes: Routes<Vec<usize>> = Routes::default();
        for (at, rule) in table.rules.iter().enumerate() {
            for way in [Way::Read, Way::Write] {
                let Some(name) = rule.on.what.names().before(way) else {
                    continue;
                };
                if !rule.base.applies(way) || (way == Way::Write && !writes) {
                    continue;
                }
                for kind in kinds(&rule.on, way).iter().copied() {
                    let side = rule.on.from;
                    let list = &mut routes[way as usize][side as usize][kind as usize];
                    list.entry(name.as_bytes().into()).or_default().push(at);
                    prefilter(prefilters, way, side, kind, name).add_rule(rule, &table.shapes, way);
                }
            }
        }
        Self {
            name: table.name.as_str().into(),
            table,
            routes,
        }
    }

    /// Whether there is a rule for such a message.
    pub(super) fn has_rules(
        &self,
        way: Way,
        from: Side,
        message: &Message<'_>,
        pending: &PendingRequest,
    ) -> bool {
        let routes = &self.routes[way as usize][from as usize][message.kind as usize];
        let has = |method: &str| routes.get(method.as_bytes()).is_some();
        match message.kind {
            Kind::Request | Kind::Notification => has(&message.method),
            Kind::Result | Kind::Error => {
                has(&pending.dialect) || has(&pending.canonical) || has("*")
            }
        }
    }

    /// The rules for a message with that name.
    pub(super) fn rules(
        &self,
        way: Way,
        from: Side,
        kind: Kind,
        method: &str,
    ) -> impl Iterator<Item = &Rule> {
        let routes = &self.routes[way as usize][from as usize][kind as usize];
        let all = (kind == Kind::Error)
            .then(|| routes.get(&b"*"[..]))
            .flatten();
        let found = routes.get(method.as_bytes()).into_iter().chain(all);
        found.flatten().map(|at| &self.table.rules[*at])
    }
}

/// The kinds that the messages have on the side they come from.
fn kinds(on: &MessageFilter, way: Way) -> &'static [Kind] {
    match (&on.what, on.kinds, way) {
        (Selector::Answers(_), ..) => &[Kind::Result],
        (Selector::ErrorsOf(_), ..) => &[Kind::Error],
        // Some dialects send a notification as a request; it is not answered then.
        (_, Some(KindChange::DialectAsks), Way::Read) => &[Kind::Request, Kind::Notification],
        (_, Some(KindChange::DialectAsks), Way::Write) => &[Kind::Notification],
        _ => &[Kind::Request, Kind::Notification],
    }
}

/// The dialect's name for a call of the agent and the canonical one, where they differ.
fn rename(rule: &Rule) -> Option<(Box<[u8]>, Box<str>)> {
    let (Side::Agent, Selector::Method(names)) = (rule.on.from, &rule.on.what) else {
        return None;
    };
    let (dialect, canonical) = (names.dialect.as_deref()?, names.canonical.as_deref()?);
    (dialect != canonical).then(|| (dialect.as_bytes().into(), canonical.into()))
}

fn prefilter<'d>(
    prefilters: &'d mut Routes<Prefilter>,
    way: Way,
    side: Side,
    kind: Kind,
    method: &str,
) -> &'d mut Prefilter {
    let methods = &mut prefilters[way as usize][side as usize][kind as usize];
    methods.entry(method.as_bytes().into()).or_default()
}

/// Adds the session data that a rule needs besides its own message.
fn add_tracking(rule: &Rule, table: &Table, tracking: &mut Tracking) {
    let shaped = table.shapes.values().flat_map(|Shape(cases)| cases);
    let cases = std::iter::once(&rule.base).chain(&rule.cases);
    for case in cases.chain(shaped) {
        for action in &case.actions {
            tracking.add(*action);
        }
        let emitted = case.emit.iter().flat_map(|emit: &Emit| &emit.rows);
        if case.rows.iter().chain(emitted).any(recalls_sessions) {
            tracking.turns = true;
        }
    }
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
