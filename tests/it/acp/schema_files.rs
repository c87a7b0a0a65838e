//! The schema files are made from the official types: `INSTA_UPDATE=always` writes them.

use std::fs;

use agent_client_protocol_schema::{v1, v2};
use schemars::SchemaGenerator;
use serde_json::{Value, json};

/// The definitions that the messages of a version use, which include those of all methods.
macro_rules! file {
    ($version:ident) => {{
        let mut generator = SchemaGenerator::default();
        generator.subschema_for::<$version::AgentRequest>();
        generator.subschema_for::<$version::AgentResponse>();
        generator.subschema_for::<$version::AgentNotification>();
        generator.subschema_for::<$version::ClientRequest>();
        generator.subschema_for::<$version::ClientResponse>();
        generator.subschema_for::<$version::ClientNotification>();
        generator.subschema_for::<$version::ProtocolLevelNotification>();
        generator.subschema_for::<$version::RequestId>();
        generator.subschema_for::<$version::Error>();
        generator.take_definitions(true)
    }};
}

/// Writes a reference with other words beside it as the published files do, for readers that
/// look at the reference alone.
fn set_references_apart(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(set_references_apart);
            if members.len() > 1
                && let Some(target) = members.shift_remove("$ref")
            {
                let before = members.insert("allOf".to_owned(), json!([{"$ref": target}]));
                assert_eq!(before, None);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(set_references_apart),
        _ => {}
    }
}

#[test]
fn the_schema_files_are_those_of_the_newest_types() {
    for (name, mut definitions) in [
        ("acp-v1.schema.json", file!(v1)),
        ("acp-v2-draft.schema.json", file!(v2)),
    ] {
        // The unions of all messages accept any object as an extension; nothing reads them.
        definitions.retain(|_, definition| definition.get("x-docs-ignore").is_none());
        definitions.sort_keys();
        let mut file = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Agent Client Protocol",
            "$defs": Value::Object(definitions),
        });
        set_references_apart(&mut file);
        let made = format!("{file:#}\n");
        let path = format!("{}/src/acp/{name}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("INSTA_UPDATE").is_some() {
            fs::write(&path, &made).unwrap();
        }
        let stored = fs::read_to_string(&path).unwrap();
        assert!(
            stored == made,
            "{name} is of another release: INSTA_UPDATE=always cargo test schema_files"
        );
    }
}
