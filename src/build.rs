//! Embeds `mappings/*.json`, sorted by name, the texts of `--version`, and the manual for rustdoc.
//!
//! The headers of the tables, which have no rules and nothing that rules use, are one text: nothing
//! else of the tables is read, or brought into memory, at the start of the program. Tables are not
//! checked here: the program reports faults in a table, with their lines.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

/// The members that a header leaves out.
const LEFT_OUT: [&str; 6] = ["memory", "shapes", "rules", "why", "source", "notes"];

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
    set_version(&files);
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
    manual(Path::new(&root), Path::new(&out));
}

/// Copies the pages of the manual for rustdoc, where a page is a module and not a file: links
/// between pages are changed.
fn manual(root: &Path, out: &Path) {
    println!("cargo::rerun-if-changed=src/docs");
    let to = out.join("docs");
    fs::create_dir_all(&to).expect("the output folder is writable");
    for entry in fs::read_dir(root.join("src/docs")).expect("the manual is part of the source") {
        let path = entry.expect("the folder can be read").path();
        if path.extension().is_none_or(|ending| ending != "md") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a page can be read");
        let mut page = String::with_capacity(text.len());
        for (index, part) in text.split("](").enumerate() {
            if index > 0 {
                page.push_str("](");
            }
            match part.split_once(".md") {
                Some((name, rest)) if name.chars().all(|c| c.is_ascii_lowercase() || c == '-') => {
                    page.push_str(&format!("../{}/index.html{rest}", name.replace('-', "_")));
                }
                _ => page.push_str(part),
            }
        }
        fs::write(to.join(path.file_name().expect("a file has a name")), page)
            .expect("the output folder is writable");
    }
}

/// Sets the texts of `--version`: the commit, the number of tables, and a digest over them.
fn set_version(tables: &[PathBuf]) {
    let mut digest = blake3::Hasher::new();
    for path in tables {
        digest.update(&fs::read(path).expect("a table can be read"));
    }
    let digest = &digest.finalize().to_hex()[..8];
    let version = env::var("CARGO_PKG_VERSION").expect("cargo sets it");
    let short = match commit() {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    let count = tables.len();
    println!("cargo::rustc-env=VERSION={short}");
    println!("cargo::rustc-env=TABLES={count} mapping tables, digest {digest}");
    println!("cargo::rustc-env=TABLES_DIGEST={digest}");
}

/// The commit this is built from, as set by a packager or as git reports it. `None` when the
/// repository only contains a copy of this crate.
fn commit() -> Option<String> {
    println!("cargo::rerun-if-env-changed=ACP_RELAY_COMMIT");
    if let Ok(commit) = env::var("ACP_RELAY_COMMIT") {
        return Some(commit);
    }
    // The path from the top of the repository to here.
    if git(&["rev-parse", "--show-prefix"]).is_some() {
        return None;
    }
    // Each commit adds a line to this file.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["log", "-1", "--format=%h %cs"])
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
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
