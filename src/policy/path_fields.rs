//! The fields of messages that contain paths: `mappings/paths/acp-v1.json`, read once.

use std::collections::HashMap;

use serde_json::Value;

/// The file, as embedded.
const TEXT: &str = include_str!("../../mappings/paths/acp-v1.json");

/// The fields that contain paths, by method.
#[derive(Clone, Debug, Default)]
pub struct PathFields {
    params: HashMap<String, Vec<FieldPath>>,
    result: HashMap<String, Vec<FieldPath>>,
}

/// The member names that lead to a field; `*` is every element.
pub(super) type FieldPath = Vec<String>;

impl PathFields {
    /// The fields in canonical ACP v1.
    ///
    /// # Panics
    /// When the embedded file is invalid, which a test excludes.
    #[must_use]
    pub fn canonical() -> Self {
        Self::read(TEXT).expect("the built-in places are well formed")
    }

    fn read(text: &str) -> Result<Self, String> {
        let file: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Ok(Self {
            params: by_method(&file["params"])?,
            result: by_method(&file["result"])?,
        })
    }

    /// Those in the parameters of a method.
    pub(super) fn in_params(&self, method: &str) -> &[FieldPath] {
        self.params.get(method).map_or(&[], Vec::as_slice)
    }

    /// Those in the result of a method.
    pub(super) fn in_result(&self, method: &str) -> &[FieldPath] {
        self.result.get(method).map_or(&[], Vec::as_slice)
    }
}

fn by_method(value: &Value) -> Result<HashMap<String, Vec<FieldPath>>, String> {
    let methods = value.as_object().ok_or("expected methods")?;
    let mut found = HashMap::new();
    for (method, fields) in methods {
        let fields = fields.as_array().ok_or("expected pointers")?;
        let fields: Option<_> = fields.iter().map(|place| read(place.as_str()?)).collect();
        let fields = fields.ok_or_else(|| format!("{method}: expected JSON Pointers"))?;
        found.insert(method.clone(), fields);
    }
    Ok(found)
}

fn read(pointer: &str) -> Option<FieldPath> {
    let names = pointer.strip_prefix('/')?.split('/');
    let plain = |name: &str| name.replace("~1", "/").replace("~0", "~");
    Some(names.map(plain).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_path_fields_belong_to_known_methods() {
        let fields = PathFields::read(TEXT).unwrap();
        for method in fields.params.keys().chain(fields.result.keys()) {
            // Forking is not stable yet.
            let known = crate::dialect::is_known(method) || method == "session/fork";
            assert!(known, "{method}");
        }
        assert_eq!(fields.in_params("fs/read_text_file"), [["path"]]);
        assert!(fields.in_result("fs/read_text_file").is_empty());
    }
}
