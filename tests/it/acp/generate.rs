//! Values generated from the schema, with some errors.
//!
//! The official types are no generators: they can only write valid values.

use serde_json::{Map, Value, json};

/// Makes values; the same seed makes the same ones.
pub(crate) struct Generator {
    root: &'static Value,
    state: u64,
    /// How often a value is made invalid, in hundredths for each place.
    noise: u64,
    depth: usize,
}

impl Generator {
    pub(crate) fn new(root: &'static Value, seed: u64, noise: u64) -> Self {
        Self {
            root,
            state: seed,
            noise,
            depth: 0,
        }
    }

    /// A value of the definition of that name.
    pub(crate) fn definition(&mut self, name: &str) -> Value {
        self.object(&self.root["$defs"][name])
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn wrong(&mut self) -> bool {
        self.next() % 100 < self.noise
    }

    fn value(&mut self, schema: &Value) -> Value {
        if self.wrong() {
            return self.anything();
        }
        if self.depth > 12 {
            return Value::Null;
        }
        self.depth += 1;
        let value = self.right(schema);
        self.depth -= 1;
        value
    }

    fn right(&mut self, schema: &Value) -> Value {
        if let Some(target) = schema["$ref"].as_str() {
            let schema = &self.root["$defs"][target.trim_start_matches("#/$defs/")];
            return self.value(schema);
        }
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => {
                let at = self.below(kinds.len());
                kinds[at].clone()
            }
            kind => kind.clone(),
        };
        if schema.get("properties").is_some() || kind == "object" {
            return self.object(schema);
        }
        for word in ["anyOf", "oneOf", "allOf"] {
            if let Some(variants) = schema[word].as_array() {
                let at = self.below(variants.len());
                return self.value(&variants[at]);
            }
        }
        match kind.as_str() {
            Some("null") => Value::Null,
            Some("boolean") => json!(self.below(2) == 0),
            Some("integer") => match self.below(4) {
                0 => json!(0),
                1 if schema.get("minimum").is_none() => json!(-1),
                2 if self.wrong() => json!(70_000_u64 << self.below(40)),
                _ => json!(self.below(60_000)),
            },
            Some("number") => json!(f64::from(u32::try_from(self.below(1000)).unwrap()) / 8.0),
            Some("string") => {
                json!(["a", "file:///b", "2026-01-01T00:00:00Z", "ü\n"][self.below(4)])
            }
            Some("array") => {
                let items: Vec<Value> = (0..self.below(3))
                    .map(|_| self.value(&schema["items"]))
                    .collect();
                Value::Array(items)
            }
            _ => self.anything(),
        }
    }

    /// An object with the members of all parts of its schema.
    fn object(&mut self, schema: &Value) -> Value {
        let mut members = Map::new();
        self.fill(schema, &mut members);
        if self.wrong() {
            members.insert("stranger".to_owned(), self.anything());
        }
        Value::Object(members)
    }

    fn fill(&mut self, schema: &Value, members: &mut Map<String, Value>) {
        if let Some(target) = schema["$ref"].as_str() {
            let schema = &self.root["$defs"][target.trim_start_matches("#/$defs/")];
            return self.fill(schema, members);
        }
        for (name, part) in schema["properties"].as_object().into_iter().flatten() {
            let required = schema["required"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one == name));
            if (required && !self.wrong()) || (!required && self.below(3) == 0) {
                let value = self.value(part);
                members.insert(name.clone(), value);
            }
        }
        if let Some(part @ Value::Object(_)) = schema.get("additionalProperties") {
            for name in ["x", "y"].iter().take(self.below(3)) {
                let value = self.value(part);
                members.insert((*name).to_owned(), value);
            }
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.fill(part, members);
        }
        let variants = schema["anyOf"]
            .as_array()
            .or_else(|| schema["oneOf"].as_array());
        if let Some(variants) = variants {
            let at = self.below(variants.len());
            self.fill(&variants[at], members);
        }
    }

    fn anything(&mut self) -> Value {
        match self.below(9) {
            0 => Value::Null,
            1 => json!(true),
            2 => json!(-5),
            3 => json!(1.5),
            4 => json!("text"),
            5 => json!([]),
            6 => json!(["a", 1, {}]),
            7 => json!({}),
            _ => json!({"type": "text", "a": [null]}),
        }
    }
}
