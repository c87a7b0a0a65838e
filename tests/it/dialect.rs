//! Dialects: the built-in tables are valid, their examples hold, and the vectors pass.

mod auto;
mod bounds;
mod captures;
mod detect;
mod first_protocol;
mod golden;
mod inverse;
mod properties;
mod line;
mod hostile_tables;
mod newer;
mod permission;
mod renamed;
mod roundtrip;
mod official_types;
mod spelling;
mod tables;
mod trees;

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use acp_relay::dialect::{Library, Vector};
use proptest::prelude::ProptestConfig;

fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(Library::builtin)
}

/// So many cases, or `PROPTEST_CASES` if that is more. A failure prints its input; there are no
/// seed files.
fn cases(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let raised = std::env::var_os("PROPTEST_CASES").map_or(0, |_| default.cases);
    ProptestConfig {
        cases: cases.max(raised),
        failure_persistence: None,
        ..default
    }
}

#[test]
fn every_vector_passes_in_its_directions() {
    let library = library();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/dialect");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
        .collect();
    files.sort();
    let (mut failed, mut run) = (Vec::new(), 0);
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let (mut passed, mut all) = (0, 0);
        for line in fs::read_to_string(&file).unwrap().lines() {
            let vector = Vector::parse(line).unwrap();
            let reports = vector.run(library).into_iter();
            for report in reports.filter(|report| report.skipped.is_none()) {
                all += 1;
                match report.fault {
                    None => passed += 1,
                    Some(fault) => {
                        failed.push(format!("{name}: {} {}: {fault}", report.name, report.way));
                    }
                }
            }
        }
        println!("{name}: {passed} of {all}");
        run += all;
    }
    assert!(run > 200, "only {run} were run");
    assert!(
        failed.is_empty(),
        "{} failed\n{}",
        failed.len(),
        failed.join("\n")
    );
}
