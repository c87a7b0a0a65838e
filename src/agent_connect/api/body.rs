//! Reads the JSON objects of requests into types.
//!
//! Every error names the member. A member that is `null` counts as absent.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::error::{ApiError, ApiResult};

/// Longest metadata of a thread or a run, in bytes.
pub const MAX_METADATA_LEN: usize = 64 << 10;

/// Reads the body of a request.
///
/// # Errors
/// 422, when it is not an object or a member is invalid.
pub fn read<T: DeserializeOwned>(body: &Value) -> ApiResult<T> {
    read_as("the body", body)
}

/// Reads the object that errors call `what`.
pub(super) fn read_as<T: DeserializeOwned>(what: &str, object: &Value) -> ApiResult<T> {
    let members = object.as_object();
    let members =
        members.ok_or_else(|| ApiError::invalid(format!("{what} must be a JSON object")))?;
    read_members(members)
}

/// Reads the members of an object.
pub(super) fn read_members<T: DeserializeOwned>(members: &Map<String, Value>) -> ApiResult<T> {
    let given = members.iter().filter(|(_, value)| !value.is_null());
    let given: Map<String, Value> = given.map(|(n, value)| (n.clone(), value.clone())).collect();
    serde_path_to_error::deserialize(Value::Object(given)).map_err(|fault| {
        let (path, why) = (fault.path().to_string(), fault.inner().to_string());
        let wanted = why.split_once(", expected ").map(|(_, wanted)| wanted);
        let what = match wanted {
            _ if why.contains("UUID") => "must be a UUID".to_owned(),
            Some(words) if why.starts_with("unknown variant") => {
                // serde writes the words as `one` or `other`, or as one of `one`, `two`, `three`.
                let words: Vec<&str> = words.split('`').skip(1).step_by(2).collect();
                format!("must be one of {}", words.join(", "))
            }
            Some("a map") => "must be an object".to_owned(),
            Some("a sequence") => "must be an array".to_owned(),
            Some("a boolean") => "must be true or false".to_owned(),
            Some(wanted) => format!("must be {wanted}"),
            None => why,
        };
        ApiError::invalid(match path.as_str() {
            "." => what,
            path => format!("\"{path}\" {what}"),
        })
    })
}

/// Checks the length of a client's metadata.
///
/// # Errors
/// 422, when it is too long.
pub fn check_metadata(metadata: &Map<String, Value>) -> ApiResult<()> {
    let len = serde_json::to_string(metadata).map_or(0, |text| text.len());
    match len <= MAX_METADATA_LEN {
        true => Ok(()),
        false => Err(ApiError::invalid(format!(
            "\"metadata\" is longer than {MAX_METADATA_LEN} bytes"
        ))),
    }
}

/// A whole number, 0 or more. JSON does not distinguish 1.0 from 1, and JSON Schema calls both
/// integers.
pub(super) fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let value = Value::deserialize(from)?;
    let float = value
        .as_f64()
        .filter(|f| f.fract() == 0.0 && (0.0..9e15).contains(f));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole and in range"
    )]
    let float = float.map(|f| f as u64);
    let whole = value.as_u64().or(float);
    whole.ok_or_else(|| D::Error::custom("must be a whole number, 0 or more"))
}
