//! Any path that an agent sends: only files in its session's folder pass the policy, and their
//! folders are mapped.

#![no_main]

use std::path::{Path, PathBuf};

use acp_relay::policy::{Decision, Disk, MessagePolicy, PathMap, PolicyRules};
use acp_relay::jsonrpc::{Frame, Limits, Scanned, Side, scan};
use libfuzzer_sys::fuzz_target;

/// A disk without links, on which every file exists.
#[derive(Debug)]
struct FakeDisk;

impl Disk for FakeDisk {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        Some(path.to_owned())
    }

    fn exists(&self, _: &Path) -> bool {
        true
    }
}

fn decide(policy: &mut MessagePolicy, from: Side, text: &str) -> Option<Decision> {
    let frame = Frame::from(text.to_owned());
    match scan(&frame, &Limits::default()) {
        Scanned::Message(at) => Some(policy.decide(from, &frame, &at, None)),
        _ => None,
    }
}

fuzz_target!(|path: &str| {
    let rules = PolicyRules {
        guarded: true,
        ..PolicyRules::default()
    };
    let map = PathMap::new(vec!["/here=/there".parse().expect("it is a pair")]);
    let mut policy = MessagePolicy::new(rules, map, Box::new(FakeDisk));
    let load = r#"{"id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/here"}}"#;
    decide(&mut policy, Side::Client, load);
    let path = serde_json::Value::from(path);
    let read = format!(
        r#"{{"id":2,"method":"fs/read_text_file","params":{{"sessionId":"s","path":{path}}}}}"#
    );
    let seen = match decide(&mut policy, Side::Agent, &read) {
        None | Some(Decision::Denied(_)) => return,
        Some(Decision::Unchanged) => read,
        Some(Decision::Changed(frame, _)) => String::from_utf8_lossy(frame.as_bytes()).into_owned(),
    };
    let seen: serde_json::Value = serde_json::from_str(&seen).expect("it is JSON");
    let seen = seen["params"]["path"].as_str().expect("it is a path");
    assert!(Path::new(seen).starts_with("/here"), "{seen}");
    assert!(!seen.split('/').any(|name| name == ".."), "{seen}");
});
