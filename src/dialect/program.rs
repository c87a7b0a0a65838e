//! A stack of tables, compiled once: the rules for a message are found by one lookup.
//!
//! The stack is flattened when it is loaded: the dialect's own table first, then those it extends.
//! Reading goes down the stack, from the dialect to canonical; writing goes up. A message without a
//! rule costs one lookup by its method and one in its body, and no allocation, however many tables
//! there are.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::asked::Asked;
use super::by_method::ByMethod;
use super::gate::{Demands, Gate};
use super::message::Message;
use super::sessions::Watch;
use super::table::{
    Conversion, Each, Emit, Fill, Jsonrpc, Kinds, Memory, Row, Rule, Selector, Shape, Table, Way,
};
use crate::jsonrpc::{Kind, Side};

/// A value for each way, sending side and kind.
type Cells<T> = [[[T; 4]; 2]; 2];

/// The same by method as well, while it is collected.
type Routes<T> = Cells<HashMap<Box<str>, T>>;

/// One dialect, compiled.
#[derive(Debug)]
pub struct Program {
    pub(super) layers: Vec<Layer>,
    /// What a message must contain before a layer may apply to it, or a value of it is remembered.
    gates: Cells<ByMethod<Gate>>,
    pub(super) memory: Vec<Memory>,
    /// Methods of the agent that have another name in the dialect: by that name, the canonical
    /// method that a client with the dialect takes them for.
    renamed: ByMethod<Box<str>>,
    /// What must be tracked of sessions.
    pub(super) watch: Watch,
}

/// A table in a stack.
#[derive(Clone, Debug)]
pub struct Storey {
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
    routes: Cells<ByMethod<Vec<usize>>>,
}

/// A rule that was applied.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fired {
    /// Its table.
    pub dialect: Arc<str>,
    /// Its id.
    pub rule: Arc<str>,
}

impl fmt::Display for Fired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.dialect, self.rule)
    }
}

impl Program {
    /// Compiles a stack; the dialect's own table is first.
    #[must_use]
    pub fn new(stack: Vec<Storey>) -> Self {
        let mut demands: Routes<Demands> = Routes::default();
        let mut layers = Vec::new();
        let mut memory: Vec<Memory> = Vec::new();
        let mut watch = Watch::default();
        let mut renamed = HashMap::new();
        for Storey { table, writes } in stack {
            for slot in &table.memory {
                if !memory.iter().any(|known| known.name == slot.name) {
                    memory.push(slot.clone());
                }
            }
            for rule in &table.rules {
                needs(rule, &table.shapes, &mut watch);
                renamed.extend(rename(rule));
            }
            layers.push(Layer::new(table, writes, &mut demands));
        }
        for Memory { slot, .. } in &memory {
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
                    demand(&mut demands, way, on.from, kind, name).add(&slot.when);
                }
            }
        }
        for way in [Way::Read, Way::Write] {
            watch.demand(|side, kind, method, guard| {
                let demands = demand(&mut demands, way, side, kind, method);
                match guard {
                    Some(guard) => demands.add(&guard),
                    None => demands.add_all(),
                }
            });
        }
        let gates = |methods: HashMap<_, Demands>| {
            let gates = methods.into_iter().map(|(name, all)| (name, all.gate()));
            ByMethod::from(gates.collect::<HashMap<_, _>>())
        };
        Self {
            layers,
            gates: each_cell(demands, gates),
            memory,
            renamed: renamed.into(),
            watch,
        }
    }

    /// The dialect's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.layers.first().map_or("", |layer| &layer.table.name)
    }

    /// The prefilter for such a message; `None` when no rule applies to it. This is the one lookup.
    pub(super) fn gate(&self, way: Way, from: Side, kind: Kind, method: &[u8]) -> Option<&Gate> {
        let gates = &self.gates[way as usize][from as usize][kind as usize];
        gates.get(method).or_else(|| {
            let all = (kind == Kind::Error).then(|| gates.get(b"*"));
            all.flatten()
        })
    }

    /// The canonical method that a client takes a call of the agent for which has the dialect's
    /// name of that method, and so passes without a rule. Every table of the stack counts, and
    /// guards are ignored.
    pub(super) fn renames(&self, method: &str) -> Option<&str> {
        self.renamed.get(method.as_bytes()).map(|name| &**name)
    }

    /// Whether messages of that kind are never changed or remembered.
    pub(super) fn ignores(&self, way: Way, from: Side, kind: Kind) -> bool {
        let gates = &self.gates[way as usize][from as usize][kind as usize];
        gates.is_empty() && !self.watch.any() && (way == Way::Read || !self.strips())
    }

    /// Whether anything of a conversation is remembered besides requests in flight.
    pub(super) fn remembers(&self) -> bool {
        self.watch.any() || !self.memory.is_empty()
    }

    /// Whether nothing is ever changed: the dialect is canonical.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layers.iter().all(|layer| layer.table.rules.is_empty()) && !self.strips()
    }

    pub(super) fn jsonrpc(&self) -> &Jsonrpc {
        self.layers
            .first()
            .map_or(&Jsonrpc::Always, |layer| &layer.table.jsonrpc)
    }

    /// Whether some messages are written without the member `jsonrpc`.
    pub(super) fn strips(&self) -> bool {
        *self.jsonrpc() != Jsonrpc::Always
    }

    /// Whether requests are written with `params` even if these are empty.
    pub(super) fn wants_params(&self) -> bool {
        self.layers.first().is_some_and(|layer| layer.table.params)
    }

    pub(super) fn int_ids(&self) -> bool {
        self.layers.first().is_some_and(|layer| layer.table.int_ids)
    }
}

impl Layer {
    /// Adds one table, and what its rules require of messages.
    fn new(table: Arc<Table>, writes: bool, demands: &mut Routes<Demands>) -> Self {
        let mut routes: Routes<Vec<usize>> = Routes::default();
        for (at, rule) in table.rules.iter().enumerate() {
            for way in [Way::Read, Way::Write] {
                let Some(name) = rule.on.what.names().before(way) else {
                    continue;
                };
                if !rule.base.works(way) || (way == Way::Write && !writes) {
                    continue;
                }
                for kind in kinds(rule, way).iter().copied() {
                    let side = rule.on.from;
                    let list = &mut routes[way as usize][side as usize][kind as usize];
                    list.entry(name.into()).or_default().push(at);
                    demand(demands, way, side, kind, name).add_rule(rule, &table.shapes, way);
                }
            }
        }
        Self {
            name: table.name.as_str().into(),
            table,
            routes: each_cell(routes, ByMethod::from),
        }
    }

    /// Whether there is a rule for such a message.
    pub(super) fn meets(&self, way: Way, from: Side, message: &Message<'_>, asked: &Asked) -> bool {
        let routes = &self.routes[way as usize][from as usize][message.kind as usize];
        !routes.is_empty()
            && match message.kind {
                Kind::Request | Kind::Notification => routes.has(message.method.as_bytes()),
                Kind::Result | Kind::Error => {
                    routes.has(asked.dialect.as_bytes())
                        || routes.has(asked.canonical.as_bytes())
                        || routes.has(b"*")
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
        (_, Some(Kinds::DialectAsks), Way::Read) => &[Kind::Request, Kind::Notification],
        (_, Some(Kinds::DialectAsks), Way::Write) => &[Kind::Notification],
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

fn each_cell<T, U>(cells: Cells<T>, mut make: impl FnMut(T) -> U) -> Cells<U> {
    cells.map(|sides| sides.map(|kinds| kinds.map(&mut make)))
}

fn demand<'d>(
    demands: &'d mut Routes<Demands>,
    way: Way,
    side: Side,
    kind: Kind,
    method: &str,
) -> &'d mut Demands {
    let methods = &mut demands[way as usize][side as usize][kind as usize];
    methods.entry(method.into()).or_default()
}

/// Adds what a rule needs to know of sessions besides its own message.
fn needs(rule: &Rule, shapes: &[Shape], watch: &mut Watch) {
    let shaped = shapes.iter().flat_map(|shape| &shape.cases);
    let cases = std::iter::once(&rule.base).chain(&rule.cases);
    for case in cases.chain(shaped) {
        for action in &case.actions {
            watch.add(*action);
        }
        let emitted = case.emit.iter().flat_map(|emit: &Emit| &emit.rows);
        if case.rows.iter().chain(emitted).any(recalls_sessions) {
            watch.add_prompts();
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
