//! What a place of the schema of v1 admits, for guesses at what a strange message means.

use serde_json::Value;

use super::Schema;
use super::methods::Method;
use super::schema::{Node, Types};
use jsonrpc::Side;

/// A place of the schema.
#[derive(Clone, Copy, Debug)]
pub struct Shape(Node);

/// A member of an object.
#[derive(Clone, Copy, Debug)]
pub struct ShapeMember {
    /// Its name.
    pub name: &'static str,
    /// What it admits.
    pub shape: Shape,
    /// Whether it has to be there.
    pub required: bool,
}

impl Shape {
    /// The params of a method, or what its answer has as its result.
    #[must_use]
    pub fn of_method(method: &str, answer: bool) -> Option<Self> {
        let method = Method::named(Schema::V1, method)?;
        let definition = if answer { method.result } else { method.params };
        definition.map(|name| Self(Schema::V1.named(name)))
    }

    /// The methods that a side may call, with their params.
    #[must_use]
    pub fn methods_of(side: Side) -> Vec<(&'static str, Self)> {
        let methods = Method::all(Schema::V1);
        let own = methods.filter(|(_, method)| method.handler == Some(side.other()));
        let own = own.filter_map(|(name, _)| Some((name, Self::of_method(name, false)?)));
        let mut all: Vec<_> = own.collect();
        all.sort_by_key(|(name, _)| *name);
        all
    }

    /// The kinds of `session/update`.
    #[must_use]
    pub fn updates() -> Vec<(&'static str, Self)> {
        let union = Schema::V1.named("SessionUpdate");
        let variants = union.variants().iter().map(|at| union.within(at));
        let kind = |node: &Node| {
            let name = node.at.pointer("/properties/sessionUpdate/const")?;
            name.as_str()
        };
        variants
            .filter_map(|node| Some((kind(&node)?, Self(node))))
            .collect()
    }

    /// The members of the object, in the order of their names.
    #[must_use]
    pub fn members(self) -> Vec<ShapeMember> {
        let all = self.node().all_members().into_iter();
        let all = all.map(|(name, node, required)| ShapeMember {
            name,
            shape: Self(node),
            required,
        });
        let is_fixed = |shape: Self| shape.node().at.get("const").is_some();
        let mut all: Vec<_> = all
            .filter(|member| member.name != "_meta" && !is_fixed(member.shape))
            .collect();
        all.sort_by_key(|member| member.name);
        all
    }

    /// The elements of the array.
    #[must_use]
    pub fn items(self) -> Option<Self> {
        let node = self.node();
        node.at.get("items").map(|at| Self(node.within(at)))
    }

    /// The only words that it admits; none if it admits any other value.
    #[must_use]
    pub fn words(self) -> Vec<String> {
        let words = super::phrase::constants(self.node());
        let plain = |word: &String| serde_json::from_str(word).ok();
        words.iter().filter_map(plain).collect()
    }

    /// Whether it admits the JSON type of a value.
    #[must_use]
    pub fn admits(self, value: &Value) -> bool {
        self.0.types().admit(Types::of(value))
    }

    /// The name of its type.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.node().name
    }

    /// The node with the content: not a reference, nor `null` as an alternative.
    fn node(self) -> Node {
        let node = self.0.resolve();
        match node.variants() {
            [one, null] if null["type"] == "null" => Self(node.within(one)).node(),
            _ => node,
        }
    }
}
