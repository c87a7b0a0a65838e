//! A stack of tables, compiled once: the rules for a message are found by one lookup.
//!
//! The stack is flattened when it is loaded: the dialect's own table first, then those it extends.
//! Reading goes down the stack, from the dialect to canonical; writing goes up. A message without a
//! rule costs one lookup by its method and one in its body, and no allocation, however many tables
//! there are.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::by_method::ByMethod;
use super::message::Message;
use super::pending::PendingRequest;
use super::prefilter::{Prefilter, PrefilterBuilder};
use super::sessions::Tracking;
use super::table::{
    Conversion, Each, Emit, Fill, Jsonrpc, KindChange, NamedShape, NamedSlot, Row, Rule, Selector,
    Table, Way,
};
use crate::jsonrpc::{Kind, Side};

/// A value for each way, sending side and kind.
type ByRoute<T> = [[[T; 4]; 2]; 2];

/// The same by method as well, while it is collected.
type Routes<T> = ByRoute<HashMap<Box<str>, T>>;

/// One dialect, compiled.
#[derive(Debug)]
pub struct Program {
    pub(super) layers: Vec<Layer>,
    /// What a message must contain before a layer may apply to it, or a value of it is remembered.
    prefilters: ByRoute<ByMethod<Prefilter>>,
    pub(super) memory: Vec<NamedSlot>,
    /// Methods of the agent that have another name in the dialect: by that name, the canonical
    /// method that a client with the dialect takes them for.
    renamed: ByMethod<Box<str>>,
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
    routes: ByRoute<ByMethod<Vec<usize>>>,
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
        let mut builders: Routes<PrefilterBuilder> = Routes::default();
        let mut layers = Vec::new();
        let mut memory: Vec<NamedSlot> = Vec::new();
        let mut tracking = Tracking::default();
        let mut renamed = HashMap::new();
        for StackEntry { table, writes } in stack {
            for slot in &table.memory {
                if !memory.iter().any(|known| known.name == slot.name) {
                    memory.push(slot.clone());
                }
            }
            for rule in &table.rules {
                add_tracking(rule, &table.shapes, &mut tracking);
                renamed.extend(rename(rule));
            }
            layers.push(Layer::new(table, writes, &mut builders));
        }
        for NamedSlot { slot, .. } in &memory {
            let on = &slot.on;
            let kinds: &[Kind] = match on.what {
                Selector::Method(_) => &[Kind::Request, Kind::Notification],
                Selector::Answers(_) => &[Kind::Result],
                Selector::ErrorsOf(_) => &[Kind::Error],
            };
            let name = on.what.names().canonical.as_deref();
            for way in [Way::Read, Way::Write] {
                for (name, kind) in name
                    .into_iter()
                    .flat_map(|name| kinds.iter().map(move |kind| (name, *kind)))
                {
                    builder(&mut builders, way, on.from, kind, name).add(&slot.when);
                }
            }
        }
        for way in [Way::Read, Way::Write] {
            tracking.require(|side, kind, method, guard| {
                let builder = builder(&mut builders, way, side, kind, method);
                match guard {
                    Some(guard) => builder.add(&guard),
                    None => builder.add_all(),
                }
            });
        }
        let build = |methods: HashMap<_, PrefilterBuilder>| {
            let gates = methods.into_iter().map(|(name, all)| (name, all.build()));
            ByMethod::from(gates.collect::<HashMap<_, _>>())
        };
        Self {
            layers,
            prefilters: map_routes(builders, build),
            memory,
            renamed: renamed.into(),
            tracking,
        }
    }

    /// The dialect's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.layers.first().map_or("", |layer| &layer.table.name)
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
            let all = (kind == Kind::Error).then(|| prefilters.get(b"*"));
            all.flatten()
        })
    }

    /// The canonical method that a client takes a call of the agent for which has the dialect's
    /// name of that method, and so passes without a rule. Every table of the stack counts, and
    /// guards are ignored.
    pub(super) fn canonical_call(&self, method: &str) -> Option<&str> {
        self.renamed.get(method.as_bytes()).map(|name| &**name)
    }

    /// Whether messages of that kind are never changed or remembered.
    pub(super) fn ignores(&self, way: Way, from: Side, kind: Kind) -> bool {
        let prefilters = &self.prefilters[way as usize][from as usize][kind as usize];
        prefilters.is_empty()
            && !self.tracking.any()
            && (way == Way::Read || !self.strips_jsonrpc())
    }

    /// Whether anything of a conversation is remembered besides requests in flight.
    pub(super) fn remembers(&self) -> bool {
        self.tracking.any() || !self.memory.is_empty()
    }

    /// Whether nothing is ever changed: the dialect is canonical.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layers.iter().all(|layer| layer.table.rules.is_empty()) && !self.strips_jsonrpc()
    }

    pub(super) fn jsonrpc(&self) -> &Jsonrpc {
        self.layers
            .first()
            .map_or(&Jsonrpc::Always, |layer| &layer.table.jsonrpc)
    }

    /// Whether some messages are written without the member `jsonrpc`.
    pub(super) fn strips_jsonrpc(&self) -> bool {
        *self.jsonrpc() != Jsonrpc::Always
    }

    /// Whether requests are written with `params` even if these are empty.
    pub(super) fn requires_params(&self) -> bool {
        self.layers.first().is_some_and(|layer| layer.table.params)
    }

    pub(super) fn int_ids(&self) -> bool {
        self.layers.first().is_some_and(|layer| layer.table.int_ids)
    }
}

impl Layer {
    /// Adds one table, and what its rules require of messages.
    fn new(table: Arc<Table>, writes: bool, builders: &mut Routes<PrefilterBuilder>) -> Self {
        let mut routes: Routes<Vec<usize>> = Routes::default();
        for (at, rule) in table.rules.iter().enumerate() {
            for way in [Way::Read, Way::Write] {
                let Some(name) = rule.on.what.names().before(way) else {
                    continue;
                };
                if !rule.base.applies(way) || (way == Way::Write && !writes) {
                    continue;
                }
                for kind in kinds(rule, way).iter().copied() {
                    let side = rule.on.from;
                    let list = &mut routes[way as usize][side as usize][kind as usize];
                    list.entry(name.into()).or_default().push(at);
                    builder(builders, way, side, kind, name).add_rule(rule, &table.shapes, way);
                }
            }
        }
        Self {
            name: table.name.as_str().into(),
            table,
            routes: map_routes(routes, ByMethod::from),
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
        !routes.is_empty()
            && match message.kind {
                Kind::Request | Kind::Notification => routes.contains(message.method.as_bytes()),
                Kind::Result | Kind::Error => {
                    routes.contains(pending.dialect.as_bytes())
                        || routes.contains(pending.canonical.as_bytes())
                        || routes.contains(b"*")
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
        let all = (kind == Kind::Error).then(|| routes.get(b"*")).flatten();
        let found = routes.get(method.as_bytes()).into_iter().chain(all);
        found.flatten().map(|at| &self.table.rules[*at])
    }
}

/// The kinds that a rule's messages have on the side they come from.
fn kinds(rule: &Rule, way: Way) -> &'static [Kind] {
    match (&rule.on.what, rule.on.kinds, way) {
        (Selector::Answers(_), ..) => &[Kind::Result],
        (Selector::ErrorsOf(_), ..) => &[Kind::Error],
        // Some dialects send a notification as a request; it is not answered then.
        (_, Some(KindChange::DialectAsks), Way::Read) => &[Kind::Request, Kind::Notification],
        (_, Some(KindChange::DialectAsks), Way::Write) => &[Kind::Notification],
        _ => &[Kind::Request, Kind::Notification],
    }
}

/// The dialect's name for a call of the agent and the canonical one, where they differ.
fn rename(rule: &Rule) -> Option<(Box<str>, Box<str>)> {
    let (Side::Agent, Selector::Method(names)) = (rule.on.from, &rule.on.what) else {
        return None;
    };
    let (dialect, canonical) = (names.dialect.as_deref()?, names.canonical.as_deref()?);
    (dialect != canonical).then(|| (dialect.into(), canonical.into()))
}

fn map_routes<T, U>(routes: ByRoute<T>, mut make: impl FnMut(T) -> U) -> ByRoute<U> {
    routes.map(|sides| sides.map(|kinds| kinds.map(&mut make)))
}

fn builder<'d>(
    builders: &'d mut Routes<PrefilterBuilder>,
    way: Way,
    side: Side,
    kind: Kind,
    method: &str,
) -> &'d mut PrefilterBuilder {
    let methods = &mut builders[way as usize][side as usize][kind as usize];
    methods.entry(method.into()).or_default()
}

/// Adds the session data that a rule needs besides its own message.
fn add_tracking(rule: &Rule, shapes: &[NamedShape], tracking: &mut Tracking) {
    let shaped = shapes.iter().flat_map(|shape| &shape.cases);
    let cases = std::iter::once(&rule.base).chain(&rule.cases);
    for case in cases.chain(shaped) {
        for action in &case.actions {
            tracking.add(*action);
        }
        let emitted = case.emit.iter().flat_map(|emit: &Emit| &emit.rows);
        if case.rows.iter().chain(emitted).any(recalls_sessions) {
            tracking.add_prompts();
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

/// The slot that every table has: the session whose prompt is in flight.
pub(super) const PROMPTING: &str = "prompting_session";
