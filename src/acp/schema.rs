//! The schema file, and access to its nodes.
//!
//! The published file uses a small part of JSON Schema 2020-12; a test fails when it uses more than
//! is read here.

use std::sync::LazyLock;

use serde_json::{Map, Value};

/// The published schema.
const TEXT: &str = include_str!("acp-v1.schema.json");

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema {
    root: serde_json::from_str(TEXT).expect("the embedded schema is JSON"),
});

/// The JSON types, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types(u8);

/// The whole file.
#[derive(Debug)]
pub(super) struct Schema {
    root: Value,
}

/// A schema node, and the name of the definition it is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'s> {
    pub(super) at: &'s Value,
    pub(super) name: Option<&'s str>,
}

impl Types {
    pub(super) const NULL: Self = Self(1);
    pub(super) const ANY: Self = Self(0x7f);
    const NONE: Self = Self(0);
    const NAMES: [(&'static str, Self); 7] = [
        ("null", Self::NULL),
        ("boolean", Self(2)),
        ("integer", Self(4)),
        // Every integer is a number.
        ("number", Self(4 | 8)),
        ("string", Self(16)),
        ("array", Self(32)),
        ("object", Self(64)),
    ];

    fn named(name: &str) -> Self {
        Self::NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(Self::ANY, |(_, types)| *types)
    }

    /// The type of a value. `1.0` is not an integer: the official types refuse it as one.
    pub(super) fn of(value: &Value) -> Self {
        Self(match value {
            Value::Null => 1,
            Value::Bool(_) => 2,
            Value::Number(number) if number.is_f64() => 8,
            Value::Number(_) => 4,
            Value::String(_) => 16,
            Value::Array(_) => 32,
            Value::Object(_) => 64,
        })
    }

    pub(super) const fn admit(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The names of the types, in words.
    pub(super) fn type_names(self) -> Vec<&'static str> {
        Self::NAMES
            .iter()
            .filter(|(name, types)| {
                self.admit(*types) && (*name != "integer" || !self.admit(Self::named("number")))
            })
            .map(|(name, _)| *name)
            .collect()
    }
}

impl Schema {
    pub(super) fn published() -> &'static Self {
        &SCHEMA
    }

    /// All definitions, by name.
    pub(super) fn definitions(&self) -> &Map<String, Value> {
        self.root["$defs"]
            .as_object()
            .expect("the schema has definitions")
    }

    /// The definition of that name.
    pub(super) fn named(&self, name: &str) -> Node<'_> {
        let (name, at) = self
            .definitions()
            .get_key_value(name)
            .expect("a name of the schema's own is defined");
        Node {
            at,
            name: Some(name),
        }
    }

    /// Follows `$ref`, and `allOf` around a single `$ref`, to the node with the content.
    pub(super) fn resolve<'s>(&'s self, mut node: Node<'s>) -> Node<'s> {
        loop {
            let target = match node.at.get("$ref") {
                Some(target) => target,
                None if node.at.get("properties").is_none() && node.at.get("anyOf").is_none() => {
                    match node.all_of() {
                        [only] if only.get("$ref").is_some() => &only["$ref"],
                        _ => return node,
                    }
                }
                None => return node,
            };
            let name = target
                .as_str()
                .and_then(|target| target.strip_prefix("#/$defs/"))
                .expect("references lead to definitions");
            node = self.named(name);
        }
    }

    /// The JSON types that a node allows, as far as its types are given.
    pub(super) fn types(&self, node: Node<'_>) -> Types {
        let node = self.resolve(node);
        let mut types = match &node.at["type"] {
            Value::String(name) => Types::named(name),
            Value::Array(names) => names
                .iter()
                .filter_map(Value::as_str)
                .fold(Types::NONE, |all, name| all.or(Types::named(name))),
            _ => Types::ANY,
        };
        for part in node.all_of() {
            types = types.and(self.types(node.within(part)));
        }
        let variants = node.variants();
        if !variants.is_empty() {
            types = types.and(variants.iter().fold(Types::NONE, |all, variant| {
                all.or(self.types(node.within(variant)))
            }));
        }
        types
    }
}

impl<'s> Node<'s> {
    /// A part of this node, with the same name.
    pub(super) const fn within(self, at: &'s Value) -> Self {
        Self {
            at,
            name: self.name,
        }
    }

    pub(super) fn all_of(self) -> &'s [Value] {
        list(&self.at["allOf"])
    }

    /// The variants of a union; `anyOf` and `oneOf` are never used together.
    pub(super) fn variants(self) -> &'s [Value] {
        match list(&self.at["anyOf"]) {
            [] => list(&self.at["oneOf"]),
            some => some,
        }
    }

    /// The named members and their schemas.
    pub(super) fn members(self) -> impl Iterator<Item = (&'s str, &'s Value)> {
        self.at["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, at)| (name.as_str(), at))
    }

    /// The names of the required members.
    pub(super) fn required(self) -> impl Iterator<Item = &'s str> {
        list(&self.at["required"]).iter().filter_map(Value::as_str)
    }

    /// Whether an annotation such as `x-deserialize-default-on-error` is set.
    pub(super) fn marked(self, mark: &str) -> bool {
        self.at[mark] == Value::Bool(true)
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
