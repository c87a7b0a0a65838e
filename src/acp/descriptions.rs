//! The members of the schema's types with their descriptions, for readers of messages.
//!
//! Each type is flat: its members with those of the types it includes, and for a union the types of
//! its variants by the value of the discriminator. Of a description, its first paragraph is given.

use serde_json::{Map, Value, json};

use super::methods::Method;
use super::schema::{Node, Schema, Types};

/// The types so far, by name; one without a name of its own is named after its place.
#[derive(Debug, Default)]
struct Catalogue(Map<String, Value>);

impl Schema {
    /// `methods` has the types of the params and the result of each method; `types` each type's
    /// description (`about`), `members` (their description and their type), and for a union the
    /// discriminator (`tag`), the `variants` by its value, and the variants without one (`others`).
    #[must_use]
    pub fn descriptions(self) -> Value {
        let mut types = Catalogue::default();
        let mut methods = Map::new();
        for (name, method) in Method::all(self) {
            let mut add = |name| types.add(self.named(name), name);
            let params = method.params.and_then(&mut add);
            let result = method.result.and_then(&mut add);
            methods.insert(name.to_owned(), json!([params, result]));
        }
        types.add(self.named("Error"), "Error");
        json!({"methods": methods, "types": types.0})
    }
}

impl Catalogue {
    /// Adds the type of a node, which has members or is a list of such; returns its name.
    fn add(&mut self, node: Node, place: &str) -> Option<String> {
        let node = node.resolve();
        if let Some(items) = node.at.get("items") {
            return self.add(node.within(items), place);
        }
        let variants = node.variants().iter().map(|at| node.within(at));
        let variants: Vec<Node> = variants
            .filter(|variant| variant.types() != Types::NULL)
            .collect();
        let is_plain = node.at.get("properties").is_none() && node.all_of().is_empty();
        match variants.as_slice() {
            [] if is_plain => return None,
            [only] if is_plain => return self.add(*only, place),
            _ if !node.types().admit(Types::OBJECT) => return None,
            _ => {}
        }
        let name = node.definition().unwrap_or(place).to_owned();
        if self.0.contains_key(&name) {
            return Some(name);
        }
        // A type may contain itself.
        self.0.insert(name.clone(), Value::Null);
        let members = Value::from(self.members(node, &name));
        let mut described = Map::from_iter([("members".to_owned(), members)]);
        let about = paragraph(node);
        if !about.is_empty() {
            described.insert("about".to_owned(), about.into());
        }
        if !variants.is_empty() {
            self.variants(&variants, &name, &mut described);
        }
        self.0.insert(name.clone(), described.into());
        Some(name)
    }

    /// The members of a node and of the types it includes.
    fn members(&mut self, node: Node, name: &str) -> Map<String, Value> {
        let members = node.all_members().into_iter();
        let members = members.map(|(member, own, _)| {
            let kind = self.add(own, &format!("{name}.{member}"));
            let mut about = paragraph(own);
            if about.is_empty() {
                about = paragraph(own.resolve());
            }
            (member.to_owned(), json!([about, kind]))
        });
        members.collect()
    }

    fn variants(&mut self, variants: &[Node], name: &str, described: &mut Map<String, Value>) {
        let (mut by_value, mut others) = (Map::new(), Vec::new());
        for (at, variant) in variants.iter().enumerate() {
            let constant = variant
                .resolve()
                .members()
                .find_map(|(member, at)| Some((member, at.get("const")?.as_str()?)));
            match constant {
                Some((tag, value)) => {
                    described.insert("tag".to_owned(), tag.into());
                    // Its description is more specific than that of the type it includes.
                    let kind = self.add(*variant, &format!("{name}/{value}"));
                    by_value.insert(value.to_owned(), json!([paragraph(*variant), kind]));
                }
                None => others.extend(self.add(*variant, &format!("{name}/{at}"))),
            }
        }
        if !by_value.is_empty() {
            described.insert("variants".to_owned(), by_value.into());
        }
        if !others.is_empty() {
            described.insert("others".to_owned(), others.into());
        }
    }
}

/// The first paragraph of a node's own description, in one line.
fn paragraph(node: Node) -> String {
    let text = node.at["description"].as_str().unwrap_or_default();
    let first = text.split("\n\n").next().unwrap_or_default();
    first.split_whitespace().collect::<Vec<_>>().join(" ")
}
