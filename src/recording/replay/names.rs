//! Which name of the live conversation stands for which recorded one: sessions, terminals, the
//! working directory.
//!
//! Names are replaced in the text of a message, so that all its other bytes stay as they were
//! recorded. Not here: ids of requests, which stand in the envelope.

use serde_json::Value;

use crate::wire::Frame;

/// Members whose value names something for the rest of the conversation.
const NAMING: [&str; 2] = ["sessionId", "terminalId"];

/// Pairs of names. The latest pair counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Whole strings: recorded, live.
    words: Vec<(String, String)>,
    /// Directories: recorded, live.
    folders: Vec<(String, String)>,
}

impl Names {
    /// Takes the names that two bodies give to the same things.
    pub(super) fn bind(&mut self, recorded: &Value, live: &Value) {
        let text = |body: &Value, name| body.get(name)?.as_str().map(str::to_owned);
        for name in NAMING {
            if let (Some(recorded), Some(live)) = (text(recorded, name), text(live, name)) {
                self.word(recorded, live);
            }
        }
        if let (Some(recorded), Some(live)) = (text(recorded, "cwd"), text(live, "cwd")) {
            self.folder(recorded, live);
        }
    }

    /// `live` stands for `recorded` from now on.
    pub(super) fn word(&mut self, recorded: String, live: String) {
        self.words.retain(|pair| pair.1 != live);
        self.words.push((recorded, live));
    }

    /// The same for a directory.
    pub(super) fn folder(&mut self, recorded: String, live: String) {
        if recorded.len() > 1 && live.len() > 1 {
            self.folders.retain(|pair| pair.0 != recorded);
            self.folders.push((recorded, live));
        }
    }

    /// Whether a live name is taken.
    pub(super) fn knows(&self, live: &str) -> bool {
        self.words.iter().any(|pair| pair.1 == live)
    }

    /// The recorded name that a live one stands for, if it has one.
    pub(super) fn recorded(&self, live: &str) -> Option<&str> {
        let pair = self.words.iter().rev().find(|pair| pair.1 == live)?;
        Some(&pair.0)
    }

    /// The live name for a recorded one.
    pub(super) fn live<'a>(&'a self, recorded: &'a str) -> &'a str {
        let pair = self.words.iter().rev().find(|pair| pair.0 == recorded);
        pair.map_or(recorded, |pair| &pair.1)
    }

    /// A recorded message with the live names.
    pub(super) fn said(&self, frame: &Frame) -> Frame {
        let mut text: Option<Vec<u8>> = None;
        let mut seen: Vec<&str> = Vec::new();
        for (recorded, _) in self.words.iter().rev() {
            let live = self.live(recorded);
            if live == recorded || seen.contains(&recorded.as_str()) {
                continue;
            }
            seen.push(recorded);
            let (from, to) = (Value::from(recorded.as_str()), Value::from(live));
            let now = text.as_deref().unwrap_or_else(|| frame.as_bytes());
            let changed = replace(
                now,
                from.to_string().as_bytes(),
                to.to_string().as_bytes(),
                |_| true,
            );
            text = changed.or(text);
        }
        for (recorded, live) in self.folders.iter().filter(|pair| pair.0 != pair.1) {
            let inner = |text: &str| Value::from(text).to_string().trim_matches('"').to_owned();
            let now = text.as_deref().unwrap_or_else(|| frame.as_bytes());
            let changed = replace(
                now,
                inner(recorded).as_bytes(),
                inner(live).as_bytes(),
                ends_name,
            );
            text = changed.or(text);
        }
        text.map_or_else(|| frame.clone(), Frame::from)
    }

    /// A live body with the recorded names.
    pub(super) fn heard(&self, body: &Value) -> Value {
        match body {
            Value::String(text) => Value::String(self.heard_text(text)),
            Value::Array(all) => all.iter().map(|one| self.heard(one)).collect(),
            Value::Object(members) => {
                let members = members.iter();
                let members = members.map(|(name, value)| (name.clone(), self.heard(value)));
                Value::Object(members.collect())
            }
            other => other.clone(),
        }
    }

    fn heard_text(&self, text: &str) -> String {
        if let Some(recorded) = self.recorded(text) {
            return recorded.to_owned();
        }
        let mut text = text.to_owned();
        for (recorded, live) in self.folders.iter().filter(|pair| pair.0 != pair.1) {
            let changed = replace(
                text.as_bytes(),
                live.as_bytes(),
                recorded.as_bytes(),
                ends_name,
            );
            if let Some(changed) = changed.and_then(|bytes| String::from_utf8(bytes).ok()) {
                text = changed;
            }
        }
        text
    }
}

/// Whether a directory's name ends before `next`.
fn ends_name(next: Option<u8>) -> bool {
    !next.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// The text with `to` for each `from` that is followed by what `ends` it; `None` if there is none.
fn replace(text: &[u8], from: &[u8], to: &[u8], ends: fn(Option<u8>) -> bool) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut done = 0;
    for at in memchr::memmem::find_iter(text, from) {
        let end = at + from.len();
        if at >= done && ends(text.get(end).copied()) {
            out.extend_from_slice(&text[done..at]);
            out.extend_from_slice(to);
            done = end;
        }
    }
    (done > 0).then(|| {
        out.extend_from_slice(&text[done..]);
        out
    })
}
