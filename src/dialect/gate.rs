//! What a message has to show before a rule may be for it.
//!
//! ACP tells the variants of `session/update` apart by one member, and so do most rules: when all
//! rules for a method want a string of some few at the same place, one look at that place tells
//! that none of them is for a message. Where they want something at several places, there is one
//! look for each; a rule that only mends elements of an array wants one that it mends. Made once,
//! when a program is compiled. Not here: the guards themselves (see `guard`).

use super::guard::holds;
use super::pointer::Place;
use super::table::{Case, Conversion, Each, Expect, Guard, Literal, Rest, Rule, Shape, Way};
use super::text::{self, Type};
use super::tree::Node;

/// What is asked of the messages of one kind and method.
#[derive(Debug)]
pub(super) struct Gate {
    /// The places, and what lets a message in there; all come in when `None`.
    keys: Option<Vec<(Place, Wanted)>>,
}

/// What lets a message in.
#[derive(Clone, Debug)]
enum Wanted {
    /// One of these strings.
    Strings(Vec<Box<[u8]>>),
    /// An array with an element that meets one of these guards.
    Elements(Vec<Guard>),
    /// Anything.
    Something,
}

/// Most places that are looked at; a method that takes more is let in.
const PLACES: usize = 4;

/// What is asked, while it is gathered.
#[derive(Debug, Default)]
pub(super) struct Demands {
    /// What has to be there for each rule, what tells most first.
    keys: Vec<Vec<(Place, Wanted)>>,
    /// Whether something is asked of all messages.
    all: bool,
}

impl Demands {
    /// A rule does something to messages that meet its guard, and hold what it maps or mends.
    pub(super) fn add_rule(&mut self, rule: &Rule, shapes: &[Shape], way: Way) {
        let work = mapped(rule, way).or_else(|| mended(rule, shapes, way));
        self.keys.push(keys(rule.base.before(way), work));
    }

    /// Something is for messages that meet this guard.
    pub(super) fn add(&mut self, guard: &Guard) {
        self.keys.push(keys(guard, None));
    }

    /// Something is for all messages.
    pub(super) fn add_all(&mut self) {
        self.all = true;
    }

    /// The places at which something is wanted, rather one for all of them.
    pub(super) fn gate(&self) -> Gate {
        if self.all {
            return Gate { keys: None };
        }
        let first = self.keys.first().into_iter().flatten();
        let one = first.into_iter().find_map(|(place, _)| {
            let at = |keys: &Vec<(Place, Wanted)>| {
                let strings = keys
                    .iter()
                    .find(|(own, wanted)| own == place && matches!(wanted, Wanted::Strings(_)));
                strings.map(|(_, wanted)| wanted.clone())
            };
            let all: Option<Vec<Wanted>> = self.keys.iter().map(at).collect();
            let both = all?.into_iter().reduce(Wanted::or)?;
            Some(vec![(place.clone(), both)])
        });
        let several = || {
            let mut all: Vec<(Place, Wanted)> = Vec::new();
            for keys in &self.keys {
                let (place, wanted) = keys.first()?.clone();
                match all.iter().position(|(known, _)| *known == place) {
                    Some(at) => {
                        let (place, known) = all.swap_remove(at);
                        all.push((place, known.or(wanted)));
                    }
                    None => all.push((place, wanted)),
                }
            }
            (all.len() <= PLACES).then_some(all)
        };
        Gate {
            keys: one.or_else(several),
        }
    }
}

impl Wanted {
    /// Either of both.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Strings(mut one), Self::Strings(two)) => {
                one.extend(two);
                one.sort_unstable();
                one.dedup();
                Self::Strings(one)
            }
            (Self::Elements(one), Self::Elements(two)) => Self::Elements([one, two].concat()),
            _ => Self::Something,
        }
    }

    fn is_met(&self, found: &[u8]) -> bool {
        match self {
            Self::Something => true,
            Self::Strings(strings) => {
                let is_plain = memchr::memchr(b'\\', found).is_none();
                found.first() == Some(&b'"')
                    && (!is_plain || strings.iter().any(|string| **string == *found))
            }
            Self::Elements(guards) => {
                Type::of(found) != Type::Array
                    || text::items(found)
                        .any(|item| guards.iter().any(|guard| holds(&Node::raw(item), guard)))
            }
        }
    }
}

/// What a guard wants, and what the rule's work wants: strings first, else something at all last.
fn keys(guard: &Guard, work: Option<(Place, Wanted)>) -> Vec<(Place, Wanted)> {
    let named = guard.iter().filter_map(|(place, expect)| {
        let strings = strings(expect)?;
        Some((place.clone(), Wanted::Strings(strings)))
    });
    let there = |expect: &Expect| !matches!(expect, Expect::Absent(true) | Expect::NotIn(_));
    let some = guard.iter().filter(|(_, expect)| there(expect));
    let some = some.map(|(place, _)| (place.clone(), Wanted::Something));
    named.chain(work).chain(some).collect()
}

impl Gate {
    /// Whether a rule may be for a message with this body.
    pub(super) fn lets_in(&self, body: &Node<'_>) -> bool {
        let Some(keys) = &self.keys else {
            return true;
        };
        keys.iter().any(|(place, wanted)| {
            let found = body.look(place);
            found.is_some_and(|look| wanted.is_met(&look.json()))
        })
    }
}

/// What a message has to hold if all that a rule does is to map the value at one place.
fn mapped(rule: &Rule, way: Way) -> Option<(Place, Wanted)> {
    let (place, conversion) = only_row(rule)?;
    let Conversion::Values {
        both,
        read,
        write,
        other: None,
        park: false,
    } = conversion
    else {
        return None;
    };
    let extra = if way == Way::Read { read } else { write };
    let from = |(dialect, canonical): &(Literal, Literal)| match way {
        Way::Read => dialect.clone(),
        Way::Write => canonical.clone(),
    };
    let all = both.iter().chain(extra).map(from).collect();
    let wanted = strings(&Expect::In(all)).map_or(Wanted::Something, Wanted::Strings);
    Some((place.clone(), wanted))
}

/// The array of which a rule mends elements, if that is all it does, and what it mends.
fn mended(rule: &Rule, shapes: &[Shape], way: Way) -> Option<(Place, Wanted)> {
    let (place, Conversion::Each(Each::Shape(name))) = only_row(rule)? else {
        return None;
    };
    let shape = shapes.iter().find(|shape| shape.name == *name)?;
    let mut guards = Vec::new();
    for case in shape.cases.iter().filter(|case| case.works(way)) {
        let guard = case.before(way);
        match guard.is_empty() {
            false => guards.push(guard.clone()),
            // What is left alone needs no look.
            true if is_idle(case) => {}
            true => return None,
        }
    }
    Some((place.clone(), Wanted::Elements(guards)))
}

/// The place at which a rule converts, if it has one row that stays at its place and does nothing
/// besides.
fn only_row(rule: &Rule) -> Option<(&Place, &Conversion)> {
    let [row] = &rule.base.rows[..] else {
        return None;
    };
    let [conversion] = &row.convert[..] else {
        return None;
    };
    let builds = |guard: &Guard| {
        let mut all = guard.iter();
        all.any(|(_, expect)| matches!(expect, Expect::Const(_)))
    };
    let names = rule.on.what.names();
    let more = [&rule.base.dialect, &rule.base.canonical]
        .into_iter()
        .any(builds)
        || !rule.cases.is_empty()
        || names.dialect != names.canonical
        || rule.on.kinds.is_some()
        || rule.split.is_some();
    let plain = row.dialect == row.canonical && row.fill.is_none() && row.drop.is_none();
    (!more && plain && does_nothing_but_rows(&rule.base))
        .then_some(())
        .and(row.dialect.as_ref())
        .map(|place| (place, conversion))
}

/// Whether a case leaves a value as it is.
fn is_idle(case: &Case) -> bool {
    case.rows.is_empty()
        && case.dialect.is_empty()
        && case.canonical.is_empty()
        && does_nothing_but_rows(case)
}

fn does_nothing_but_rows(case: &Case) -> bool {
    matches!(
        case,
        Case {
            rest: Rest::Keep,
            answer: None,
            fail: None,
            refuse: None,
            drop: None,
            emit,
            actions,
            ..
        } if emit.is_empty() && actions.is_empty()
    )
}

/// The strings that an expectation is met by, if those are all.
fn strings(expect: &Expect) -> Option<Vec<Box<[u8]>>> {
    let literals = match expect {
        Expect::Const(literal) => std::slice::from_ref(literal),
        Expect::In(literals) => literals,
        _ => return None,
    };
    let plain = |Literal(json): &Literal| {
        let is_plain = Type::of(json) == Type::String && !json.contains(&b'\\');
        is_plain.then(|| json.clone())
    };
    literals.iter().map(plain).collect()
}
