//! The methods of ACP: the side that handles each, and the types of its params and result.
//!
//! Read from the schemas' own annotations (`x-method`, `x-side`); nothing is listed by hand.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::schema::Schema;
use jsonrpc::Side;

/// One method.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Method {
    /// The side that handles it; `None` when either may (`$/cancel_request`).
    pub(super) handler: Option<Side>,
    /// The name of the definition of its params.
    pub(super) params: Option<&'static str>,
    /// The name of the definition of its result; `None` for a notification.
    pub(super) result: Option<&'static str>,
}

type Methods = HashMap<&'static str, Method>;

static V1: LazyLock<Methods> = LazyLock::new(|| methods_of(Schema::V1));
static V2: LazyLock<Methods> = LazyLock::new(|| methods_of(Schema::V2));

fn methods_of(schema: Schema) -> Methods {
    let mut methods = Methods::new();
    for (name, definition) in schema.definitions() {
        let Some(method) = definition["x-method"].as_str() else {
            continue;
        };
        let entry = methods.entry(method).or_default();
        entry.handler = match definition["x-side"].as_str() {
            Some("client") => Some(Side::Client),
            Some("agent") => Some(Side::Agent),
            _ => None,
        };
        if name.ends_with("Response") {
            entry.result = Some(name);
        } else {
            entry.params = Some(name);
        }
    }
    methods
}

fn methods(schema: Schema) -> &'static Methods {
    match schema {
        Schema::V1 => &V1,
        Schema::V2 => &V2,
    }
}

impl Method {
    /// The method of that name.
    pub(super) fn named(schema: Schema, name: &str) -> Option<&'static Self> {
        methods(schema).get(name)
    }

    /// All methods with their names.
    pub(super) fn all(schema: Schema) -> impl Iterator<Item = (&'static str, &'static Self)> {
        methods(schema).iter().map(|(name, method)| (*name, method))
    }
}
