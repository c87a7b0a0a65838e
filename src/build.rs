//! Embeds `mappings/*.json`, sorted by name, so that the program carries its tables.
//!
//! Nothing is checked here: a fault in a table is reported by the program, with its line. Not
//! here: any other build step.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=mappings");
    println!("cargo::rerun-if-changed=src/build.rs");
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let folder = Path::new(&root).join("mappings");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("the folder `mappings` is part of the source")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    files.sort();
    let mut list = String::from("[\n");
    for path in files {
        let name = path.file_name().expect("a file has a name");
        let name = name.to_str().expect("table names are ASCII");
        let path = path.to_str().expect("the path is UTF-8");
        writeln!(list, "    ({name:?}, include_str!({path:?})),").expect("a string takes it all");
    }
    list.push_str("]\n");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("mappings.rs"), list).expect("the output folder is writable");
}
