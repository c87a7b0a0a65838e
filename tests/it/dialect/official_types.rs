//! Messages of canonical peers, as the official types write them: every request, notification,
//! result and error of v1, in a conversation with an open session.
//!
//! Not here: the relays they cross (see `line`), and the checks on them (see `roundtrip`).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use acp_relay::dialect::Program;
use acp_relay::jsonrpc::Side;
use agent_client_protocol_schema::v1;
use serde_json::{Value, json};

use super::line::{Line, Received};
use crate::acp::describe;
use crate::acp::generate::Generator;
use crate::acp::official::{OFFICIAL, Official, PUBLISHED, check};

/// One kind of message of one side.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageKind {
    pub(super) from: Side,
    pub(super) method: &'static str,
    pub(super) role: Role,
    made_by: &'static Official,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Request,
    Notification,
    Result,
    Error,
}

/// A message that was sent, and its results.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) message: Value,
    pub(super) received: Received,
    /// The id by which the requesting peer knows an answer.
    pub(super) asked: Option<Value>,
}

/// A value of a type, as the official types write it. Each is made once for all dialects.
fn made(one: &Official, seed: u64) -> Value {
    static MADE: LazyLock<Mutex<HashMap<(&str, u64), Value>>> = LazyLock::new(Mutex::default);
    if let Some(made) = MADE.lock().unwrap().get(&(one.name, seed)) {
        return made.clone();
    }
    let seeds = (0..64).map(|more| seed.wrapping_mul(64).wrapping_add(more));
    let all = seeds.map(|seed| Generator::new(&PUBLISHED, seed, 0).definition(one.name));
    let mut good = all.filter_map(|value| (one.pass)(&value).ok());
    let made = good.next().unwrap_or_else(|| panic!("{}", one.name));
    MADE.lock().unwrap().insert((one.name, seed), made.clone());
    made
}

fn definition(name: &str) -> &'static Official {
    OFFICIAL.iter().find(|one| one.name == name).unwrap()
}

impl MessageKind {
    /// Every kind of message.
    pub(super) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for made_by in OFFICIAL {
            let annotations = &PUBLISHED["$defs"][made_by.name];
            let method = annotations["x-method"].as_str().unwrap();
            let of = |from, role| Self {
                from,
                method,
                role,
                made_by,
            };
            let handlers = match annotations["x-side"].as_str() {
                Some("client") => vec![Side::Client],
                Some("agent") => vec![Side::Agent],
                _ => vec![Side::Client, Side::Agent],
            };
            for handler in handlers {
                if made_by.name.ends_with("Response") {
                    all.push(of(handler, Role::Result));
                    all.push(of(handler, Role::Error));
                } else if made_by.name.ends_with("Request") {
                    all.push(of(handler.other(), Role::Request));
                } else {
                    all.push(of(handler.other(), Role::Notification));
                }
            }
        }
        all
    }

    /// How many more variants it has than others.
    pub(super) fn weight(&self) -> u64 {
        match (self.method, self.role) {
            ("session/update", _) => 96,
            ("initialize", _) => 6,
            ("session/request_permission", _) => 8,
            ("session/new" | "session/load" | "session/prompt", Role::Request) => 4,
            _ => 1,
        }
    }

    /// Sends one in a conversation. `None` when the request that it answers did not arrive.
    pub(super) fn send(&self, line: &mut Line, seed: u64) -> Option<Sent> {
        let name = self.method;
        match self.role {
            Role::Request => {
                let params = fitted(made(self.made_by, seed), line.session(self.from), seed);
                let (message, received) = line.request(self.from, name, &params);
                Some(Sent {
                    message,
                    received,
                    asked: None,
                })
            }
            Role::Notification => {
                let params = fitted(made(self.made_by, seed), line.session(self.from), seed);
                let message = json!({ "jsonrpc": "2.0", "method": name, "params": params });
                let received = line.send(self.from, &message);
                Some(Sent {
                    message,
                    received,
                    asked: None,
                })
            }
            Role::Result | Role::Error => self.answer(line, seed),
        }
    }

    fn answer(&self, line: &mut Line, seed: u64) -> Option<Sent> {
        let prefix = self.made_by.name.trim_end_matches("Response");
        let asker = self.from.other();
        let params = made(definition(&format!("{prefix}Request")), seed + 1);
        let params = fitted(params, line.session(asker), seed);
        let (question, received) = line.request(asker, self.method, &params);
        let arrived = received
            .there
            .iter()
            .find(|one| one["method"] == self.method)?;
        let mut message = json!({ "jsonrpc": "2.0", "id": arrived["id"] });
        if self.role == Role::Error {
            message["error"] = error(seed);
        } else {
            message["result"] = made(self.made_by, seed);
            if let Some(chosen) = message.pointer_mut("/result/outcome/optionId") {
                let options = arrived["params"]["options"].as_array().unwrap();
                let at = usize::try_from(seed).unwrap() % options.len().max(1);
                *chosen = options.get(at)?["optionId"].clone();
            }
        }
        let received = line.send(self.from, &message);
        Some(Sent {
            message,
            received,
            asked: Some(question["id"].clone()),
        })
    }
}

/// A conversation in the middle of a prompt.
pub(super) fn begun(program: &Arc<Program>) -> Line {
    let mut line = Line::new(program);
    let capabilities =
        json!({ "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": true });
    line.open(
        "initialize",
        &json!({ "protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": { "name": "c", "version": "1" } }),
        &json!({ "protocolVersion": 1, "agentCapabilities": { "loadSession": true }, "agentInfo": { "name": "a", "version": "1" } }),
    );
    line.open(
        "session/new",
        &json!({ "cwd": "/w", "mcpServers": [] }),
        &json!({ "sessionId": "s1" }),
    );
    let prompt = json!({ "sessionId": line.session(Side::Client), "prompt": [{ "type": "text", "text": "go" }] });
    line.request(Side::Client, "session/prompt", &prompt);
    let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Run", "kind": "execute", "status": "pending", "rawInput": { "command": "ls" } });
    let update = json!({ "sessionId": line.session(Side::Agent), "update": call });
    let update = json!({ "jsonrpc": "2.0", "method": "session/update", "params": update });
    line.send(Side::Agent, &update);
    line
}

/// The value with the ids of the conversation: its session, in half of the cases its tool call, and
/// distinct options.
fn fitted(mut params: Value, session: &str, seed: u64) -> Value {
    if let Some(own) = params.get_mut("sessionId") {
        *own = session.into();
    }
    for part in ["update", "toolCall"] {
        let id = params
            .get_mut(part)
            .and_then(|part| part.get_mut("toolCallId"));
        if let Some(id) = id.filter(|_| seed.is_multiple_of(2)) {
            *id = "t1".into();
        }
    }
    let options = params.get_mut("options").and_then(Value::as_array_mut);
    for (at, option) in options.into_iter().flatten().enumerate() {
        option["optionId"] = format!("option-{at}").into();
    }
    params
}

/// An error, as the official type writes it.
fn error(seed: u64) -> Value {
    const CODES: [i32; 9] = [
        -32700, -32600, -32601, -32602, -32603, -32000, -32002, -32800, 7,
    ];
    let at = usize::try_from(seed).unwrap();
    let code = CODES[at % CODES.len()];
    let mut error = v1::Error::new(code, format!("it failed {seed}"));
    if at / CODES.len() % 2 == 1 {
        error = error.data(json!({ "detail": [seed], "why": "x" }));
    }
    serde_json::to_value(error).unwrap()
}

/// Whether v1 has a method of that name.
pub(super) fn known(method: &str) -> bool {
    let definitions = OFFICIAL.iter().map(|one| &PUBLISHED["$defs"][one.name]);
    definitions.into_iter().any(|one| one["x-method"] == method)
}

/// What the official types and the checker find in a message; `method` is what an answer answers.
pub(super) fn deviates(message: &Value, method: &str) -> Option<String> {
    let method = message["method"].as_str().unwrap_or(method);
    let (body, suffixes): (_, &[&str]) = if let Some(result) = message.get("result") {
        (result, &["Response"])
    } else if let Some(error) = message.get("error") {
        let read = serde_json::from_value::<v1::Error>(error.clone());
        return read.err().map(|error| error.to_string());
    } else if message.get("id").is_some() {
        (message.get("params")?, &["Request"])
    } else {
        (message.get("params")?, &["Notification"])
    };
    let fits = |one: &&Official| {
        PUBLISHED["$defs"][one.name]["x-method"] == method
            && suffixes.iter().any(|suffix| one.name.ends_with(suffix))
    };
    let Some(one) = OFFICIAL.iter().find(fits) else {
        return (!method.starts_with('_')).then(|| format!("v1 has no such {method}"));
    };
    if let Err(error) = (one.pass)(body) {
        return Some(error);
    }
    let found = check(one.name, body);
    (!found.is_empty()).then(|| format!("{:?}", describe(&found)))
}
