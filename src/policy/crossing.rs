//! Applies the policy of one conversation: each message is checked, and changed where necessary.

use super::map::{Map, Way};
use super::masks;
use super::places::{Place, Places};
use super::roots::{Disk, Roots};
use super::rules::Rules;
use crate::dialect::Body;
use crate::jsonrpc::{Envelope, Frame, Kind, Side};

/// The calls with which a client opens a session without an id.
const OPENS: [&str; 2] = ["session/new", "session/fork"];
/// The calls with which it opens one by its id.
const REOPENS: [&str; 2] = ["session/load", "session/resume"];
/// The prefix of calls that read or write a file.
const FILES: &str = "fs/";

/// The policy between a client and its agent.
#[derive(Debug)]
pub struct Border {
    rules: Rules,
    map: Map,
    places: Places,
    roots: Roots,
}

/// The decision about a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Crossing {
    /// It passes unchanged.
    Same,
    /// It passes as this frame, with the reason.
    Changed(Frame, String),
    /// It does not pass, with the reason.
    Denied(String),
}

impl Border {
    /// A policy with these rules and path mappings.
    #[must_use]
    pub fn new(mut rules: Rules, map: Map, disk: Box<dyn Disk>) -> Self {
        let common = std::mem::take(&mut rules.roots);
        Self {
            places: if map.is_empty() {
                Places::default()
            } else {
                Places::canonical()
            },
            roots: Roots::new(disk, common),
            rules,
            map,
        }
    }

    /// Whether some calls of the agent may be denied.
    #[must_use]
    pub fn judges(&self) -> bool {
        !self.rules.is_open()
    }

    /// Decides about a canonical message of `from`. `asked` is the method that an answer is for.
    pub fn cross(
        &mut self,
        from: Side,
        frame: &Frame,
        at: &Envelope,
        asked: Option<&str>,
    ) -> Crossing {
        let way = match from {
            Side::Client => Way::Out,
            Side::Agent => Way::In,
        };
        let calls = matches!(at.kind, Kind::Request | Kind::Notification);
        let method = match asked {
            Some(asked) if !calls => asked.to_owned(),
            _ => at.method(frame).into_owned(),
        };
        let judged = from == Side::Agent && calls;
        let asks = at.kind == Kind::Request;
        if judged && let Err(why) = self.rules.judge(&method, asks) {
            return Crossing::Denied(why);
        }
        if self.rules.guarded && from == Side::Client {
            self.learn(&method, frame, at);
        }
        let places = match at.kind {
            Kind::Request | Kind::Notification => self.places.in_params(&method),
            Kind::Result => self.places.in_result(&method),
            Kind::Error => &[],
        };
        if places.is_empty() && !self.looks_into(from, at.kind, &method) {
            return Crossing::Same;
        }
        let mut body = Body::of(frame, at);
        let mut changes = Vec::new();
        let moved = move_all(&self.map, way, places, &mut body);
        if moved > 0 {
            changes.push(format!(
                "{moved} paths mapped to the other machine"
            ));
        }
        if judged
            && self.rules.guarded
            && let Err(why) = self.judge_params(&method, &mut body)
        {
            return Crossing::Denied(format!("{method} is denied: {why}"));
        }
        changes.extend(self.mask(from, frame, at, &method, &mut body));
        if changes.is_empty() {
            return Crossing::Same;
        }
        Crossing::Changed(body.into_frame(frame, at), changes.join("; "))
    }

    /// Removes from a message what the other side must not learn; returns a description of it.
    fn mask(
        &mut self,
        from: Side,
        frame: &Frame,
        at: &Envelope,
        method: &str,
        body: &mut Body<'_>,
    ) -> Option<String> {
        match (from, at.kind, method) {
            (Side::Client, Kind::Request, "initialize") if !self.rules.is_open() => {
                let hidden = masks::hide(body, &self.rules);
                (!hidden.is_empty()).then(|| format!("not announced: {}", hidden.join(", ")))
            }
            (Side::Agent, Kind::Result | Kind::Error, _) if self.rules.guarded => {
                let logins: &[&str] = match at.kind {
                    Kind::Error => &["data", "authMethods"],
                    _ if method == "initialize" => &["authMethods"],
                    _ => &[],
                };
                let count = masks::strip_logins(body, logins);
                let session = body.strings(&["sessionId"]).pop();
                self.roots.answer(&at.id(frame).to_owned(), session);
                let what = "logins that run a program of the agent's choice removed";
                (count > 0).then(|| format!("{count} {what}"))
            }
            _ => None,
        }
    }

    /// Whether the rules need the body of such a message.
    fn looks_into(&self, from: Side, kind: Kind, method: &str) -> bool {
        if method == "initialize" {
            return !self.rules.is_open();
        }
        self.rules.guarded
            && match (from, kind) {
                (Side::Agent, Kind::Result) => OPENS.contains(&method),
                // It may contain ways to log in.
                (Side::Agent, Kind::Error) => true,
                (Side::Agent, Kind::Request | Kind::Notification) => {
                    method.starts_with(FILES) || method.starts_with("elicitation/")
                }
                _ => false,
            }
    }

    /// Records the folders that a session is opened with.
    fn learn(&mut self, method: &str, frame: &Frame, at: &Envelope) {
        if at.kind != Kind::Request || !is_opening(method) {
            return;
        }
        let mut body = Body::of(frame, at);
        let mut folders = body.strings(&["cwd"]);
        folders.extend(body.strings(&["additionalDirectories", "*"]));
        if REOPENS.contains(&method) {
            if let Some(session) = body.strings(&["sessionId"]).pop() {
                self.roots.give(session, folders);
            }
        } else {
            self.roots.ask(at.id(frame).to_owned(), folders);
        }
    }

    /// Checks the parameters of an agent's call.
    fn judge_params(&self, method: &str, body: &mut Body<'_>) -> Result<(), String> {
        if method.starts_with(FILES) {
            let session = only(body, "sessionId")?;
            let path = only(body, "path")?;
            return self.roots.judge(&session, &path).map_err(|why| {
                format!("{why} (--root DIR lets a remote agent have the files of another folder)")
            });
        }
        if method == "elicitation/create" {
            let is_form = only(body, "mode").is_ok_and(|mode| mode == "form");
            if is_form && body.count(&["url"]) == 0 {
                return Ok(());
            }
            if !is_of_the_web(&only(body, "url")?) {
                return Err("a remote agent may have web pages opened and nothing else".to_owned());
            }
        }
        Ok(())
    }
}

fn is_of_the_web(url: &str) -> bool {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        ["http", "https"]
            .iter()
            .any(|web| scheme.eq_ignore_ascii_case(web))
    })
}

fn is_opening(method: &str) -> bool {
    OPENS.contains(&method) || REOPENS.contains(&method)
}

/// The only string of that name: with two, the client might read the one that was not checked.
fn only(body: &mut Body<'_>, name: &str) -> Result<String, String> {
    let count = body.count(&[name]);
    match body.strings(&[name]).pop() {
        Some(text) if count == 1 => Ok(text),
        _ => Err(format!("it must have exactly one `{name}`, a string")),
    }
}

/// Maps all paths of a message to the other machine; returns how many changed.
fn move_all(map: &Map, way: Way, places: &[Place], body: &mut Body<'_>) -> usize {
    let mut moved = 0;
    for place in places {
        let names: Vec<&str> = place.iter().map(String::as_str).collect();
        moved += body.replace(&names, |text| map.carry(way, text));
    }
    moved
}
