//! Finds the variant of a union that a value is meant to be.
//!
//! A report has to be about that variant: "/update/entries is missing (Plan)", and not "matches
//! none of fourteen". The variant is chosen by the discriminator, then by the members that are
//! present, then by a trial.

use serde_json::{Map, Value};

use super::ViolationKind;
use super::phrase;
use super::schema::{Node, Types};

/// The variant chosen for a value.
#[derive(Debug)]
pub(super) enum Choice {
    /// It is this variant.
    One(Node),
    /// It is the first variant by its discriminator; but when the first refuses it, an official
    /// reader tries the second, which has no discriminator.
    Prefer(Node, Node),
    /// It is this variant, which has no discriminator, although the value has one.
    Untagged(Node, Mismatch),
    /// It may be any of these; only a trial shows which.
    Try(Vec<Node>),
    /// It is none of them.
    None(Mismatch),
}

/// Why no variant matches.
#[derive(Debug)]
pub(super) struct Mismatch {
    pub(super) kind: ViolationKind,
    /// Whether a reader only ignores it.
    pub(super) ignored: bool,
    /// The member it is about; `None` for the value as a whole.
    pub(super) member: Option<&'static str>,
    pub(super) expected: String,
}

/// Chooses among the variants of `union` for a value that is no object.
pub(super) fn choose(union: Node, value: &Value) -> Choice {
    let fit = fitting(union, Types::of(value));
    match fit.as_slice() {
        [] => none(ViolationKind::WrongType, None, phrase::expectation(union)),
        [only] => Choice::One(*only),
        _ => Choice::Try(fit),
    }
}

/// Chooses among the variants of `union` for an object.
pub(super) fn choose_object(union: Node, members: &Map<String, Value>) -> Choice {
    if let Some(node) = named(union, members) {
        return Choice::One(node);
    }
    let fit = fitting(union, Types::OBJECT);
    match tag(&fit) {
        _ if fit.is_empty() => none(ViolationKind::WrongType, None, phrase::expectation(union)),
        Some(tag) => by_tag(&fit, tag, members),
        None => by_members(&fit, members),
    }
}

/// The variant that the discriminator names, where all variants have one: most objects of a
/// conversation are of such unions, and no other variant is looked into.
pub(super) fn named(union: Node, members: &Map<String, Value>) -> Option<Node> {
    let all = || union.variants().iter().map(|at| union.within(at).resolve());
    let tag = all().find_map(|node| tag(&[node]))?;
    let name = members.get(tag)?;
    let of = |node: &Node| node.at["properties"].get(tag);
    let node = all().find(|node| of(node).and_then(|at| at.get("const")) == Some(name))?;
    all().all(|node| of(&node).is_some()).then_some(node)
}

/// The variants that admit a type.
fn fitting(union: Node, own: Types) -> Vec<Node> {
    let all = union.variants().iter().map(|at| union.within(at));
    all.filter(|variant| variant.types().admit(own)).collect()
}

fn none(kind: ViolationKind, member: Option<&'static str>, expected: String) -> Choice {
    Choice::None(Mismatch {
        kind,
        ignored: false,
        member,
        expected,
    })
}

/// The discriminator: the member that is a constant in some of the variants.
fn tag(variants: &[Node]) -> Option<&'static str> {
    variants.iter().find_map(|variant| {
        variant
            .resolve()
            .members()
            .find(|(_, at)| at.get("const").is_some())
            .map(|(name, _)| name)
    })
}

fn by_tag(variants: &[Node], tag: &'static str, members: &Map<String, Value>) -> Choice {
    let own = |node: &Node| node.resolve().at.get("properties")?.get(tag);
    let constant = |node: &Node| own(node)?.get("const");
    let names: Vec<String> = variants
        .iter()
        .filter_map(constant)
        .map(Value::to_string)
        .collect();
    // No tag, or null, may be a variant of its own.
    let untold = |node: &&Node| own(node).is_some_and(|own| own["type"] == "null");
    if let Some(node) = variants.iter().find(untold)
        && members.get(tag).is_none_or(Value::is_null)
    {
        return Choice::One(*node);
    }
    // A variant without the tag is meant when the tag is left out, as in an MCP server on stdio;
    // one that has the tag as any string is for variants of the future.
    let without_tag = variants.iter().find(|node| {
        let at = node.resolve().at;
        at["properties"].get(tag).is_none()
    });
    let future = variants.iter().find(|node| {
        let at = node.resolve().at;
        at["properties"]
            .get(tag)
            .is_some_and(|tag| tag.get("const").is_none())
    });
    let expected = phrase::choice(&names);
    match (members.get(tag), without_tag) {
        (Some(Value::String(name)), _) => {
            let named = variants
                .iter()
                .find(|node| constant(node).and_then(Value::as_str) == Some(name));
            match (named.or(future), without_tag) {
                (Some(node), Some(second)) => Choice::Prefer(*node, *second),
                (Some(node), None) => Choice::One(*node),
                (None, Some(node)) => Choice::Untagged(
                    *node,
                    Mismatch {
                        kind: ViolationKind::UnknownVariant,
                        ignored: true,
                        member: Some(tag),
                        expected: format!("{expected}, or no such member"),
                    },
                ),
                (None, None) => none(ViolationKind::UnknownVariant, Some(tag), expected),
            }
        }
        (Some(_), _) => none(ViolationKind::WrongType, Some(tag), expected),
        (None, Some(node)) => Choice::One(*node),
        (None, None) => none(ViolationKind::MissingMember, Some(tag), expected),
    }
}

/// Without a discriminator the required members decide.
fn by_members(variants: &[Node], members: &Map<String, Value>) -> Choice {
    if let [only] = variants {
        return Choice::One(*only);
    }
    let missing = |node: &Node| {
        let node = node.resolve();
        node.required()
            .filter(|name| !members.contains_key(*name))
            .count()
    };
    let least = variants.iter().map(missing).min().unwrap_or(0);
    let mut best = variants.iter().filter(|node| missing(node) == least);
    match (best.next(), best.next()) {
        (Some(node), None) => Choice::One(*node),
        (Some(node), Some(_)) if least == 0 => Choice::One(*node),
        _ => {
            let expected: Vec<String> = variants
                .iter()
                .filter_map(|node| {
                    let node = node.resolve();
                    node.required()
                        .find(|name| !members.contains_key(*name))
                        .map(|name| format!("\"{name}\""))
                })
                .collect();
            none(
                ViolationKind::MissingMember,
                None,
                format!("a member {}", phrase::choice(&expected)),
            )
        }
    }
}
