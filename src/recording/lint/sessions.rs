//! Checks the order of messages: the handshake, sessions, turns, tool calls, permissions.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::rules::*;
use crate::jsonrpc::{Kind, Side};
use crate::recording::Message;

/// A violated rule and the details, before the event is known.
pub(super) type Problem = (&'static LintRule, String);

/// The state of a conversation.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    initialize: Option<String>,
    initialized: bool,
    client: Value,
    agent: Value,
    sessions: HashMap<String, Session>,
    /// Open requests that create or load a session, by the id of the request.
    opening: HashMap<String, Option<String>>,
    /// Open prompts by id, with their session.
    prompts: HashMap<String, String>,
    permissions: HashMap<String, Permission>,
    /// Earlier messages are missing.
    incomplete: bool,
}

#[derive(Debug, Default)]
struct Session {
    /// Its id was sent to the client.
    known: bool,
    loading: u64,
    turns: u64,
    open: u64,
    cancelled: bool,
    /// Tool calls by id; whether they are finished.
    tools: HashMap<String, bool>,
    early_reported: bool,
    /// It was loaded, and has had no prompt since.
    loaded: bool,
    /// Output of the agent outside a turn was reported.
    stray_reported: bool,
    /// Its beginning is missing.
    incomplete: bool,
}

#[derive(Debug)]
struct Permission {
    session: String,
    options: HashSet<String>,
    cancelled: bool,
}

impl Sessions {
    /// Everything before now is unknown.
    pub(super) fn forget_past(&mut self) {
        self.incomplete = true;
        for session in self.sessions.values_mut() {
            // Turns may have begun and ended meanwhile.
            (session.incomplete, session.turns, session.open) = (true, 0, 0);
        }
    }

    /// The problems of a message, whose tree is `tree`.
    pub(super) fn check(&mut self, message: &Message, tree: &Value) -> Vec<Problem> {
        let mut found = Vec::new();
        let id = message.id.clone().unwrap_or_default();
        let method = message.method.clone().unwrap_or_default();
        let from = message.to.other();
        match message.kind {
            Some(Kind::Request) => self.request(from, &id, &method, &tree["params"], &mut found),
            Some(Kind::Notification) => {
                self.notification(from, &method, &tree["params"], &mut found)
            }
            Some(Kind::Result) => self.answer(from, &id, &tree["result"], true, &mut found),
            Some(Kind::Error) => self.answer(from, &id, &tree["error"], false, &mut found),
            None => {}
        }
        found
    }

    fn request(
        &mut self,
        from: Side,
        id: &str,
        method: &str,
        params: &Value,
        found: &mut Vec<Problem>,
    ) {
        if !self.initialized
            && !self.incomplete
            && !["initialize", "authenticate"].contains(&method)
        {
            found.push((&NOT_INITIALIZED, format!("{method} comes too early")));
        }
        let path = match method {
            "session/new" | "session/load" => "cwd",
            "fs/read_text_file" | "fs/write_text_file" => "path",
            _ => "",
        };
        if let Some(path) = params[path].as_str()
            && !is_absolute(path)
        {
            found.push((&RELATIVE_PATH, path.to_owned()));
        }
        let session = params["sessionId"].as_str().unwrap_or_default();
        match (from, method) {
            (Side::Client, "initialize") => {
                if self.initialize.is_some() || self.initialized {
                    found.push((&INITIALIZED_TWICE, String::new()));
                }
                self.initialize = Some(id.to_owned());
                self.client = params["clientCapabilities"].clone();
            }
            (Side::Client, "session/new" | "session/fork") => {
                self.opening.insert(id.to_owned(), None);
            }
            (Side::Client, "session/load" | "session/resume") => {
                if method == "session/load" && self.initialized && self.agent["loadSession"] != true
                {
                    found.push((&NOT_CAPABLE, "the agent has no loadSession".to_owned()));
                }
                self.opening.insert(id.to_owned(), Some(session.to_owned()));
                self.session(session).loading += 1;
            }
            (Side::Client, "session/prompt") => {
                let known = self.session(session);
                if !known.known && !known.incomplete {
                    found.push((&UNKNOWN_SESSION, session.to_owned()));
                }
                if known.open > 0 {
                    found.push((&TURN_IN_TURN, format!("{} open", known.open)));
                }
                known.open += 1;
                known.turns += 1;
                known.loaded = false;
                known.stray_reported = false;
                known.cancelled = false;
                self.prompts.insert(id.to_owned(), session.to_owned());
            }
            (Side::Agent, "session/request_permission") => {
                self.permission(id, session, params, found)
            }
            (Side::Agent, _) => self.check_capability(method, found),
            _ => {}
        }
    }

    /// Checks that the client has announced the capability that the agent uses.
    fn check_capability(&self, method: &str, found: &mut Vec<Problem>) {
        let name = match method {
            "fs/read_text_file" => "/fs/readTextFile",
            "fs/write_text_file" => "/fs/writeTextFile",
            _ if method.starts_with("terminal/") => "/terminal",
            _ => return,
        };
        if self.initialized && self.client.pointer(name) != Some(&Value::Bool(true)) {
            let name = name[1..].replace('/', ".");
            found.push((&NOT_CAPABLE, format!("the client has no {name}")));
        }
    }

    fn permission(&mut self, id: &str, session: &str, params: &Value, found: &mut Vec<Problem>) {
        let tool = params["toolCall"]["toolCallId"]
            .as_str()
            .unwrap_or_default();
        let known = self.session(session);
        if !known.tools.contains_key(tool) && !known.incomplete {
            found.push((&PERMISSION_UNKNOWN_TOOL, tool.to_owned()));
        }
        let cancelled = known.cancelled;
        let options = params["options"].as_array().into_iter().flatten();
        let options = options.filter_map(|option| Some(option["optionId"].as_str()?.to_owned()));
        let permission = Permission {
            session: session.to_owned(),
            options: options.collect(),
            cancelled,
        };
        self.permissions.insert(id.to_owned(), permission);
    }

    fn notification(&mut self, from: Side, method: &str, params: &Value, found: &mut Vec<Problem>) {
        let session = params["sessionId"].as_str().unwrap_or_default();
        if from == Side::Client && method == "session/cancel" {
            let known = self.session(session);
            known.cancelled = known.open > 0;
            for permission in self.permissions.values_mut() {
                permission.cancelled |= permission.session == session;
            }
        }
        if from == Side::Agent && method == "session/update" {
            let opening = self.opening.values().any(Option::is_none);
            self.update(session, &params["update"], opening, found);
        }
    }

    fn update(&mut self, session: &str, update: &Value, opening: bool, found: &mut Vec<Problem>) {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        let known = self.session(session);
        if !known.known
            && !known.incomplete
            && known.loading == 0
            && !std::mem::replace(&mut known.early_reported, true)
        {
            let rule = if opening {
                &EARLY_UPDATE
            } else {
                &UNKNOWN_SESSION
            };
            found.push((rule, session.to_owned()));
        }
        let works = kind.ends_with("_chunk") || kind.starts_with("tool_call") || kind == "plan";
        // Reported once, until the next prompt.
        if works
            && known.open == 0
            && known.loading == 0
            && (known.loaded || known.turns > 0 || !known.incomplete)
            && !std::mem::replace(&mut known.stray_reported, true)
        {
            let rule = match (known.loaded, known.turns) {
                (true, _) => &LATE_HISTORY,
                (false, 0) => &UPDATE_OUTSIDE_TURN,
                (false, _) => &UPDATE_AFTER_TURN,
            };
            found.push((rule, kind.to_owned()));
        }
        let Some(tool) = update["toolCallId"].as_str() else {
            return;
        };
        let over = matches!(update["status"].as_str(), Some("completed" | "failed"));
        match kind {
            "tool_call" => {
                known.tools.insert(tool.to_owned(), over);
            }
            "tool_call_update" => match known.tools.get_mut(tool) {
                Some(state) => *state |= over,
                None => {
                    if !known.incomplete {
                        found.push((&UNKNOWN_TOOL, tool.to_owned()));
                    }
                    known.tools.insert(tool.to_owned(), over);
                }
            },
            _ => {}
        }
    }

    fn answer(
        &mut self,
        from: Side,
        id: &str,
        body: &Value,
        success: bool,
        found: &mut Vec<Problem>,
    ) {
        match from {
            Side::Agent => self.agent_answer(id, body, success, found),
            Side::Client => {
                let Some(permission) = self.permissions.remove(id) else {
                    return;
                };
                let outcome = body["outcome"]["outcome"].as_str();
                let option = body["outcome"]["optionId"].as_str().unwrap_or_default();
                if permission.cancelled && success && outcome != Some("cancelled") {
                    let what = format!("answered {}", outcome.unwrap_or("otherwise"));
                    found.push((&PERMISSION_AFTER_CANCEL, what));
                }
                if outcome == Some("selected") && !permission.options.contains(option) {
                    found.push((&UNKNOWN_OPTION, option.to_owned()));
                }
            }
        }
    }

    fn agent_answer(&mut self, id: &str, body: &Value, success: bool, found: &mut Vec<Problem>) {
        if self.initialize.as_deref() == Some(id) {
            self.initialize = None;
            self.initialized |= success;
            self.agent = body["agentCapabilities"].clone();
        }
        if let Some(loaded) = self.opening.remove(id) {
            if let Some(session) = &loaded {
                let known = self.session(session);
                known.loading = known.loading.saturating_sub(1);
                known.loaded = true;
                known.stray_reported = false;
            }
            let is_new = loaded.is_none();
            let session = body["sessionId"].as_str().map(str::to_owned).or(loaded);
            if let Some(session) = session.filter(|_| success) {
                let known = self.session(&session);
                known.known = true;
                known.incomplete &= !is_new;
            }
        }
        let Some(session) = self.prompts.remove(id) else {
            return;
        };
        let known = self.session(&session);
        known.open = known.open.saturating_sub(1);
        let reason = body["stopReason"].as_str().unwrap_or("an error");
        if known.cancelled && reason != "cancelled" {
            found.push((&CANCEL_IGNORED, format!("the turn ended with {reason}")));
        }
        known.cancelled = false;
        let mut open: Vec<&str> = known
            .tools
            .iter()
            .filter(|(_, over)| !**over)
            .map(|(id, _)| id.as_str())
            .collect();
        open.sort_unstable();
        if !open.is_empty() {
            found.push((&TOOL_OPEN, open.join(", ")));
            // Each is reported once.
            known.tools.values_mut().for_each(|over| *over = true);
        }
    }

    fn session(&mut self, id: &str) -> &mut Session {
        let incomplete = self.incomplete;
        self.sessions
            .entry(id.to_owned())
            .or_insert_with(|| Session {
                incomplete,
                ..Session::default()
            })
    }
}

/// Whether a path is absolute on Unix or on Windows; the recording may come from either.
fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    let drive = bytes.len() >= 3 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':';
    path.starts_with('/') || path.starts_with("\\\\") || drive && matches!(bytes[2], b'\\' | b'/')
}
