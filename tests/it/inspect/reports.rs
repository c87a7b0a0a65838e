//! What stats, lint and diff print of real captures: `tests/vectors/inspect/*.txt`.
//!
//! With `ACP_RELAY_BLESS=1` the files are rewritten; check the diff.

use std::fs;

use serde_json::Value;

use super::{CAPTURES, answer, capture, import, vectors};

#[test]
fn stats_and_lint_of_real_captures_are_as_stored() {
    let folder = tempfile::tempdir().unwrap();
    for name in CAPTURES {
        let file = import(folder.path(), &capture(name), name);
        let fails = i32::from(name.starts_with("codex"));
        for (what, args, code) in [
            ("stats", ["stats", &file], 0),
            ("lint", ["lint", &file], fails),
        ] {
            let found = answer(&args, code);
            let path = vectors().join(format!("inspect/{name}.{what}.txt"));
            if std::env::var_os("ACP_RELAY_BLESS").is_some() {
                fs::write(&path, &found).unwrap();
            }
            let known = fs::read_to_string(&path).unwrap_or_default();
            assert!(found == known, "{}: now\n{found}", path.display());
        }
        let stats = answer(&["stats", "--json", &file], 0);
        let stats: Value = serde_json::from_str(&stats).unwrap();
        assert!(stats["turns"]["count"].as_u64() > Some(2), "{name}");
    }
}

#[test]
fn a_line_fits_into_eighty_columns() {
    let folder = tempfile::tempdir().unwrap();
    let file = import(folder.path(), &capture(CAPTURES[0]), "x");
    for line in answer(&["stats", &file], 0).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
