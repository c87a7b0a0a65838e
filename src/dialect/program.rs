//! A stack of tables, compiled once: the rules for a message are found by one lookup.
//!
//! The stack is flattened when it is loaded: the dialect's own table first, then those it extends.
//! Reading goes down the stack, from the dialect to canonical; writing goes up. A message without a
//! rule costs one lookup by its method and no allocation, however many tables there are. Where its
//! method has rules, their guards mostly require words at one place; if the message has another word
//! there, no guard is tested (`required_words`).

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use super::guard::GuardTest;
use super::message;
use super::methods::{self, METHODS};
use super::required_words::RequiredWords;
use super::table::{
    Case, Guard, IdKind, Jsonrpc, KindChange, MessageFilter, PROMPTING, Params, Row, Rule,
    Selector, Slot, Table, Way,
};
use super::template::reads_text;
use jsonrpc::{Envelope, Frame, Kind, Side};

/// One dialect, compiled.
#[derive(Debug, Default)]
pub struct Program {
    pub(super) layers: Vec<Layer>,
    /// By way, sending side and kind.
    routes: [[[MethodRoutes; 4]; 2]; 2],
    pub(super) memory: BTreeMap<String, Slot>,
    /// Methods of the agent that have another name in the dialect: by that name, the canonical
    /// method that a client with the dialect takes them for.
    renamed: HashMap<Box<[u8]>, Box<str>>,
    /// Whether a rule depends on the state of a session.
    pub(super) follows_sessions: bool,
    /// Whether a guard may depend on the text of a message.
    pub(super) reads_text: bool,
}

/// Routes by method.
#[derive(Debug, Default)]
struct MethodRoutes {
    /// By the number of the canonical method.
    canonical: [Option<Box<Route>>; METHODS],
    /// Of other methods; `*` is every method.
    other: BTreeMap<Box<[u8]>, Route>,
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
}

/// A rule that was applied.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FiredRule {
    /// Its table.
    pub dialect: Arc<str>,
    /// Its id.
    pub rule: Arc<str>,
}

/// What concerns the messages of one way, side, kind and method.
#[derive(Debug, Default)]
struct Route {
    /// The rules: indexes of a layer, and of a rule in its table.
    rules: Vec<(usize, usize)>,
    /// The guards of these rules, and of slots: one must hold.
    guards: Vec<Guard>,
    words: Option<RequiredWords>,
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
        let mut program = Self::default();
        for StackEntry { table, writes } in stack {
            for (name, slot) in &table.memory {
                let slots = program.memory.entry(name.clone());
                slots.or_insert_with(|| slot.clone());
            }
            for (at, rule) in table.rules.iter().enumerate() {
                program.add_rule(at, rule, writes);
            }
            let cases = table.rules.iter().flat_map(Rule::all_cases);
            let mut cases = cases.chain(table.shapes.values().flatten());
            program.follows_sessions |= cases.any(follows_sessions);
            drop(cases);
            let name = table.name.as_str().into();
            program.layers.push(Layer { table, name });
        }
        // Where something is remembered, requests and answers are looked at in any case.
        for slot in program.memory.clone().into_values() {
            if let Selector::Method(names) = &slot.on.what
                && let Some(name) = &names.canonical
            {
                for way in Way::BOTH {
                    let route = program.route_mut(way, slot.on.from, Kind::Notification, name);
                    route.guards.push(slot.when.clone());
                }
            }
        }
        let methods = program.routes.iter_mut().flatten().flatten();
        for route in methods.flat_map(MethodRoutes::all_mut) {
            program.reads_text |= route.guards.iter().any(reads_text);
            route.words = RequiredWords::of(&route.guards);
        }
        program
    }

    fn add_rule(&mut self, at: usize, rule: &Rule, writes: bool) {
        let layer = self.layers.len();
        let names = rule.on.what.names();
        for way in Way::BOTH {
            let applies = rule.base.applies(way) && (way == Way::Read || writes);
            for kind in kinds(&rule.on, way) {
                if let Some(name) = names.before(way).filter(|_| applies) {
                    let route = self.route_mut(way, rule.on.from, *kind, name);
                    route.rules.push((layer, at));
                    route.guards.push(Guard(rule.base.before(way).to_vec()));
                }
            }
        }
        if let (Side::Agent, Selector::Method(_)) = (rule.on.from, &rule.on.what)
            && let (Some(dialect), Some(canonical)) = (&names.dialect, &names.canonical)
            && dialect != canonical
        {
            let dialect = dialect.as_bytes().into();
            self.renamed.insert(dialect, canonical.as_str().into());
        }
    }

    fn route_mut(&mut self, way: Way, from: Side, kind: Kind, method: &str) -> &mut Route {
        let routes = &mut self.routes[way as usize][from as usize][kind as usize];
        match methods::number(method.as_bytes()) {
            Some(number) => routes.canonical[number].get_or_insert_default(),
            None => routes.other.entry(method.as_bytes().into()).or_default(),
        }
    }

    fn routes(
        &self,
        way: Way,
        from: Side,
        kind: Kind,
        method: &[u8],
    ) -> impl Iterator<Item = &Route> {
        let routes = &self.routes[way as usize][from as usize][kind as usize];
        let own = match methods::number(method) {
            Some(number) => routes.canonical[number].as_deref(),
            None => routes.other.get(method),
        };
        let all = (kind == Kind::Error).then(|| routes.other.get(&b"*"[..]));
        own.into_iter().chain(all.flatten())
    }

    /// Whether a rule may apply to such a message, or a value of it is remembered.
    pub(super) fn may_concern(
        &self,
        (way, from): (Way, Side),
        method: &[u8],
        frame: &Frame,
        at: &Envelope,
    ) -> bool {
        let mut routes = self.routes(way, from, at.kind, method);
        routes.any(|route| route.may_concern(frame, at))
    }

    /// The rules of one layer for such a message.
    pub(super) fn rules(
        &self,
        layer: usize,
        way: Way,
        from: Side,
        kind: Kind,
        method: &str,
    ) -> impl Iterator<Item = &Rule> {
        let routes = self.routes(way, from, kind, method.as_bytes());
        let own = routes.flat_map(|route| &route.rules);
        let own = own.filter(move |(at, _)| *at == layer);
        own.map(|(layer, rule)| &self.layers[*layer].table.rules[*rule])
    }

    /// The dialect's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.table().map_or("", |table| &table.name)
    }

    /// The canonical method that a client takes a call of the agent for which has the dialect's
    /// name of that method, and so passes without a rule. Every table of the stack counts, and
    /// guards are ignored.
    pub(super) fn canonical_call(&self, method: &str) -> Option<&str> {
        self.renamed.get(method.as_bytes()).map(|name| &**name)
    }

    /// Whether anything of a conversation is remembered besides requests in flight.
    pub(super) fn remembers(&self) -> bool {
        self.follows_sessions || !self.memory.is_empty()
    }

    /// Whether nothing is ever changed: the dialect is canonical.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layers.iter().all(|layer| layer.table.rules.is_empty()) && !self.strips_jsonrpc()
    }

    /// The dialect's own table.
    pub(super) fn table(&self) -> Option<&Table> {
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
        self.table()
            .is_some_and(|table| table.params == Params::Always)
    }

    pub(super) fn int_ids(&self) -> bool {
        self.table().is_some_and(|table| table.ids == IdKind::Int32)
    }
}

impl MethodRoutes {
    fn all_mut(&mut self) -> impl Iterator<Item = &mut Route> {
        let canonical = self
            .canonical
            .iter_mut()
            .flatten()
            .map(|route| &mut **route);
        canonical.chain(self.other.values_mut())
    }
}

impl Route {
    fn may_concern(&self, frame: &Frame, at: &Envelope) -> bool {
        let words = self.words.as_ref();
        let known = words.and_then(|words| words.may_hold(&self.guards, frame, at));
        known.unwrap_or_else(|| {
            let body = message::body(frame, at);
            let mut test = GuardTest::new(&body);
            self.guards.iter().any(|guard| test.holds(&guard.0))
        })
    }
}

/// The kinds that the messages have on the side they come from.
fn kinds(on: &MessageFilter, way: Way) -> &'static [Kind] {
    match (&on.what, on.kinds, way) {
        (Selector::Answers(_), ..) => &[Kind::Result],
        (Selector::ErrorsOf(_), ..) => &[Kind::Error],
        (_, Some(KindChange::DialectAsks), Way::Write) => &[Kind::Notification],
        // Some dialects send a notification as a request; it is not answered then.
        _ => &[Kind::Request, Kind::Notification],
    }
}

fn follows_sessions(case: &Case) -> bool {
    let emitted = case.emit.iter().flat_map(|emit| &emit.rows);
    case.actions.iter().any(|action| action.follows_sessions())
        || case.rows.iter().chain(emitted).any(recalls_prompting)
}

fn recalls_prompting(row: &Row) -> bool {
    let own = row.recall.as_ref();
    let inner = row.inner_rows().into_iter().flatten();
    own.is_some_and(|recall| recall.slot == PROMPTING) || inner.into_iter().any(recalls_prompting)
}
