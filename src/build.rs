//! Embeds the text of `--version` and the manual for rustdoc.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=src/build.rs");
    let version = env::var("CARGO_PKG_VERSION").expect("cargo sets it");
    let short = match commit() {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    println!("cargo::rustc-env=VERSION={short}");
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let out = env::var("OUT_DIR").expect("cargo sets it");
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
