//! The words that distinguish a message from others of the same method. The caller escapes them.

use serde_json::Value;

/// Where messages have such words.
const POINTERS: [&str; 12] = [
    "/params/update/sessionUpdate",
    "/params/update/status",
    "/params/update/title",
    "/params/update/content/text",
    "/params/update/currentModeId",
    "/params/toolCall/title",
    "/params/path",
    "/params/command",
    "/params/prompt/0/text",
    "/result/stopReason",
    "/result/outcome/outcome",
    "/error/message",
];

/// Summarizes a message.
pub(super) fn summary(message: &Value) -> String {
    let at = |pointer: &&str| message.pointer(pointer)?.as_str();
    let mut words: Vec<&str> = POINTERS.iter().filter_map(at).collect();
    if let Some(option) = at(&"/result/outcome/optionId") {
        words = vec![option];
    }
    words.join(" ")
}
