//! What a message has to show before a rule may be for it.
//!
//! ACP tells the variants of `session/update` apart by one member, and so do most rules: when all
//! rules for a method want a string of some few at the same place, one look at that place tells
//! that none of them is for a message. Where they want something at several places, there is one
//! look for each. Made once, when a program is compiled. Not here: the guards themselves (see
//! `guard`).

use super::pointer::Place;
use super::table::{Case, Conversion, Expect, Guard, Literal, Rest, Rule, Way};
use super::text;
use super::tree::Node;

/// What is asked of the messages of one kind and method.
#[derive(Debug)]
pub(super) struct Gate {
    /// The places, and what lets a message in there; all come in when `None`.
    keys: Option<Vec<(Place, Wanted)>>,
}

/// What lets a message in.
#[derive(Debug)]
enum Wanted {
    /// One of these strings.
    Strings(Vec<Box<[u8]>>),
    /// Anything.
    Something,
}

/// Most places that are looked at; a method that takes more is let in.
const PLACES: usize = 4;

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

    /// The places at which the guards want something, rather one for all of them.
    pub(super) fn gate(&self) -> Gate {
        if self.all {
            return Gate { keys: None };
        }
        let candidates = self.guards.first().into_iter().flatten();
        let one = candidates.into_iter().find_map(|(place, _)| {
            let all: Option<Vec<_>> = self.guards.iter().map(|guard| at(guard, place)).collect();
            Some(vec![(place.clone(), all?.concat())])
        });
        let several = || {
            let mut keys: Vec<(Place, Vec<Box<[u8]>>)> = Vec::new();
            for guard in &self.guards {
                let (place, strings) = key(guard)?;
                match keys.iter_mut().find(|(known, _)| *known == place) {
                    // Anything at this place lets in already, or does now.
                    Some((_, known)) if known.is_empty() || strings.is_empty() => known.clear(),
                    Some((_, known)) => known.extend(strings),
                    None => keys.push((place, strings)),
                }
            }
            (keys.len() <= PLACES).then_some(keys)
        };
        let keys = one.or_else(several).map(|keys| {
            let wanted = keys.into_iter().map(|(place, mut strings)| {
                strings.sort_unstable();
                strings.dedup();
                let something = strings.is_empty();
                let wanted = if something {
                    Wanted::Something
                } else {
                    Wanted::Strings(strings)
                };
                (place, wanted)
            });
            wanted.collect()
        });
        Gate { keys }
    }
}

/// The strings that a guard wants at a place, if that is what it wants there.
fn at(guard: &Guard, place: &Place) -> Option<Vec<Box<[u8]>>> {
    let mut wanted = guard.iter().filter(|(own, _)| own == place);
    wanted.find_map(|(_, expect)| strings(expect))
}

/// A place at which a guard wants some strings, else one at which it wants something at all; then
/// there are no strings.
fn key(guard: &Guard) -> Option<(Place, Vec<Box<[u8]>>)> {
    let named = guard
        .iter()
        .find_map(|(place, expect)| Some((place.clone(), strings(expect)?)));
    let there = |expect: &Expect| !matches!(expect, Expect::Absent(true) | Expect::NotIn(_));
    named.or_else(|| {
        let mut found = guard.iter().filter(|(_, expect)| there(expect));
        found.next().map(|(place, _)| (place.clone(), Vec::new()))
    })
}

impl Gate {
    /// Whether a rule may be for a message with this body.
    pub(super) fn lets_in(&self, body: &Node<'_>) -> bool {
        let Some(keys) = &self.keys else {
            return true;
        };
        keys.iter().any(|(place, wanted)| {
            let Some(look) = body.look(place) else {
                return false;
            };
            let Wanted::Strings(strings) = wanted else {
                return true;
            };
            let found = look.json();
            let is_plain = memchr::memchr(b'\\', &found).is_none();
            found.first() == Some(&b'"')
                && (!is_plain || strings.iter().any(|string| **string == *found))
        })
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
