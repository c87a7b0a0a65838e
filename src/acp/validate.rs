//! Checks a value against a node of the schema, and records every violation.
//!
//! A general validator reports "matches none of the variants" and has no term for an unnamed
//! member. This one supports the part of JSON Schema that the published file uses, and its reports
//! say what to correct.

use serde_json::{Map, Value};

use super::phrase::{expectation, similar};
use super::schema::{Node, Schema, Types};
use super::union::{self, Choice, Mismatch};
use super::violation::truncate;
use super::{Consequence, Violation, ViolationKind};

/// The validation of one value.
#[derive(Debug)]
pub(super) struct Validator {
    schema: Schema,
    /// The current position, as a JSON Pointer.
    pointer: String,
    /// Whether an enclosing schema requires a reader to ignore what is wrong here.
    lenient: bool,
    pub(super) found: Vec<Violation>,
}

/// What is known of an object's members once all parts of its schema were read.
#[derive(Debug, Default)]
struct Members {
    named: Vec<Member>,
    /// The names of the required members, and whether a reader can do without.
    required: Vec<(&'static str, bool)>,
    /// Whether the schema part being read belongs to a variant that a reader can do without.
    lenient: bool,
    /// The schema of members without a name of their own, if any are allowed.
    rest: Option<Node>,
    /// No variant was found, so any member may belong to it.
    unsure: bool,
    /// The definition that was read last, which is the most specific one.
    name: Option<&'static str>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    name: &'static str,
    node: Node,
    lenient: bool,
}

impl Validator {
    /// A validator that starts at `pointer` of a message.
    pub(super) fn at(schema: Schema, pointer: &str) -> Self {
        Self {
            schema,
            pointer: pointer.to_owned(),
            lenient: false,
            found: Vec::new(),
        }
    }

    /// Checks `value` against the definition of that name.
    pub(super) fn definition(mut self, value: &Value, name: &str) -> Vec<Violation> {
        self.value(value, self.schema.named(name));
        self.found
    }

    /// Whether that definition requires no member.
    pub(super) fn optional(&self, name: &str) -> bool {
        let node = self.schema.named(name);
        node.required().next().is_none() && node.variants().is_empty()
    }

    fn value(&mut self, value: &Value, node: Node) {
        let lenient = node.marked("x-deserialize-default-on-error")
            || (node.marked("x-deserialize-default-on-null") && value.is_null());
        self.within(None, lenient, |walk| walk.resolved(value, node));
    }

    fn resolved(&mut self, value: &Value, wanted_node: Node) {
        let node = wanted_node.resolve();
        let members = value.as_object();
        let is_named = members.is_some_and(|members| union::named(node, members).is_some());
        if !is_named && !node.types().admit(Types::of(value)) {
            let expected = expectation(wanted_node);
            return self.refuse(ViolationKind::WrongType, Some(value), expected);
        }
        match value {
            Value::Object(members) => self.object(members, node),
            _ if !node.variants().is_empty() => self.union(value, node),
            Value::Array(items) => self.array(items, node),
            _ => self.scalar(value, node),
        }
    }

    fn array(&mut self, items: &[Value], node: Node) {
        let Some(schema) = node.at.get("items") else {
            return;
        };
        let lenient = node.marked("x-deserialize-skip-invalid-items");
        for (index, item) in items.iter().enumerate() {
            let step = index.to_string();
            self.within(Some(&step), lenient, |walk| {
                walk.value(item, node.within(schema))
            });
        }
    }

    fn scalar(&mut self, value: &Value, node: Node) {
        if let Some(constant) = node.at.get("const")
            && constant != value
        {
            self.refuse(
                ViolationKind::UnknownValue,
                Some(value),
                constant.to_string(),
            );
        }
        if let Some(expected) = bounds(value, node) {
            self.refuse(ViolationKind::OutOfRange, Some(value), expected);
        }
    }

    /// Checks a union of values that are not objects.
    fn union(&mut self, value: &Value, node: Node) {
        match union::choose(node, value) {
            Choice::One(variant) | Choice::Prefer(variant, _) => self.value(value, variant),
            Choice::Try(variants) => self.try_variants(value, node, &variants),
            Choice::Untagged(variant, mismatch) => {
                self.add_mismatch(mismatch, None);
                self.value(value, variant);
            }
            Choice::None(mismatch) => self.add_mismatch(mismatch, None),
        }
    }

    /// Takes the variant with the fewest violations.
    fn try_variants(&mut self, value: &Value, node: Node, variants: &[Node]) {
        let constants = super::phrase::constants(node);
        let mut best: Option<Vec<Violation>> = None;
        for variant in variants {
            let mut walk = Self {
                lenient: self.lenient,
                ..Self::at(self.schema, &self.pointer)
            };
            walk.value(value, *variant);
            let cost = |found: &[Violation]| {
                let refused = found
                    .iter()
                    .filter(|one| one.consequence == Consequence::Refused);
                (refused.count(), found.len())
            };
            if best
                .as_ref()
                .is_none_or(|best| cost(&walk.found) < cost(best))
            {
                best = Some(walk.found);
            }
        }
        let best = best.unwrap_or_default();
        if best.is_empty() || constants.is_empty() {
            self.found.extend(best);
        } else {
            let expected = super::phrase::choice(&constants);
            self.refuse(ViolationKind::UnknownValue, Some(value), expected);
        }
    }

    fn object(&mut self, members: &Map<String, Value>, node: Node) {
        let mut known = Members::default();
        self.gather(members, node, &mut known);
        for (name, value) in members {
            let mut named = false;
            for member in known.named.iter().filter(|member| member.name == name) {
                named = true;
                self.within(Some(name), member.lenient, |walk| {
                    walk.value(value, member.node)
                });
            }
            match known.rest {
                _ if named || name == "_meta" || known.unsure => {}
                Some(rest) => self.within(Some(name), false, |walk| walk.value(value, rest)),
                None => {
                    let expected = unknown_member(name, &known);
                    self.within(Some(name), true, |walk| {
                        walk.refuse(ViolationKind::UnknownMember, Some(value), expected);
                    });
                }
            }
        }
        for (name, lenient) in &known.required {
            if members.contains_key(*name) {
                continue;
            }
            let member = known.named.iter().find(|member| member.name == *name);
            let mut expected = member.map_or_else(|| "it".to_owned(), |it| expectation(it.node));
            if let Some(owner) = known.name {
                expected.push_str(&format!(", in {owner}"));
            }
            self.within(Some(name), *lenient, |walk| {
                walk.refuse(ViolationKind::MissingMember, None, expected);
            });
        }
    }

    /// Reads all parts of an object's schema: its own members, those of `allOf`, and those of the
    /// variant that `members` match.
    fn gather(&mut self, members: &Map<String, Value>, node: Node, known: &mut Members) {
        let node = node.resolve();
        known.name = node.name;
        let lenient = known.lenient;
        known.named.extend(node.members().map(|(name, at)| Member {
            name,
            node: node.within(at),
            lenient,
        }));
        known
            .required
            .extend(node.required().map(|name| (name, lenient)));
        let rest = node.at.get("additionalProperties");
        if let Some(rest) = rest.or_else(|| node.at.get("unevaluatedProperties")) {
            known.rest = Some(node.within(rest));
        } else if node.at.get("type").is_none() && node.members().next().is_none() {
            // A schema without content allows everything.
            let silent = node.all_of().is_empty() && node.variants().is_empty();
            known.unsure |= silent;
        }
        for part in node.all_of() {
            self.gather(members, node.within(part), known);
        }
        if node.variants().is_empty() {
            return;
        }
        match union::choose_object(node, members) {
            Choice::One(variant) => self.gather(members, variant, known),
            Choice::Prefer(variant, second) => {
                let outer = known.lenient;
                let whole = Value::Object(members.clone());
                known.lenient |= self.refuses(&whole, variant) && !self.refuses(&whole, second);
                self.gather(members, variant, known);
                known.lenient = outer;
            }
            Choice::Untagged(variant, mismatch) => {
                self.add_mismatch(mismatch, Some((members, known)));
                self.gather(members, variant, known);
            }
            Choice::Try(variants) => {
                if let Some(first) = variants.first() {
                    self.gather(members, *first, known);
                }
            }
            Choice::None(mismatch) => {
                known.unsure = true;
                self.add_mismatch(mismatch, Some((members, known)));
            }
        }
    }

    /// Adds why no variant matches. The discriminator of an object counts as a known member.
    fn add_mismatch(
        &mut self,
        mismatch: Mismatch,
        object: Option<(&Map<String, Value>, &mut Members)>,
    ) {
        let Mismatch {
            kind,
            ignored,
            member,
            expected,
        } = mismatch;
        let value = member.zip(object).and_then(|(name, (members, known))| {
            known.named.push(Member {
                name,
                node: Node::ANYTHING,
                lenient: true,
            });
            members.get(name)
        });
        self.within(member, ignored, |walk| walk.refuse(kind, value, expected));
    }

    /// Whether a reader would refuse `value` as that variant.
    fn refuses(&self, value: &Value, variant: Node) -> bool {
        let mut walk = Self::at(self.schema, &self.pointer);
        walk.resolved(value, variant);
        walk.found
            .iter()
            .any(|one| one.consequence == Consequence::Refused)
    }

    /// Runs `work` at a member or an item, or here without a `step`, and where a reader ignores
    /// what is wrong if `lenient`.
    fn within(&mut self, step: Option<&str>, lenient: bool, work: impl FnOnce(&mut Self)) {
        let outer = (self.pointer.len(), self.lenient);
        if let Some(step) = step {
            self.pointer += &format!("/{}", jsonptr::Token::new(step).encoded());
        }
        self.lenient |= lenient;
        work(self);
        self.pointer.truncate(outer.0);
        self.lenient = outer.1;
    }

    fn refuse(&mut self, kind: ViolationKind, value: Option<&Value>, expected: String) {
        let violation = Violation::refused(kind, &self.pointer, value, expected);
        self.found.push(match self.lenient {
            false => violation,
            true => violation.ignored(),
        });
    }
}

/// The expectation for a member that the schema does not name.
fn unknown_member(name: &str, known: &Members) -> String {
    let owner = known.name.unwrap_or("this object");
    match similar(name, known.named.iter().map(|member| member.name)) {
        Some(meant) => format!("\"{meant}\", in {owner}"),
        None => format!("no member {} in {owner}", truncate(&format!("{name:?}"))),
    }
}

/// The bounds that a scalar exceeds, as a phrase.
fn bounds(value: &Value, node: Node) -> Option<String> {
    match value {
        Value::Number(number) => {
            let whole = number.as_i64().map(i128::from);
            let whole = whole.or_else(|| number.as_u64().map(i128::from))?;
            let (low, high) = match node.at["format"].as_str() {
                Some("uint16") => (0, i128::from(u16::MAX)),
                Some("uint32") => (0, i128::from(u32::MAX)),
                Some("uint64") => (0, i128::from(u64::MAX)),
                Some("int32") => (i128::from(i32::MIN), i128::from(i32::MAX)),
                Some("int64") => (i128::from(i64::MIN), i128::from(i64::MAX)),
                _ => (i128::MIN, i128::MAX),
            };
            let bound = |name: &str| node.at[name].as_i64().map(i128::from);
            let low = bound("minimum").map_or(low, |least| least.max(low));
            let high = bound("maximum").map_or(high, |most| most.min(high));
            (whole < low || whole > high).then(|| match (low, high) {
                (low, i128::MAX) => format!("an integer from {low}"),
                (low, high) => format!("an integer from {low} to {high}"),
            })
        }
        Value::String(text) => {
            let bound = |name: &str| node.at[name].as_u64();
            let length = || text.chars().count() as u64;
            match (bound("minLength"), bound("maxLength")) {
                (Some(least), _) if length() < least => {
                    Some(format!("at least {least} characters"))
                }
                (_, Some(most)) if length() > most => Some(format!("at most {most} characters")),
                _ => None,
            }
        }
        _ => None,
    }
}
