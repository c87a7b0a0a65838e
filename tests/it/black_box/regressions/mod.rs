//! Defects that were fixed once, each with a user-visible effect.
//!
//! `tests/vectors/regressions.tsv` lists all of them with the tests of each.

mod admission;
mod http;
mod processes;
mod recorder;
mod restarts;
pub(super) mod support;
mod turns;
mod websocket;

use std::fs;
use std::path::Path;

/// Each row is an area, the effect, its tests (functions by their path below `tests/it`, or files;
/// `-` for none) and a remark, which gives the reason when there is no test.
#[test]
fn every_listed_test_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = fs::read_to_string(root.join("tests/vectors/regressions.tsv")).unwrap();
    let rows: Vec<&str> = list.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(rows.len() >= 122, "only {} rows", rows.len());
    for row in rows {
        let cells: Vec<&str> = row.split('\t').collect();
        if cells[2] == "-" {
            assert!(cells.get(3).is_some_and(|why| !why.is_empty()), "{row}");
            continue;
        }
        for test in cells[2].split(',') {
            assert!(exists(root, test), "{test} does not exist: {row}");
        }
    }
}

fn exists(root: &Path, test: &str) -> bool {
    let Some((module, function)) = test.rsplit_once("::") else {
        return root.join(test).exists();
    };
    let module = root.join("tests/it").join(module.replace("::", "/"));
    let files = [module.with_extension("rs"), module.join("mod.rs")];
    let mut texts = files
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok());
    texts.any(|text| text.contains(&format!("fn {function}(")))
}
