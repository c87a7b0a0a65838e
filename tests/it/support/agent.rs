//! The scripted agent; `agent.py` explains its rules.

use serde_json::{Value, json};

/// The command of an agent with these rules: what it does on messages of a method.
pub(crate) fn scripted(rules: &[(&str, Value)]) -> Vec<String> {
    let words = ["python3", "-uc", include_str!("agent.py")];
    let rules = rules
        .iter()
        .map(|(on, steps)| json!({"on": on, "do": steps}).to_string());
    words.into_iter().map(str::to_owned).chain(rules).collect()
}

/// An agent that speaks by Content-Length headers alone, and first writes this on stderr.
pub(crate) fn with_headers(banner: &str) -> Vec<String> {
    let program = ["python3", "-uc", include_str!("headers_agent.py"), banner];
    program.map(str::to_owned).into()
}

/// An agent that makes these calls, in order, once it has a session, and forwards each answer in a
/// notification.
pub(crate) fn calling(calls: &[Value]) -> Vec<String> {
    let mut steps = vec![
        json!({"send": {"jsonrpc": "2.0", "method": "_new", "params": "$message"}}),
        json!({"result": {"sessionId": "s"}}),
    ];
    steps.extend(calls.iter().map(|call| json!({ "send": call })));
    steps.push(json!({"send": {"jsonrpc": "2.0", "method": "_done"}}));
    let answered = json!([{"send": {"jsonrpc": "2.0", "method": "_answer", "params": "$message"}}]);
    scripted(&[("session/new", steps.into()), ("answer", answered)])
}
