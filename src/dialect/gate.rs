//! What a message has to show before a rule may be for it.
//!
//! ACP tells the variants of `session/update` apart by one member, and so do most rules: when all
//! rules for a method want a string of some few at the same place, one look at that place tells
//! that none of them is for a message. Made once, when a program is compiled. Not here: the guards
//! themselves (see `guard`).

use super::pointer::Place;
use super::table::{Case, Conversion, Expect, Guard, Literal, Rest, Rule, Way};
use super::text;
use super::tree::Node;

/// What is asked of the messages of one kind and method.
#[derive(Debug)]
pub(super) struct Gate {
    /// The place, and the strings there with which a message comes in; all do when `None`.
    key: Option<(Place, Vec<Box<[u8]>>)>,
}

/// What is asked, while it is gathered.
#[derive(Debug, Default)]
pub(super) struct Demands {
    guards: Vec<Guard>,
    /// Whether something is asked of all messages.
    all: bool,
}

impl Demands {
    /// A rule does something to messages that meet its guard, or hold what it maps.
    pub(super) fn add_rule(&mut self, rule: &Rule, way: Way) {
        let guard = rule.base.before(way);
        self.guards
            .push(mapped(rule, way).unwrap_or_else(|| guard.clone()));
    }

    /// Something is for messages that meet this guard.
    pub(super) fn add(&mut self, guard: &Guard) {
        self.guards.push(guard.clone());
    }

    /// Something is for all messages.
    pub(super) fn add_all(&mut self) {
        self.all = true;
    }

    /// The place at which all guards want a string, if there is one.
    pub(super) fn gate(&self) -> Gate {
        let candidates = self.guards.first().into_iter().flatten();
        let key = candidates.filter(|_| !self.all).find_map(|(place, _)| {
            let strings = |guard: &Guard| {
                let mut wanted = guard.iter().filter(|(own, _)| own == place);
                wanted.find_map(|(_, expect)| strings(expect))
            };
            let all: Option<Vec<_>> = self.guards.iter().map(strings).collect();
            let mut all = all?.concat();
            all.sort_unstable();
            all.dedup();
            Some((place.clone(), all))
        });
        Gate { key }
    }
}

impl Gate {
    /// Whether a rule may be for a message with this body.
    pub(super) fn lets_in(&self, body: &Node<'_>) -> bool {
        let Some((place, strings)) = &self.key else {
            return true;
        };
        let Some(look) = body.look(place) else {
            return false;
        };
        let found = look.json();
        let is_plain = memchr::memchr(b'\\', &found).is_none();
        found.first() == Some(&b'"')
            && (!is_plain || strings.iter().any(|string| **string == *found))
    }
}

/// What a message has to hold if all that a rule does is to map the value at one place.
fn mapped(rule: &Rule, way: Way) -> Option<Guard> {
    let Case {
        dialect,
        canonical,
        only: _,
        lossy: _,
        rows,
        rest: Rest::Keep,
        emit,
        answer: None,
        fail: None,
        refuse: None,
        drop: None,
        actions,
    } = &rule.base
    else {
        return None;
    };
    let names = rule.on.what.names();
    let more = [dialect, canonical].iter().any(|guard| !guard.is_empty())
        || !(rule.cases.is_empty() && emit.is_empty() && actions.is_empty())
        || names.dialect != names.canonical
        || rule.on.kinds.is_some()
        || rule.split.is_some();
    let [row] = &rows[..] else { return None };
    let [
        Conversion::Values {
            both,
            read,
            write,
            other: None,
            park: false,
        },
    ] = &row.convert[..]
    else {
        return None;
    };
    if more || row.dialect != row.canonical || row.fill.is_some() || row.drop.is_some() {
        return None;
    }
    let extra = if way == Way::Read { read } else { write };
    let from = |(dialect, canonical): &(Literal, Literal)| match way {
        Way::Read => dialect.clone(),
        Way::Write => canonical.clone(),
    };
    let all = both.iter().chain(extra).map(from).collect();
    Some(vec![(row.dialect.clone()?, Expect::In(all))])
}

/// The strings that an expectation is met by, if those are all.
fn strings(expect: &Expect) -> Option<Vec<Box<[u8]>>> {
    let literals = match expect {
        Expect::Const(literal) => std::slice::from_ref(literal),
        Expect::In(literals) => literals,
        _ => return None,
    };
    let plain = |Literal(json): &Literal| {
        let is_plain = text::Type::of(json) == text::Type::String && !json.contains(&b'\\');
        is_plain.then(|| json.clone())
    };
    literals.iter().map(plain).collect()
}
