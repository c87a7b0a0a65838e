//! The files that the program contains and prints.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::program::relay;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/assets")
}

/// The files below a folder, by their path in it.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => {
                    let name = path.strip_prefix(folder).unwrap();
                    found.insert(name.to_str().unwrap().to_owned());
                }
            }
        }
    }
    found
}

fn stdout(args: &[&str]) -> String {
    let output = relay(args).output().unwrap();
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_asset_is_listed_and_printed() {
    let json: Value = serde_json::from_str(&stdout(&["assets", "list", "--json"])).unwrap();
    let listed = json.as_array().unwrap().iter().map(|asset| {
        assert!(!asset["about"].as_str().unwrap().is_empty(), "{asset}");
        asset["name"].as_str().unwrap().to_owned()
    });
    let mut listed: BTreeSet<String> = listed.collect();
    // It is generated from the declarations of the options.
    assert!(listed.remove("acp-relay.toml"));
    assert_eq!(files(&folder()), listed);
    let list = stdout(&["assets", "list"]);
    for name in &listed {
        assert!(list.contains(name.as_str()), "{list}");
        let text = fs::read_to_string(folder().join(name)).unwrap();
        assert_eq!(stdout(&["assets", "print", name]), text, "{name}");
    }
}

#[test]
fn the_example_configuration_is_an_asset() {
    let asset = stdout(&["assets", "print", "acp-relay.toml"]);
    assert_eq!(asset, stdout(&["config", "example"]));
}
