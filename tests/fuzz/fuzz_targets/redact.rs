//! Any text, whole and in pieces: what redaction leaves of a message is JSON.

#![no_main]

use acp_relay::jsonrpc::{Kind, Limits, is_json};
use acp_relay::recording::redact::{Mode, RedactState, Redactor};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let redactor = Redactor::new(Mode::Default, Vec::new(), [1; 32]);
    let _ = redactor.text(text.as_bytes());
    if is_json(text.as_bytes(), &Limits::default())
        && let Some(clean) = redactor.json(text.as_bytes(), None)
    {
        assert!(is_json(&clean.text, &Limits::default()));
    }
    let mut state = RedactState::default();
    for piece in text.split('\0') {
        let update =
            serde_json::json!({"sessionUpdate": "agent_message_chunk", "content": {"text": piece}});
        let message = serde_json::json!({"method": "session/update", "params": {"update": update}})
            .to_string();
        let kind = Some(Kind::Notification);
        if let Some(clean) = redactor.json_streamed(&mut state, message.as_bytes(), kind, None) {
            assert!(is_json(&clean.text, &Limits::default()));
        }
    }
});
