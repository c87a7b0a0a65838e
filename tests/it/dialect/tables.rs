//! The tables that the program carries: their laws and their examples; and what a table with
//! faults is told.

use acp_relay::dialect::{Library, Table};

#[test]
fn every_example_of_every_table_holds() {
    let library = super::library();
    let mut faults = Vec::new();
    for (file, text) in Library::builtin_files() {
        let table = Table::read(file, text).unwrap();
        if let Err(found) = library.check_examples(file, text, &table) {
            faults.push(found.to_string());
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}
