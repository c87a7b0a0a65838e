//! Agent Connect: served, with a client over HTTP, a relay, and an agent that a test speaks for; and
//! used, with a server that answers as it is written.

mod back_to_back;
mod flows;
mod principals;
mod remote;
mod sessions;
mod several;
mod stage;
mod vectors;

use std::fs;
use std::path::Path;

use serde_json::Value;

/// The exchanges in `tests/vectors/agntcy` in which we are this.
fn exchanges(role: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/agntcy");
    let mut cases = Vec::new();
    for file in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let all = text.lines().map(|line| serde_json::from_str(line).unwrap());
        cases.extend(all.filter(|case: &Value| case["role"] == role));
    }
    cases
}
