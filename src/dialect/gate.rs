//! What a message must contain before a rule may apply to it: a cheap test that skips most
//! messages.
//!
//! ACP distinguishes the variants of `session/update` by one member, and so do most rules: when all
//! rules for a method require a string from a small set at the same place, one lookup of that place
//! excludes all of them. Where they require values at several places, there is one lookup for each.
//! A message that passes is tested for everything that a rule requires. Built once, when a program
//! is compiled, from what `required_fields` finds in the rules.

use smallvec::SmallVec;

use super::guard::holds;
use super::look::{Look, may_be_index};
use super::pointer::Place;
use super::table::{Expect, Guard, Rule, Shape, Way};
use super::text::{self, Type};
use super::tree::Node;
use super::wants;
use crate::jsonrpc::{Envelope, Frame};

/// The test for the messages of one kind and method, or for the values at one place.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    /// The places that are tested first, and what is required there; every message passes when
    /// `None`.
    first: Option<Vec<Key>>,
    /// The fields that are required, one list for each alternative.
    demands: Vec<Vec<Want>>,
}

/// A required field, and the index in `first` of its place, if it is one of those.
#[derive(Clone, Debug)]
struct Want {
    key: Key,
    first: Option<usize>,
}

/// What is required at a place.
pub(super) type Key = (Place, Wanted);

/// All fields that one rule requires; the most selective is first.
pub(super) type Demand = Vec<Key>;

/// What is required of a value.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    /// One of these strings.
    Strings(Vec<Box<[u8]>>),
    /// A value that meets this guard, or no value where that meets it.
    Meets(Guard),
    /// A value that passes this prefilter.
    Value(Gate),
    /// An array with an element that passes this prefilter.
    Elements(Gate),
    /// Any value.
    Something,
}

/// Maximum number of places that are tested first; a method that needs more always passes.
const PLACES: usize = 4;

/// Collects what is required.
#[derive(Debug, Default)]
pub(super) struct Demands {
    demands: Vec<Demand>,
    /// Whether every message is needed.
    all: bool,
}

impl Demands {
    /// Adds what a rule requires.
    pub(super) fn add_rule(&mut self, rule: &Rule, shapes: &[Shape], way: Way) {
        self.demands.extend(wants::of_rule(rule, shapes, way));
    }

    /// Adds messages that meet this guard.
    pub(super) fn add(&mut self, guard: &Guard) {
        self.demands.push(wants::of_guard(guard));
    }

    /// Adds all messages.
    pub(super) fn add_all(&mut self) {
        self.all = true;
    }

    /// The prefilter that passes whatever one of the alternatives needs.
    pub(super) fn gate(self) -> Gate {
        let first = if self.all {
            None
        } else {
            self.one_place().or_else(|| self.several_places())
        };
        let at = |place: &Place| {
            let mut places = first.iter().flatten();
            places.position(|(known, _)| known == place)
        };
        let want = |key: Key| Want {
            first: at(&key.0),
            key,
        };
        let demands = self.demands.into_iter();
        let demands = demands.map(|demand| demand.into_iter().map(want).collect());
        Gate {
            demands: demands.collect(),
            first,
        }
    }

    /// One place at which all alternatives require a string.
    fn one_place(&self) -> Option<Vec<Key>> {
        let first = self.demands.first().into_iter().flatten();
        first.into_iter().find_map(|(place, _)| {
            let at = |demand: &Demand| {
                let strings = demand
                    .iter()
                    .find(|(own, wanted)| own == place && matches!(wanted, Wanted::Strings(_)));
                strings.map(|(_, wanted)| wanted.clone())
            };
            let all: Option<Vec<Wanted>> = self.demands.iter().map(at).collect();
            let either = all?.into_iter().reduce(Wanted::or)?;
            Some(vec![(place.clone(), either)])
        })
    }

    /// The most selective place of each alternative.
    fn several_places(&self) -> Option<Vec<Key>> {
        let mut all: Vec<Key> = Vec::new();
        for demand in &self.demands {
            let (place, wanted) = demand.first()?.clone();
            if wanted.is_met(None) {
                return None;
            }
            match all.iter().position(|(known, _)| *known == place) {
                Some(at) => {
                    let (place, known) = all.swap_remove(at);
                    all.push((place, known.or(wanted)));
                }
                None => all.push((place, wanted)),
            }
        }
        (all.len() <= PLACES).then_some(all)
    }
}

impl Gate {
    /// Whether no rule applies to a message, nor to any other with its prefix and no further
    /// members, because of a value in the prefix.
    pub(super) fn is_shut_by(&self, frame: &Frame, at: &Envelope) -> bool {
        let (Some([(place, wanted)]), Some(outline)) = (self.first.as_deref(), &at.outline) else {
            return false;
        };
        let [outer, inner] = place.names() else {
            return false;
        };
        if may_be_index(inner) {
            return false;
        }
        let found = outline.last_inner(outer, inner, frame.as_bytes());
        let is_whole = found.is_none_or(|found| found.value.end <= at.stem.bytes);
        let found = found.map(|found| found.value.of(frame.as_bytes()));
        is_whole && matches!(wanted, Wanted::Strings(_)) && !wanted.is_met(found)
    }

    /// Whether a rule may apply to a message with this body.
    pub(super) fn lets_in(&self, body: Look<'_, '_>) -> bool {
        let Some(first) = &self.first else {
            return true;
        };
        let look = |place: &Place| body.at(place).map(Look::json);
        // In most cases one place decides.
        if let [(place, wanted)] = &first[..]
            && !wanted.is_met(look(place).as_deref())
        {
            return false;
        }
        let found: SmallVec<[_; PLACES]> = first.iter().map(|(place, _)| look(place)).collect();
        let mut all = first.iter().zip(&found);
        if !all.any(|((_, wanted), found)| wanted.is_met(found.as_deref())) {
            return false;
        }
        let is_met = |Want { key, first }: &Want| {
            let (place, wanted) = key;
            match first {
                Some(at) => wanted.is_met(found[*at].as_deref()),
                None => wanted.is_met(look(place).as_deref()),
            }
        };
        self.demands.iter().any(|demand| demand.iter().all(is_met))
    }
}

impl Wanted {
    /// Combines two requirements: either suffices.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Strings(mut one), Self::Strings(two)) => {
                one.extend(two);
                one.sort_unstable();
                one.dedup();
                Self::Strings(one)
            }
            _ => Self::Something,
        }
    }

    /// Whether a value meets the requirement; `None` when there is no value.
    pub(super) fn is_met(&self, found: Option<&[u8]>) -> bool {
        let Some(found) = found else {
            return matches!(self, Self::Meets(guard) if guard.iter().all(is_met_by_nothing));
        };
        match self {
            Self::Something => true,
            Self::Strings(strings) => {
                found.first() == Some(&b'"')
                    && (strings.iter().any(|string| **string == *found)
                        || memchr::memchr(b'\\', found).is_some())
            }
            Self::Meets(guard) => holds(&Node::raw(found), guard),
            Self::Value(gate) => gate.lets_in(Look::Raw(found)),
            Self::Elements(gate) => {
                let mut items = text::items(found);
                Type::of(found) != Type::Array || items.any(|item| gate.lets_in(Look::Raw(item)))
            }
        }
    }
}

fn is_met_by_nothing((_, expect): &(Place, Expect)) -> bool {
    matches!(expect, Expect::Absent(true) | Expect::NotIn(_))
}
