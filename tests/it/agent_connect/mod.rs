//! Agent Connect: as a server, with a client over HTTP, a relay, and a scripted agent; and as a
//! client, with a server that answers as written.

mod api;
mod back_to_back;
mod flows;
pub(crate) mod principals;
mod remote;
mod sessions;
mod several;
mod shares;
mod stage;
mod vectors;

use std::fs;
use std::path::Path;

use serde_json::Value;

/// The cases of a file in `tests/vectors`.
fn cases(folder: &str, file: impl AsRef<Path>) -> Vec<Value> {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let file = vectors.join(folder).join(file).with_extension("jsonl");
    let text = fs::read_to_string(file).unwrap();
    let case = |line| serde_json::from_str(line).unwrap();
    text.lines().map(case).collect()
}

/// The list at `name`; empty if there is none.
fn list<'a>(case: &'a Value, name: &str) -> &'a [Value] {
    case[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The exchanges in `tests/vectors/agntcy` with this role.
fn exchanges(role: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/agntcy");
    let files = fs::read_dir(folder).unwrap();
    let all = files.flat_map(|file| cases("agntcy", file.unwrap().path()));
    all.filter(|case| case["role"] == role).collect()
}
