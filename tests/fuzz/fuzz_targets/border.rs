//! Whatever an agent asks for, nothing but what its session's folder holds gets past the border, and
//! folders that are mapped out and in again have their own names.

#![no_main]

use std::path::{Path, PathBuf};

use acp_relay::policy::{Border, Crossing, Disk, Map, Rules};
use acp_relay::jsonrpc::{Frame, Limits, Shape, Side, scan};
use libfuzzer_sys::fuzz_target;

/// A disk on which everything is where its name says.
#[derive(Debug)]
struct Plain;

impl Disk for Plain {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        Some(path.to_owned())
    }

    fn exists(&self, _: &Path) -> bool {
        true
    }
}

fn cross(border: &mut Border, from: Side, text: &str) -> Option<Crossing> {
    let frame = Frame::from(text.to_owned());
    match scan(&frame, &Limits::default()) {
        Shape::One(at) => Some(border.cross(from, &frame, &at, None)),
        _ => None,
    }
}

fuzz_target!(|path: &str| {
    let rules = Rules {
        guarded: true,
        ..Rules::default()
    };
    let map = Map::new(vec!["/here=/there".parse().expect("it is a pair")]);
    let mut border = Border::new(rules, map, Box::new(Plain));
    let load = r#"{"id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/here"}}"#;
    cross(&mut border, Side::Client, load);
    let path = serde_json::Value::from(path);
    let read = format!(
        r#"{{"id":2,"method":"fs/read_text_file","params":{{"sessionId":"s","path":{path}}}}}"#
    );
    let seen = match cross(&mut border, Side::Agent, &read) {
        None | Some(Crossing::Denied(_)) => return,
        Some(Crossing::Same) => read,
        Some(Crossing::Changed(frame, _)) => String::from_utf8_lossy(frame.as_bytes()).into_owned(),
    };
    let seen: serde_json::Value = serde_json::from_str(&seen).expect("it is JSON");
    let seen = seen["params"]["path"].as_str().expect("it is a path");
    assert!(Path::new(seen).starts_with("/here"), "{seen}");
    assert!(!seen.split('/').any(|name| name == ".."), "{seen}");
});
