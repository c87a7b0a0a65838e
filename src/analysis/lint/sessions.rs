//! Checks the order of messages: the handshake, sessions, turns, tool calls, permissions.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::rules::*;
use jsonrpc::{Id, IdBuf, Kind, PendingRequests, Side};
use recording::{Message, RecordedEvent};

/// A violated rule and the details, before the event is known.
pub(super) type Problem = (&'static LintRule, String);

/// The state of a conversation.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// Both sides speak v2: the answer to a prompt ends no turn, updates come at any time and create
    /// tool calls, and a cancelled permission may be answered.
    pub(super) v2: bool,
    /// The open requests of each side.
    open: [PendingRequests<OpenRequest>; 2],
    /// The ids of answered ones.
    answered: HashSet<(Side, IdBuf)>,
    initializing: bool,
    initialized: bool,
    /// The capabilities that the agent knows of the client, and the client of the agent.
    pub(super) client: Value,
    pub(super) agent: Value,
    sessions: HashMap<String, Session>,
    /// Earlier messages are missing.
    incomplete: bool,
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(super) struct OpenRequest {
    pub(super) n: u64,
    pub(super) t: u64,
    pub(super) method: String,
    purpose: Purpose,
}

/// What a request is for, as far as its answer is judged by it.
#[derive(Debug)]
enum Purpose {
    Other,
    Initialize,
    /// Creates a session, or loads the one with this id.
    Open(Option<String>),
    /// A turn in this session.
    Prompt(String),
    Permission(Permission),
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
    /// An edge where v2 is spoken, after `initialize`; a relay converts to v1.
    pub(super) fn converted() -> Self {
        Self {
            v2: true,
            initialized: true,
            ..Self::default()
        }
    }

    /// The relay asks an agent that has refused `initialize` again.
    pub(super) fn initialize_again(&mut self, event: &RecordedEvent, message: &Message) {
        let id = id_of(message);
        if self.answered.contains(&(Side::Client, id.to_owned())) {
            let method = "initialize".to_owned();
            self.insert(event, Side::Client, id, method, Purpose::Initialize);
        }
    }

    /// Everything before now is unknown: open requests may have been answered and their ids reused,
    /// turns may have begun and ended.
    pub(super) fn forget_past(&mut self) {
        (self.open, self.incomplete) = (Default::default(), true);
        self.answered.clear();
        for session in self.sessions.values_mut() {
            (session.incomplete, session.turns, session.open) = (true, 0, 0);
        }
    }

    /// The requests without an answer, with the side that sent each, in order.
    pub(super) fn unanswered(&self) -> Vec<(Side, &OpenRequest)> {
        let of = |side: Side| {
            let open = side.of(&self.open).iter();
            open.map(move |(_, own)| (side, own))
        };
        let mut open: Vec<_> = of(Side::Client).chain(of(Side::Agent)).collect();
        open.sort_by_key(|(_, request)| request.n);
        open
    }

    /// Takes the request that an answer belongs to, or returns whether it is a second answer.
    pub(super) fn take_request(&mut self, message: &Message) -> Result<OpenRequest, bool> {
        let id = id_of(message);
        match message.to.of_mut(&mut self.open).remove(id) {
            Some((spelled, request)) => {
                self.answered.insert((message.to, spelled));
                Ok(request)
            }
            None => Err(self.answered.contains(&(message.to, id.to_owned()))),
        }
    }

    /// The problems of a message, whose tree is `tree` and which answers `request`. The tree is
    /// null when the body was not recorded.
    pub(super) fn check(
        &mut self,
        event: &RecordedEvent,
        message: &Message,
        tree: &Value,
        request: Option<OpenRequest>,
    ) -> Vec<Problem> {
        let mut found = Vec::new();
        let method = message.method.clone().unwrap_or_default();
        let from = message.to.other();
        match message.kind {
            Some(Kind::Request) => {
                let purpose = match tree {
                    Value::Null => Purpose::Other,
                    tree => self.request(from, &method, &tree["params"], &mut found),
                };
                self.insert(event, from, id_of(message), method, purpose);
            }
            _ if tree.is_null() => {}
            Some(Kind::Notification) => {
                self.notification(from, &method, &tree["params"], &mut found);
            }
            Some(kind) => {
                let success = kind == Kind::Result;
                let body = &tree[if success { "result" } else { "error" }];
                if let Some(request) = request {
                    self.answer(request.purpose, body, success, &mut found);
                }
            }
            None => {}
        }
        found
    }

    fn insert(
        &mut self,
        event: &RecordedEvent,
        from: Side,
        id: Id<'_>,
        method: String,
        purpose: Purpose,
    ) {
        if !id.is_value() {
            return;
        }
        let request = OpenRequest {
            n: event.n,
            t: event.t,
            method,
            purpose,
        };
        self.answered.remove(&(from, id.to_owned()));
        // The last request with an id counts.
        let open = from.of_mut(&mut self.open);
        open.remove(id);
        // There is no limit, and the id is free now.
        let _ = open.insert(id, request);
    }

    fn request(
        &mut self,
        from: Side,
        method: &str,
        params: &Value,
        found: &mut Vec<Problem>,
    ) -> Purpose {
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
        let v2 = self.v2;
        match (from, method) {
            (Side::Client, "initialize") => {
                if self.initializing || self.initialized {
                    found.push((&INITIALIZED_TWICE, String::new()));
                }
                self.initializing = true;
                self.client = params["clientCapabilities"].clone();
                Purpose::Initialize
            }
            (Side::Client, "session/new" | "session/fork") => Purpose::Open(None),
            (Side::Client, "session/load" | "session/resume") => {
                if method == "session/load"
                    && self.initialized
                    && self.agent.get("loadSession") != Some(&Value::Bool(true))
                {
                    found.push((&NOT_CAPABLE, "the agent has no loadSession".to_owned()));
                }
                self.session(session).loading += 1;
                Purpose::Open(Some(session.to_owned()))
            }
            (Side::Client, "session/prompt") => {
                let known = self.session(session);
                if !known.known && !known.incomplete {
                    found.push((&UNKNOWN_SESSION, session.to_owned()));
                }
                if v2 {
                    return Purpose::Other;
                }
                if known.open > 0 {
                    found.push((&TURN_IN_TURN, format!("{} open", known.open)));
                }
                known.open += 1;
                known.turns += 1;
                known.loaded = false;
                known.stray_reported = false;
                known.cancelled = false;
                Purpose::Prompt(session.to_owned())
            }
            (Side::Agent, "session/request_permission") => self.permission(session, params, found),
            (Side::Agent, _) if !v2 => {
                self.check_capability(method, found);
                Purpose::Other
            }
            _ => Purpose::Other,
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
            let name = name.trim_start_matches('/').replace('/', ".");
            found.push((&NOT_CAPABLE, format!("the client has no {name}")));
        }
    }

    fn permission(&mut self, session: &str, params: &Value, found: &mut Vec<Problem>) -> Purpose {
        let tool = params.pointer("/toolCall/toolCallId");
        let tool = tool.and_then(Value::as_str).unwrap_or_default();
        let v2 = self.v2;
        let known = self.session(session);
        if !known.tools.contains_key(tool) && !known.incomplete && !v2 {
            found.push((&PERMISSION_UNKNOWN_TOOL, tool.to_owned()));
        }
        let cancelled = known.cancelled;
        let options = params["options"].as_array().into_iter().flatten();
        let options = options.filter_map(|option| Some(option["optionId"].as_str()?.to_owned()));
        Purpose::Permission(Permission {
            session: session.to_owned(),
            options: options.collect(),
            cancelled,
        })
    }

    fn notification(&mut self, from: Side, method: &str, params: &Value, found: &mut Vec<Problem>) {
        let session = params["sessionId"].as_str().unwrap_or_default();
        if from == Side::Client && method == "session/cancel" && !self.v2 {
            let known = self.session(session);
            known.cancelled = known.open > 0;
            for request in Side::Agent.of_mut(&mut self.open).values_mut() {
                if let Purpose::Permission(permission) = &mut request.purpose {
                    permission.cancelled |= permission.session == session;
                }
            }
        }
        if from == Side::Agent && method == "session/update" {
            let opens = |request: &OpenRequest| matches!(request.purpose, Purpose::Open(None));
            let open = Side::Client.of(&self.open);
            let opening = open.iter().any(|(_, request)| opens(request));
            self.update(session, &params["update"], opening, found);
        }
    }

    fn update(&mut self, session: &str, update: &Value, opening: bool, found: &mut Vec<Problem>) {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        let v2 = self.v2;
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
        if v2 {
            return;
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

    fn answer(&mut self, purpose: Purpose, body: &Value, success: bool, found: &mut Vec<Problem>) {
        match purpose {
            Purpose::Other => {}
            Purpose::Initialize => {
                self.initializing = false;
                self.initialized |= success;
                self.agent = body["agentCapabilities"].clone();
            }
            Purpose::Open(loaded) => {
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
            Purpose::Prompt(session) => self.end_turn(&session, body, found),
            Purpose::Permission(permission) => {
                let text = |place| body.pointer(place).and_then(Value::as_str);
                let outcome = text("/outcome/outcome");
                let option = text("/outcome/optionId").unwrap_or_default();
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

    fn end_turn(&mut self, session: &str, body: &Value, found: &mut Vec<Problem>) {
        let known = self.session(session);
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

fn id_of(message: &Message) -> Id<'_> {
    Id::of_json(message.id.as_deref().unwrap_or("null").as_bytes())
}

/// Whether a path is absolute on Unix or on Windows; the recording may come from either.
fn is_absolute(path: &str) -> bool {
    let drive =
        matches!(path.as_bytes(), [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
    path.starts_with('/') || path.starts_with("\\\\") || drive
}
