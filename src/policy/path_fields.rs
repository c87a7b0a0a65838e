//! The fields of messages that contain paths: `mappings/paths/acp-v1.json`, read once.

use std::collections::HashMap;

use jsonptr::PointerBuf;
use serde::Deserialize;

/// The file, as embedded.
const TEXT: &str = include_str!("../../mappings/paths/acp-v1.json");

/// The fields that contain paths, by method; a name `*` is every element.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct PathFields {
    params: HashMap<String, Vec<PointerBuf>>,
    result: HashMap<String, Vec<PointerBuf>>,
}

impl PathFields {
    /// The fields in canonical ACP v1.
    ///
    /// # Panics
    /// When the embedded file is invalid, which a test excludes.
    #[must_use]
    pub fn canonical() -> Self {
        serde_json::from_str(TEXT).expect("the built-in places are well formed")
    }

    /// Those in the parameters of a method.
    pub(super) fn in_params(&self, method: &str) -> &[PointerBuf] {
        self.params.get(method).map_or(&[], Vec::as_slice)
    }

    /// Those in the result of a method.
    pub(super) fn in_result(&self, method: &str) -> &[PointerBuf] {
        self.result.get(method).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_path_fields_belong_to_known_methods() {
        let fields = PathFields::canonical();
        for method in fields.params.keys().chain(fields.result.keys()) {
            // These are not stable yet.
            let known = dialect::is_known(method)
                || ["session/fork", "session/options"].contains(&&**method);
            assert!(known, "{method}");
        }
    }
}
