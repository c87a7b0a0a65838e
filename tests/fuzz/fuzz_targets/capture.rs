//! Any bytes as a file of messages: it is converted to lines, which can all be read, and a message
//! over several lines becomes one line with the same value.

#![no_main]

use std::io::Cursor;

use acp_relay::recording::capture::Lines;
use acp_relay::recording::expand;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &[u8]| {
    let Ok(lines) = expand(text) else { return };
    for line in Lines::new(Cursor::new(&lines[..])) {
        line.expect("memory can be read");
    }
    if let Ok(message @ Value::Object(_)) = serde_json::from_slice(text) {
        let lines = lines.split(|byte| *byte == b'\n');
        let mut lines = lines.filter(|line| !line.trim_ascii().is_empty());
        let line = lines.next().expect("there is one");
        assert_eq!(serde_json::from_slice::<Value>(line).ok(), Some(message));
        assert_eq!(lines.next(), None);
    }
});
