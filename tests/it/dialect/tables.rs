//! The headers of the built-in tables, and the errors for an invalid table. `dialect_cli` checks the
//! built-in tables and runs their examples.

use acp_relay::dialect::{Library, Table};

#[test]
fn table_headers_have_what_is_needed_at_the_start() {
    let library = Library::builtin();
    let stated = |table: &Table| {
        assert!(!table.name.is_empty());
        format!(
            "{:?} {:?} {:?} {:?} {:?}",
            table.name, table.aliases, table.speaker, table.extends, table.detect
        )
    };
    let headers: Vec<String> = library.headers().map(|header| stated(header)).collect();
    let tables: Vec<String> = library.tables().iter().map(|table| stated(table)).collect();
    assert_eq!(headers, tables);
    assert!(library.headers().all(|header| header.rules.is_empty()));
    assert!(library.tables().iter().any(|table| !table.rules.is_empty()));
}

#[test]
fn a_loss_needs_a_place_and_a_description() {
    let read = |loses: &str, lossy: &str| {
        let text = format!(
            r#"{{"format":1,"dialect":"d","title":"D","rules":[{{"id":"a","why":"x",{lossy}"on":{{"from":"agent","method":"m"}},"loses":{loses},"examples":[{{}}]}}]}}"#
        );
        Table::read("d.json", &text).map_err(|faults| faults.to_string())
    };
    let reported = r#""lossy":"y","#;
    assert!(read(r#"[{"at":["/a/*",""],"when":{"/b":1}}]"#, reported).is_ok());
    let fault = |loses, lossy| read(loses, lossy).unwrap_err();
    assert!(fault(r#"[{"at":["/a"]}]"#, "").contains("what is lost is not stated"));
    assert!(fault(r#"[{"at":[]}]"#, reported).contains("this loss is nowhere"));
    assert!(fault("[{}]", reported).contains("`at` is missing"));
    assert!(fault(r#"[{"at":["a"]}]"#, reported).contains("begin it with `/`"));
}

#[test]
fn rules_that_could_both_match_are_refused() {
    let rule = |id: &str, guard: &str| {
        format!(
            r#"{{"id":"{id}","why":"x","on":{{"from":"agent","method":"m"}},"when":{{"dialect":{guard},"canonical":{guard}}},"examples":[{{}}]}}"#
        )
    };
    let table = |one: &str, two: &str| {
        let (one, two) = (rule("a", one), rule("b", two));
        let text = format!(r#"{{"format":1,"dialect":"d","title":"D","rules":[{one},{two}]}}"#);
        Table::read("d.json", &text).is_ok()
    };
    assert!(table(r#"{"/k":"one"}"#, r#"{"/k":"two"}"#));
    assert!(table(
        r#"{"/k":{"absent":true}}"#,
        r#"{"/k":{"is":"string"}}"#
    ));
    assert!(!table(r#"{"/k":"one"}"#, r#"{"/other":"two"}"#));
    assert!(!table(r#"{"/k":{"in":["one","two"]}}"#, r#"{"/k":"two"}"#));
}
