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
use super::pointer::JsonPointer;
use super::required_fields;
use super::table::{Expect, Guard, NamedShape, Rule, Way};
use super::text::{self, JsonType};
use super::tree::Node;
use super::value_ref::{ValueRef, may_be_index};
use crate::jsonrpc::{Envelope, Frame};

/// The test for the messages of one kind and method, or for the values at one place.
#[derive(Clone, Debug)]
pub(super) struct Prefilter {
    /// The places that are tested first, and what is required there; every message passes when
    /// `None`.
    first: Option<Vec<RequiredField>>,
    /// The fields that are required, one list for each alternative.
    alternatives: Vec<Vec<Check>>,
}

/// A required field, and the index in `first` of its place, if it is one of those.
#[derive(Clone, Debug)]
struct Check {
    field: RequiredField,
    first: Option<usize>,
}

/// What is required at a place.
pub(super) type RequiredField = (JsonPointer, Required);

/// All fields that one rule requires; the most selective is first.
pub(super) type RequiredFields = Vec<RequiredField>;

/// What is required of a value.
#[derive(Clone, Debug)]
pub(super) enum Required {
    /// One of these strings.
    Strings(Vec<Box<[u8]>>),
    /// A value that meets this guard, or no value where that meets it.
    Meets(Guard),
    /// A value that passes this prefilter.
    Value(Prefilter),
    /// An array with an element that passes this prefilter.
    Elements(Prefilter),
    /// Any value.
    Any,
}

/// Maximum number of places that are tested first; a method that needs more always passes.
const PLACES: usize = 4;

/// Collects what is required.
#[derive(Debug, Default)]
pub(super) struct PrefilterBuilder {
    alternatives: Vec<RequiredFields>,
    /// Whether every message is needed.
    all: bool,
}

impl PrefilterBuilder {
    /// Adds what a rule requires.
    pub(super) fn add_rule(&mut self, rule: &Rule, shapes: &[NamedShape], way: Way) {
        self.alternatives
            .extend(required_fields::of_rule(rule, shapes, way));
    }

    /// Adds messages that meet this guard.
    pub(super) fn add(&mut self, guard: &Guard) {
        self.alternatives.push(required_fields::of_guard(guard));
    }

    /// Adds all messages.
    pub(super) fn add_all(&mut self) {
        self.all = true;
    }

    /// The prefilter that passes whatever one of the alternatives needs.
    pub(super) fn build(self) -> Prefilter {
        let first = if self.all {
            None
        } else {
            self.one_place().or_else(|| self.several_places())
        };
        let at = |place: &JsonPointer| {
            let mut places = first.iter().flatten();
            places.position(|(known, _)| known == place)
        };
        let check = |field: RequiredField| Check {
            first: at(&field.0),
            field,
        };
        let alternatives = self.alternatives.into_iter();
        let alternatives = alternatives.map(|fields| fields.into_iter().map(check).collect());
        Prefilter {
            alternatives: alternatives.collect(),
            first,
        }
    }

    /// One place at which all alternatives require a string.
    fn one_place(&self) -> Option<Vec<RequiredField>> {
        let first = self.alternatives.first().into_iter().flatten();
        first.into_iter().find_map(|(place, _)| {
            let at = |fields: &RequiredFields| {
                let strings = fields
                    .iter()
                    .find(|(own, wanted)| own == place && matches!(wanted, Required::Strings(_)));
                strings.map(|(_, wanted)| wanted.clone())
            };
            let all: Option<Vec<Required>> = self.alternatives.iter().map(at).collect();
            let either = all?.into_iter().reduce(Required::or)?;
            Some(vec![(place.clone(), either)])
        })
    }

    /// The most selective place of each alternative.
    fn several_places(&self) -> Option<Vec<RequiredField>> {
        let mut all: Vec<RequiredField> = Vec::new();
        for fields in &self.alternatives {
            let (place, required) = fields.first()?.clone();
            if required.is_met(None) {
                return None;
            }
            match all.iter().position(|(known, _)| *known == place) {
                Some(at) => {
                    let (place, known) = all.swap_remove(at);
                    all.push((place, known.or(required)));
                }
                None => all.push((place, required)),
            }
        }
        (all.len() <= PLACES).then_some(all)
    }
}

impl Prefilter {
    /// Whether no rule applies to a message, nor to any other with its prefix and no further
    /// members, because of a value in the prefix.
    pub(super) fn rejects_prefix(&self, frame: &Frame, at: &Envelope) -> bool {
        let (Some([(place, required)]), Some(index)) = (self.first.as_deref(), &at.index) else {
            return false;
        };
        let [outer, inner] = place.names() else {
            return false;
        };
        if may_be_index(inner) {
            return false;
        }
        let found = index.last_inner(outer, inner, frame.as_bytes());
        let is_whole = found.is_none_or(|found| found.value.end <= at.prefix.bytes);
        let found = found.map(|found| found.value.of(frame.as_bytes()));
        is_whole && matches!(required, Required::Strings(_)) && !required.is_met(found)
    }

    /// Whether a rule may apply to a message with this body.
    pub(super) fn may_match(&self, body: ValueRef<'_, '_>) -> bool {
        let Some(first) = &self.first else {
            return true;
        };
        let look = |place: &JsonPointer| body.at(place).map(ValueRef::json);
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
        let is_met = |Check { field, first }: &Check| {
            let (place, wanted) = field;
            match first {
                Some(at) => wanted.is_met(found[*at].as_deref()),
                None => wanted.is_met(look(place).as_deref()),
            }
        };
        self.alternatives
            .iter()
            .any(|fields| fields.iter().all(is_met))
    }
}

impl Required {
    /// Combines two requirements: either suffices.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Strings(mut one), Self::Strings(two)) => {
                one.extend(two);
                one.sort_unstable();
                one.dedup();
                Self::Strings(one)
            }
            _ => Self::Any,
        }
    }

    /// Whether a value meets the requirement; `None` when there is no value.
    pub(super) fn is_met(&self, found: Option<&[u8]>) -> bool {
        let Some(found) = found else {
            return matches!(self, Self::Meets(guard) if guard.iter().all(is_met_by_absence));
        };
        match self {
            Self::Any => true,
            Self::Strings(strings) => {
                found.first() == Some(&b'"')
                    && (strings.iter().any(|string| **string == *found)
                        || memchr::memchr(b'\\', found).is_some())
            }
            Self::Meets(guard) => holds(&Node::raw(found), guard),
            Self::Value(gate) => gate.may_match(ValueRef::Raw(found)),
            Self::Elements(gate) => {
                let mut items = text::items(found);
                JsonType::of(found) != JsonType::Array
                    || items.any(|item| gate.may_match(ValueRef::Raw(item)))
            }
        }
    }
}

fn is_met_by_absence((_, expect): &(JsonPointer, Expect)) -> bool {
    matches!(expect, Expect::Absent(true) | Expect::NotIn(_))
}
