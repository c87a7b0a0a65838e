//! The schema files, and access to their nodes.
//!
//! The published files use a small part of JSON Schema 2020-12; a test fails when it uses more than
//! is read here.

use std::sync::{LazyLock, OnceLock};

use serde_json::{Map, Value};

/// A published schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Schema {
    /// That of ACP v1.
    #[default]
    V1,
    /// The draft of ACP v2.
    V2,
}

/// Schemas that are used in place of the published ones, by version.
static REPLACED: [OnceLock<Value>; 2] = [const { OnceLock::new() }; 2];

static V1: LazyLock<Value> = LazyLock::new(|| load(Schema::V1, include_str!("acp-v1.schema.json")));
static V2: LazyLock<Value> =
    LazyLock::new(|| load(Schema::V2, include_str!("acp-v2-draft.schema.json")));

/// References that may lead to one another.
const MAX_REFERENCES: usize = 32;

/// The JSON types, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types(u8);

/// A node of a schema, and the name of the definition it is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) schema: Schema,
    pub(super) at: &'static Value,
    pub(super) name: Option<&'static str>,
}

impl Types {
    pub(super) const NULL: Self = Self(1);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const ANY: Self = Self(0x7f);
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

fn load(schema: Schema, published: &str) -> Value {
    let replaced = REPLACED.get(schema as usize).and_then(OnceLock::get);
    replaced
        .cloned()
        .unwrap_or_else(|| serde_json::from_str(published).expect("the embedded schema is JSON"))
}

/// Checks that all references in a schema can be followed; the error names one that cannot.
fn check_references(node: &Value, definitions: &Map<String, Value>) -> Result<(), String> {
    follow(node, definitions, 0)?;
    let parts: Box<dyn Iterator<Item = &Value>> = match node {
        Value::Object(members) => Box::new(members.values()),
        Value::Array(items) => Box::new(items.iter()),
        _ => return Ok(()),
    };
    parts
        .into_iter()
        .try_for_each(|part| check_references(part, definitions))
}

/// Follows what a node is made of to its end.
fn follow(node: &Value, definitions: &Map<String, Value>, depth: usize) -> Result<(), String> {
    let target = node.get("$ref").and_then(Value::as_str);
    if depth > MAX_REFERENCES {
        return Err(format!(
            "references lead to themselves, at {}",
            target.unwrap_or("a union")
        ));
    }
    if let Some(target) = target {
        let name = target.strip_prefix("#/$defs/");
        let named = name.and_then(|name| definitions.get(name));
        let named = named.ok_or_else(|| format!("{target} is no definition of it"))?;
        follow(named, definitions, depth + 1)?;
    }
    let parts = ["allOf", "anyOf", "oneOf"]
        .iter()
        .filter_map(|name| node.get(name)?.as_array());
    parts
        .flatten()
        .try_for_each(|part| follow(part, definitions, depth + 1))
}

impl Schema {
    /// Uses this JSON Schema in place of the published one of its version, which is returned. To be
    /// called before any message is checked, and once for each version.
    ///
    /// # Errors
    /// Why that cannot be done, as text for users.
    pub fn replace(text: &str) -> Result<Self, String> {
        let read: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let all = read.get("$defs").unwrap_or(&Value::Null);
        let definitions = all.as_object().ok_or("it has no $defs")?;
        let has_method = |name: &str| {
            let mut all = definitions.values();
            all.any(|definition| {
                definition
                    .get("x-method")
                    .is_some_and(|method| method == name)
            })
        };
        if !has_method("initialize") {
            return Err("it has no definition with \"x-method\": \"initialize\"".to_owned());
        }
        check_references(all, definitions)?;
        // v2 has no other request that brings a session back than `session/resume`.
        let version = match has_method("session/load") {
            true => Self::V1,
            false => Self::V2,
        };
        let place = REPLACED.get(version as usize);
        let is_first = place.is_some_and(|place| place.set(read).is_ok());
        match is_first {
            true => Ok(version),
            false => Err(format!("there are two of ACP v{}", version.version())),
        }
    }

    /// The schema of the version that the params or the result of `initialize` are of. A `2` alone
    /// is no proof, because agents of v1 echo what they are offered; all that speak v2 have an
    /// object `info`.
    #[must_use]
    pub fn of_initialize(body: &Value) -> Self {
        match body["protocolVersion"].as_u64() {
            Some(2..) if body["info"].is_object() => Self::V2,
            _ => Self::V1,
        }
    }

    /// The schema of that version.
    #[must_use]
    pub const fn of_version(version: u64) -> Option<Self> {
        match version {
            1 => Some(Self::V1),
            2 => Some(Self::V2),
            _ => None,
        }
    }

    /// Its version of ACP.
    #[must_use]
    pub const fn version(self) -> u64 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }

    pub(super) const fn other(self) -> Self {
        match self {
            Self::V1 => Self::V2,
            Self::V2 => Self::V1,
        }
    }

    /// All definitions, by name.
    pub(super) fn definitions(self) -> &'static Map<String, Value> {
        let schema = match self {
            Self::V1 => &V1,
            Self::V2 => &V2,
        };
        schema["$defs"]
            .as_object()
            .expect("the schema has definitions")
    }

    /// The definition of that name.
    pub(super) fn named(self, name: &str) -> Node {
        let (name, at) = self
            .definitions()
            .get_key_value(name)
            .expect("a name of the schema's own is defined");
        Node {
            schema: self,
            at,
            name: Some(name),
        }
    }
}

impl Node {
    /// The schema that allows everything.
    pub(super) const ANYTHING: Self = Self {
        schema: Schema::V1,
        at: &Value::Bool(true),
        name: None,
    };

    /// Follows `$ref`, and `allOf` around a single `$ref`, to the node with the content.
    pub(super) fn resolve(self) -> Self {
        let is_plain = self.at.get("properties").is_none() && self.at.get("anyOf").is_none();
        let target = match (self.at.get("$ref"), self.all_of()) {
            (Some(target), _) => target,
            (None, [only]) if is_plain && only.get("$ref").is_some() => &only["$ref"],
            _ => return self,
        };
        let name = target
            .as_str()
            .and_then(|target| target.strip_prefix("#/$defs/"))
            .expect("references lead to definitions");
        self.schema.named(name).resolve()
    }

    /// The JSON types that it allows, as far as its types are given.
    pub(super) fn types(self) -> Types {
        let node = self.resolve();
        let any_of = |all: &mut dyn Iterator<Item = Types>| all.fold(Types(0), Types::or);
        let mut types = match &node.at["type"] {
            Value::String(name) => Types::named(name),
            Value::Array(names) => {
                any_of(&mut names.iter().filter_map(Value::as_str).map(Types::named))
            }
            _ => Types::ANY,
        };
        for part in node.all_of() {
            types = types.and(node.within(part).types());
        }
        if !node.variants().is_empty() {
            let mut variants = node.variants().iter().map(|at| node.within(at).types());
            types = types.and(any_of(&mut variants));
        }
        types
    }

    /// A part of this node, with the same name.
    pub(super) const fn within(self, at: &'static Value) -> Self {
        Self { at, ..self }
    }

    pub(super) fn all_of(self) -> &'static [Value] {
        list(&self.at["allOf"])
    }

    /// The variants of a union; `anyOf` and `oneOf` are never used together.
    pub(super) fn variants(self) -> &'static [Value] {
        match list(&self.at["anyOf"]) {
            [] => list(&self.at["oneOf"]),
            some => some,
        }
    }

    /// The named members and their schemas.
    pub(super) fn members(self) -> impl Iterator<Item = (&'static str, &'static Value)> {
        self.at["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, at)| (name.as_str(), at))
    }

    /// The members, also those of the types that it includes, and whether each is required.
    pub(super) fn all_members(self) -> Vec<(&'static str, Self, bool)> {
        let required: Vec<&str> = self.required().collect();
        let own = self.members();
        let own = own.map(|(name, at)| (name, self.within(at), required.contains(&name)));
        let parts = self.all_of().iter().map(|part| self.within(part).resolve());
        own.chain(parts.flat_map(Self::all_members)).collect()
    }

    /// The name of a whole definition; `None` for a part of one.
    pub(super) fn definition(self) -> Option<&'static str> {
        self.name
            .filter(|name| std::ptr::eq(self.schema.named(name).at, self.at))
    }

    /// The names of the required members.
    pub(super) fn required(self) -> impl Iterator<Item = &'static str> {
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
