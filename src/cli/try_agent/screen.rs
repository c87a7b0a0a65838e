//! Shows a conversation to the person at the terminal, or as lines of JSON to a program.

use std::io;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::report::Report;
use super::session::{Frontend, Shown};
use crate::cli::console::Output;
use crate::cli::rpc_client::Failure;
use crate::cli::text::Tone;
use crate::cli::{exit, stderr};
use analysis::text::counted;
use jsonrpc::printable;

/// Most lines of a diff or an output that are shown.
const MAX_LINES: usize = 40;

/// Stdout.
pub(super) struct Screen {
    out: Output,
    json: bool,
    /// The kind of chunk that the cursor stands behind, if it stands in a line.
    within: Option<&'static str>,
}

impl Screen {
    pub(super) fn new(json: bool) -> Self {
        Self {
            out: Output::new(),
            json,
            within: None,
        }
    }

    /// Shows why the conversation failed.
    pub(super) fn fail(&mut self, why: &str) {
        self.end_line();
        self.out.flush();
        let why = printable(why.as_bytes());
        stderr::print(&format!("acp-relay: {why}"));
    }

    /// Shows what the relay did.
    pub(super) fn report(&mut self, report: &Report<'_>) {
        self.end_line();
        if self.json {
            let mut report = report.json();
            report["event"] = json!("report");
            self.json_line(&report);
            return;
        }
        let (deviations, lines) = report.lines();
        self.out.line("");
        for line in deviations.iter().take(MAX_LINES) {
            let line = format!("  deviation  {line}");
            self.out
                .line(self.out.paint.line(0, Some(Tone::Odd), &line));
        }
        for line in lines {
            self.out.line(self.out.paint.tone(Tone::Faint, &line));
        }
    }

    /// The exit code, unless stdout failed.
    pub(super) fn done(self, code: ExitCode) -> ExitCode {
        match code == ExitCode::SUCCESS {
            true => self.out.done(exit::SUCCESS),
            false => {
                let mut out = self.out;
                out.flush();
                code
            }
        }
    }

    fn show_text(&mut self, shown: &Shown<'_>) {
        match shown {
            Shown::Call(_) => {}
            Shown::Initialized(about, dialect, _) => self.introduce(about, *dialect),
            Shown::LoginRequired(methods, message) => {
                self.line(Tone::Bad, &format!("the agent requires a login: {message}"));
                for method in items(methods) {
                    let [name, about] = ["name", "description"].map(|key| word(&method[key]));
                    self.line(Tone::Odd, &format!("  {name}  {about}"));
                }
                self.line(
                    Tone::Odd,
                    "Log in with the agent's own program, where it runs.",
                );
            }
            Shown::Session(session) => {
                let modes =
                    items(&session["modes"]["availableModes"]).map(|mode| word(&mode["id"]));
                let modes: Vec<&str> = modes.collect();
                if !modes.is_empty() {
                    self.line(Tone::Faint, &format!("  modes      {}", modes.join(", ")));
                }
            }
            Shown::Update(update) => self.update(update),
            Shown::Permission(params) => {
                let call = &params["toolCall"];
                self.line(Tone::Strong, &format!("? {}", title(call)));
                self.content(call);
                for (index, option) in items(&params["options"]).enumerate() {
                    let name = word(&option["name"]);
                    self.line(Tone::Client, &format!("  {}  {name}", index + 1));
                }
            }
            Shown::Question(question) => {
                self.end_line();
                self.out.bytes(self.out.paint.tone(Tone::Strong, question));
            }
            Shown::Answer(option) => {
                let name = option.map_or("cancelled", |option| word(&option["name"]));
                self.line(Tone::Client, &format!("▶ {name}"));
            }
            Shown::Unsupported(method) => {
                let text = format!("the agent called {method}, which this client does not have");
                self.line(Tone::Odd, &text);
            }
            Shown::Stopped(reason) => self.line(Tone::Agent, &format!("◀ {reason}")),
        }
    }

    /// Shows who the agent is and what it can do.
    fn introduce(&mut self, about: &Value, dialect: Option<&str>) {
        let info = &about["agentInfo"];
        let name = ["title", "name"].map(|key| word(&info[key]));
        let name = name.into_iter().find(|name| !name.is_empty());
        let name = name.unwrap_or("an agent without a name");
        let version = &about["protocolVersion"];
        let title = format!(
            "{name} {}, protocol version {version}",
            word(&info["version"])
        );
        self.line(Tone::Strong, &title);
        let can = about["agentCapabilities"].as_object();
        let mut list = Vec::new();
        for (name, value) in can.into_iter().flatten() {
            capabilities(name, value, &mut list);
        }
        let list = if list.is_empty() {
            "only the required methods".to_owned()
        } else {
            list.join(", ")
        };
        self.line(Tone::Faint, &format!("  can        {list}"));
        let logins: Vec<&str> = items(&about["authMethods"])
            .map(|one| word(&one["name"]))
            .collect();
        if !logins.is_empty() {
            self.line(Tone::Faint, &format!("  login      {}", logins.join(", ")));
        }
        if let Some(dialect) = dialect {
            self.line(Tone::Faint, &format!("  dialect    {dialect}"));
        }
    }

    fn update(&mut self, update: &Value) {
        let kind = word(&update["sessionUpdate"]);
        let text = word(&update["content"]["text"]);
        match kind {
            "agent_message_chunk" => self.chunk("message", None, text),
            "agent_thought_chunk" => self.chunk("thought", Some(Tone::Faint), text),
            "user_message_chunk" => self.chunk("user", Some(Tone::Client), text),
            "tool_call" | "tool_call_update" => {
                let status = word(&update["status"]);
                let line = format!("• {} {status}", title(update));
                self.line(Tone::Agent, line.trim_end());
                self.content(update);
            }
            "plan" | "plan_update" => {
                let plan = match kind {
                    "plan" => update,
                    _ => &update["plan"],
                };
                self.lines(' ', Tone::Faint, word(&plan["content"]));
                for entry in items(&plan["entries"]) {
                    let [content, status] = ["content", "status"].map(|key| word(&entry[key]));
                    self.line(Tone::Faint, &format!("  plan  {content} ({status})"));
                }
            }
            "available_commands_update" => {
                let names = items(&update["availableCommands"]).map(|one| word(&one["name"]));
                let names: Vec<&str> = names.collect();
                self.line(Tone::Faint, &format!("  commands   {}", names.join(", ")));
            }
            "subagent_update" => {
                let name = word(&update["title"]);
                let state = word(&update["state"]["state"]);
                self.line(Tone::Faint, &format!("  subagent   {name} {state}"));
            }
            other => self.line(Tone::Faint, &format!("  {other}")),
        }
    }

    /// The diffs and texts of a tool call.
    fn content(&mut self, call: &Value) {
        for content in items(&call["content"]) {
            match word(&content["type"]) {
                "diff" => {
                    self.line(Tone::Faint, &format!("  {}", word(&content["path"])));
                    self.lines('-', Tone::Bad, word(&content["oldText"]));
                    self.lines('+', Tone::Agent, word(&content["newText"]));
                }
                _ => self.lines(' ', Tone::Faint, word(&content["content"]["text"])),
            }
        }
    }

    fn lines(&mut self, sign: char, tone: Tone, text: &str) {
        for line in text.lines().take(MAX_LINES) {
            self.line(tone, &format!("  {sign} {line}"));
        }
        let more = text.lines().count().saturating_sub(MAX_LINES);
        if more > 0 {
            self.line(
                Tone::Faint,
                &format!("    and {}", counted(more as u64, "more line")),
            );
        }
    }

    /// A part of a text, behind the part before it.
    fn chunk(&mut self, kind: &'static str, tone: Option<Tone>, text: &str) {
        if self.within != Some(kind) {
            self.end_line();
        }
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.out.line("");
            }
            let line = printable(line.replace('\t', "    ").as_bytes());
            let line = tone.map_or_else(|| line.clone(), |tone| self.out.paint.tone(tone, &line));
            self.out.bytes(line);
        }
        self.within = Some(kind);
    }

    /// A line of JSON, in which no character controls a terminal.
    fn json_line(&mut self, value: &Value) {
        let text = value.to_string();
        let mut line = String::with_capacity(text.len());
        for character in text.chars() {
            match character {
                '\u{7f}'..='\u{9f}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}' => {
                    line.push_str(&format!("\\u{:04x}", u32::from(character)));
                }
                other => line.push(other),
            }
        }
        self.out.line(line);
    }

    fn line(&mut self, tone: Tone, text: &str) {
        self.end_line();
        let text = printable(text.replace('\t', "    ").as_bytes());
        self.out.line(self.out.paint.tone(tone, &text));
    }

    fn end_line(&mut self) {
        if self.within.take().is_some() {
            self.out.line("");
        }
    }
}

impl Frontend for Screen {
    fn show(&mut self, shown: &Shown<'_>) -> io::Result<()> {
        if !self.json {
            self.show_text(shown);
        } else if let Some(event) = as_json(shown) {
            self.json_line(&event);
        }
        self.out.flush();
        Ok(())
    }

    fn perform(&mut self, method: &str, _params: &Value) -> Result<Option<Value>, Failure> {
        self.show(&Shown::Unsupported(method))?;
        Ok(None)
    }
}

/// The capabilities that a member of `agentCapabilities` states, as `name` or `name.part`.
fn capabilities(name: &str, value: &Value, list: &mut Vec<String>) {
    match value {
        Value::Bool(true) => list.push(name.to_owned()),
        Value::Object(parts) if name != "_meta" => {
            if parts.is_empty() {
                list.push(name.to_owned());
            }
            for (part, value) in parts {
                capabilities(&format!("{name}.{part}"), value, list);
            }
        }
        _ => {}
    }
}

fn title(call: &Value) -> String {
    let names = ["title", "toolCallId"].map(|key| word(&call[key]));
    let named = names.into_iter().find(|name| !name.is_empty());
    named.unwrap_or_default().to_owned()
}

/// The event of a program. A question follows the event of what is asked.
fn as_json(shown: &Shown<'_>) -> Option<Value> {
    Some(match shown {
        Shown::Call(_) | Shown::Question(_) => return None,
        Shown::Initialized(result, dialect, framing) => json!({
            "event": "initialized", "result": result, "dialect": dialect, "framing": framing,
        }),
        Shown::LoginRequired(methods, message) => {
            json!({ "event": "login_required", "authMethods": methods, "message": message })
        }
        Shown::Session(result) => json!({ "event": "session", "result": result }),
        Shown::Update(update) => json!({ "event": "update", "update": update }),
        Shown::Permission(params) => json!({ "event": "permission", "params": params }),
        Shown::Answer(option) => json!({ "event": "answer", "option": option }),
        Shown::Unsupported(method) => json!({ "event": "unsupported", "method": method }),
        Shown::Stopped(reason) => json!({ "event": "stopped", "stopReason": reason }),
    })
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
