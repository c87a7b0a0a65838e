//! Applies the policy of one conversation: each message is checked, and changed where necessary.

use jsonptr::PointerBuf;

use super::capabilities;
use super::folder_check::{self, FolderCheck, OPENING, REOPENING, is_opening};
use super::path_fields::PathFields;
use super::path_map::PathMap;
use super::roots::{Disk, SessionRoots};
use super::rules::PolicyRules;
use dialect::MessageBody;
use jsonrpc::text::{members, same_ignoring_case, same_name};
use jsonrpc::{Envelope, Frame, Kind, MEMBER_NAMES, Side};

/// The prefix of calls that read or write a file.
const FILES: &str = "fs/";

/// The members of calls that are checked, beside those of the envelope.
const CHECKED: [&str; 4] = ["sessionId", "path", "url", "mode"];

/// The call that may open a web page.
const ELICITATION: &str = "elicitation/create";

/// The policy between a client and its agent.
#[derive(Debug)]
pub struct MessagePolicy {
    rules: PolicyRules,
    paths: PathMap,
    path_fields: PathFields,
    roots: SessionRoots,
    /// The agent uses the files and commands of its own machine, not of the client's.
    has_own_files: bool,
    /// It is announced to the relay at the agent that the agent uses the client's files.
    announces_files: bool,
    folder_check: Option<FolderCheck>,
    /// The names of extensions in the client's capabilities.
    extensions: Vec<String>,
}

/// The decision about a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    /// It passes unchanged.
    Unchanged,
    /// It passes as this frame, with the reason.
    Changed(Frame, String),
    /// It does not pass, with the reason.
    Denied(String),
}

impl MessagePolicy {
    /// A policy with these rules and path mappings.
    #[must_use]
    pub fn new(mut rules: PolicyRules, paths: PathMap, disk: Box<dyn Disk>) -> Self {
        let common = std::mem::take(&mut rules.roots);
        Self {
            path_fields: if paths.is_empty() {
                PathFields::default()
            } else {
                PathFields::canonical()
            },
            roots: SessionRoots::new(disk, common),
            rules,
            paths,
            has_own_files: false,
            announces_files: false,
            folder_check: None,
            extensions: Vec::new(),
        }
    }

    /// For an agent that uses the files and commands of its own machine: of the client's it may use
    /// those that the rules allow by name.
    #[must_use]
    pub const fn with_own_files(mut self) -> Self {
        self.has_own_files = true;
        self
    }

    /// For an agent that uses the client's files, which is announced to the relay there.
    #[must_use]
    pub const fn announcing_files(mut self) -> Self {
        self.announces_files = true;
        self
    }

    /// For an agent on this machine, whose client may be elsewhere.
    #[must_use]
    pub const fn with_folder_check(mut self, check: FolderCheck) -> Self {
        self.folder_check = Some(check);
        self
    }

    /// Whether some calls of the agent may be denied.
    #[must_use]
    pub const fn restricts_calls(&self) -> bool {
        !self.rules.is_open() || self.has_own_files
    }

    /// Whether a message of that kind may be changed or denied.
    #[must_use]
    pub fn concerns(&self, from: Side, kind: Kind) -> bool {
        let opens = from == Side::Client && kind == Kind::Request;
        self.concerns_all() || opens && self.folder_check.is_some()
    }

    fn concerns_all(&self) -> bool {
        self.restricts_calls() || self.announces_files || !self.paths.is_empty()
    }

    /// Decides about a canonical message of `from`. For an answer, `request_method` is the method
    /// of its request.
    pub fn decide(
        &mut self,
        from: Side,
        frame: &Frame,
        at: &Envelope,
        request_method: Option<&str>,
    ) -> Decision {
        if let Some(check) = &mut self.folder_check
            && from == Side::Client
            && at.kind == Kind::Request
        {
            match check.check(frame, at) {
                Ok(None) => {}
                Ok(Some((frame, what))) => return Decision::Changed(frame, what),
                Err(why) => return Decision::Denied(why),
            }
        }
        if !self.concerns_all() {
            return Decision::Unchanged;
        }
        let calls = matches!(at.kind, Kind::Request | Kind::Notification);
        let method = match request_method {
            Some(method) if !calls => method.to_owned(),
            _ => at.method(frame).into_owned(),
        };
        let checked = from == Side::Agent && calls;
        let is_request = at.kind == Kind::Request;
        if checked && let Err(why) = self.check_method(&method, is_request) {
            return Decision::Denied(why);
        }
        if self.rules.guarded
            && from == Side::Agent
            && let Err(why) = check_spelling(&method, frame, at)
        {
            return Decision::Denied(format!("{method} is denied: {why}"));
        }
        if self.rules.guarded && from == Side::Client {
            self.record_folders(&method, frame, at);
        }
        let fields = match at.kind {
            Kind::Request | Kind::Notification => self.path_fields.in_params(&method),
            Kind::Result => self.path_fields.in_result(&method),
            Kind::Error => &[],
        };
        if fields.is_empty() && !self.needs_body(from, at.kind, &method) {
            return Decision::Unchanged;
        }
        let mut body = MessageBody::of(frame, at);
        let mut changes = Vec::new();
        let mapped = map_paths(&self.paths, from.other(), fields, &mut body);
        if mapped > 0 {
            changes.push(format!("{mapped} paths mapped to the other machine"));
        }
        if checked
            && self.rules.guarded
            && let Err(why) = self.check_params(&method, &mut body)
        {
            return Decision::Denied(format!("{method} is denied: {why}"));
        }
        changes.extend(self.mask(from, frame, at, &method, &mut body));
        if changes.is_empty() {
            return Decision::Unchanged;
        }
        Decision::Changed(body.into_frame(frame, at), changes.join("; "))
    }

    /// Removes from a message what the other side must not learn; returns a description of it.
    fn mask(
        &mut self,
        from: Side,
        frame: &Frame,
        at: &Envelope,
        method: &str,
        body: &mut MessageBody<'_>,
    ) -> Option<String> {
        match (from, at.kind, method) {
            (Side::Client, Kind::Request, "initialize") => {
                if self.rules.guarded {
                    self.extensions = capabilities::extensions(body);
                }
                if self.announces_files {
                    body.put_text(folder_check::PLACE, folder_check::WORD);
                }
                let is_denied = |method: &str| self.check_method(method, true).is_err();
                let hidden = capabilities::hide_capabilities(
                    body,
                    is_denied,
                    self.rules.guarded,
                    self.has_own_files,
                );
                let hidden = (!hidden.is_empty()).then(|| hidden.join(", "));
                match (hidden, self.announces_files) {
                    (Some(hidden), _) => Some(format!("not announced: {hidden}")),
                    (None, true) => Some("announced whose files the agent uses".to_owned()),
                    (None, false) => None,
                }
            }
            (Side::Agent, Kind::Result | Kind::Error, _) if self.rules.guarded => {
                let logins: &[&str] = match at.kind {
                    Kind::Error => &["data", "authMethods"],
                    _ if method == "initialize" => &["authMethods"],
                    _ => &[],
                };
                let count = capabilities::strip_logins(body, logins);
                let session = body.strings(&["sessionId"]).pop();
                self.roots.answer_pending(at.id(frame), session);
                let what = "logins that run a program of the agent's choice removed";
                (count > 0).then(|| format!("{count} {what}"))
            }
            _ => None,
        }
    }

    /// Whether the agent may call `method`.
    fn check_method(&self, method: &str, is_request: bool) -> Result<(), String> {
        let extensions = &self.extensions;
        self.rules
            .check(method, is_request, self.has_own_files, extensions)
    }

    /// Whether the rules need the body of such a message.
    fn needs_body(&self, from: Side, kind: Kind, method: &str) -> bool {
        if method == "initialize" {
            return self.restricts_calls() || self.announces_files;
        }
        self.rules.guarded
            && match (from, kind) {
                (Side::Agent, Kind::Result) => OPENING.contains(&method),
                // It may contain ways to log in.
                (Side::Agent, Kind::Error) => true,
                (Side::Agent, Kind::Request | Kind::Notification) => {
                    method.starts_with(FILES) || method == ELICITATION
                }
                _ => false,
            }
    }

    /// Records the folders that a session is opened with.
    fn record_folders(&mut self, method: &str, frame: &Frame, at: &Envelope) {
        if at.kind != Kind::Request || !is_opening(method) {
            return;
        }
        let mut body = MessageBody::of(frame, at);
        let mut folders = body.strings(&["cwd"]);
        folders.extend(body.strings(&["additionalDirectories", "*"]));
        if REOPENING.contains(&method) {
            if let Some(session) = body.strings(&["sessionId"]).pop() {
                self.roots.set(session, folders);
            }
        } else {
            self.roots.add_pending(at.id(frame), folders);
        }
    }

    /// Checks the parameters of an agent's call.
    fn check_params(&self, method: &str, body: &mut MessageBody<'_>) -> Result<(), String> {
        if method.starts_with(FILES) {
            let session = single(body, "sessionId")?;
            let path = single(body, "path")?;
            return self.roots.check(&session, &path).map_err(|why| {
                format!("{why} (--root DIR lets the agent use the files of another folder)")
            });
        }
        if method == ELICITATION {
            let is_form = single(body, "mode").is_ok_and(|mode| mode == "form");
            if is_form && body.count(&["url"]) == 0 {
                return Ok(());
            }
            if !is_web_url(&single(body, "url")?) {
                return Err("a guarded agent may open web pages and nothing else".to_owned());
            }
        }
        Ok(())
    }
}

fn is_web_url(url: &str) -> bool {
    let scheme = url.split(':').next().unwrap_or_default();
    url.contains(':') && ["http", "https"].contains(&scheme.to_ascii_lowercase().as_str())
}

/// The only string of that name: with two, the client might read the one that was not checked.
fn single(body: &mut MessageBody<'_>, name: &str) -> Result<String, String> {
    let count = body.count(&[name]);
    match body.strings(&[name]).pop() {
        Some(text) if count == 1 => Ok(text),
        _ => Err(format!("it must have exactly one `{name}`, a string")),
    }
}

/// Checks that no member would be taken for a checked one by a client that ignores case.
fn check_spelling(method: &str, frame: &Frame, at: &Envelope) -> Result<(), String> {
    let is_checked = method.starts_with(FILES) || method == ELICITATION;
    let whole = at.unknown_members.then(|| frame.as_bytes());
    let params = at.body(frame).filter(|_| is_checked);
    for (raw, _) in whole.into_iter().chain(params).flat_map(members) {
        let is_other = |name: &&&str| same_ignoring_case(raw, name) && !same_name(raw, name);
        if let Some(name) = MEMBER_NAMES.iter().chain(&CHECKED).find(is_other) {
            return Err(format!(
                "a member's name differs from `{name}` only in case"
            ));
        }
    }
    Ok(())
}

/// Maps all paths of a message to the other machine; returns how many changed.
fn map_paths(
    paths: &PathMap,
    to: Side,
    fields: &[PointerBuf],
    body: &mut MessageBody<'_>,
) -> usize {
    let mut mapped = 0;
    for field in fields {
        let names: Vec<String> = field.tokens().map(|name| name.decoded().into()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        mapped += body.replace(&names, |text| paths.map(to, text));
    }
    mapped
}
