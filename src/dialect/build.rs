//! Embeds `mappings/*.json`, sorted by name, and a digest over them.
//!
//! The headers of the tables, which have no rules and nothing that rules use, are one text: nothing
//! else of the tables is read, or brought into memory, at the start of the program. Tables are not
//! checked here: the program reports faults in a table, with their lines.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

/// The members that a header leaves out.
const LEFT_OUT: [&str; 6] = ["memory", "shapes", "rules", "why", "source", "notes"];

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let folder = Path::new(&root).join("../../mappings");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("the folder `mappings` is part of the source")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    files.sort();
    set_digest(&files);
    let mut list = String::from("[\n");
    let mut headers = Vec::new();
    for path in files {
        let name = path.file_name().expect("a file has a name");
        let name = name.to_str().expect("table names are ASCII");
        let path = path.to_str().expect("the path is UTF-8");
        headers.push(header(path));
        let shown = format!("mappings/{name}");
        writeln!(list, "    ({shown:?}, include_str!({path:?})),").expect("a string takes it all");
    }
    list.push_str("]\n");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    let write = |name, text| fs::write(Path::new(&out).join(name), text);
    write("mappings.rs", list).expect("the output folder is writable");
    let headers = Value::Array(headers).to_string();
    write("headers.json", headers).expect("the output folder is writable");
}

/// Sets what `--version` tells of the tables: their number, and a digest over them.
fn set_digest(tables: &[PathBuf]) {
    let mut digest = blake3::Hasher::new();
    for path in tables {
        digest.update(&fs::read(path).expect("a table can be read"));
    }
    let digest = &digest.finalize().to_hex()[..8];
    let count = tables.len();
    println!("cargo::rustc-env=TABLES={count} mapping tables, digest {digest}");
    println!("cargo::rustc-env=TABLES_DIGEST={digest}");
}

/// The table without its rules.
fn header(path: &str) -> Value {
    let text = fs::read_to_string(path).expect("a table can be read");
    let mut table: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    if let Value::Object(members) = &mut table {
        members.retain(|name, _| !LEFT_OUT.contains(&&**name));
    }
    table
}
