//! Replaces values that vary between runs by stable names.
//!
//! `sessionId`, `toolCallId`, `terminalId`, `messageId` and `requestId` are named by kind and
//! order: `‹session 1›`, `‹tool 3›`. Once named, a value is replaced wherever it is a whole string,
//! and a session's id and working directory also within strings. A session that is only listed gets
//! no number: an agent's memory of other conversations must not change the names in this one.
//! UUIDs, times (RFC 3339), numbers whose member denotes a time, a duration or a process, and the
//! hashes of redaction are blanked.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::folder_names::{find_folder, is_long};

/// Minimum length of ids that are replaced within strings; shorter ones may occur by chance.
const MIN_LEN: usize = 8;

/// The name of a working directory.
const FOLDER: &str = "‹cwd›";

/// Members of `_meta` that trace a single run (W3C Trace Context).
const TRACE_MEMBERS: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// Endings of members whose numbers vary between runs, in lower case and without `_`. Agents
/// forward what their tools report: `started_at_ms` and `process_id` (codex-acp), `durationMs`.
const MEASUREMENTS: [&str; 12] = [
    "atms",
    "duration",
    "durationms",
    "durationmillis",
    "durationseconds",
    "elapsed",
    "elapsedms",
    "latencyms",
    "pid",
    "processid",
    "timestamp",
    "timestampms",
];

/// The names assigned so far.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    /// Names by scope (the session's name) and value.
    known: HashMap<(Option<String>, String), String>,
    /// The number of names of a kind in a scope.
    counts: HashMap<(&'static str, Option<String>), u64>,
    /// The ids and the folders that are replaced within strings, the longest first.
    ids: Vec<(String, String)>,
    folders: Vec<String>,
}

impl NameTable {
    /// The name of a session.
    pub fn session(&mut self, id: &str) -> String {
        let name = self.name("session", None, id);
        if id.len() >= MIN_LEN && !self.ids.iter().any(|(known, _)| known == id) {
            self.ids.push((id.to_owned(), name.clone()));
            self.ids.sort_by_key(|(id, _)| Reverse(id.len()));
        }
        name
    }

    /// A value with everything that varies between runs replaced. `session` is the name of its
    /// session.
    pub fn normalize(&mut self, tree: &Value, session: Option<&str>) -> Value {
        match tree {
            Value::Object(members) => {
                let mut normal = Map::new();
                for (name, value) in members {
                    if name == "_meta" {
                        if let Some(meta) = self.meta(value, session) {
                            normal.insert(name.clone(), meta);
                        }
                        continue;
                    }
                    let value = self.member(name, value, session);
                    normal.insert(name.clone(), value);
                }
                Value::Object(normal)
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| self.normalize(item, session));
                Value::Array(items.collect())
            }
            Value::String(text) => Value::String(self.text(text, session)),
            scalar => scalar.clone(),
        }
    }

    /// The result of `session/list`, without the ids of sessions that this conversation has not
    /// used.
    pub fn normalize_list(&mut self, result: &Value) -> Value {
        let mut result = result.clone();
        let sessions = result.get_mut("sessions").and_then(Value::as_array_mut);
        for session in sessions
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            let id = session.get("sessionId").and_then(Value::as_str);
            if id.is_some_and(|id| !self.known.contains_key(&(None, id.to_owned()))) {
                session.remove("sessionId");
            }
        }
        self.normalize(&result, None)
    }

    fn member(&mut self, name: &str, value: &Value, session: Option<&str>) -> Value {
        if is_measured(name) && is_number(value) {
            return Value::String("‹number›".to_owned());
        }
        let kind = match name {
            "toolCallId" => "tool",
            "terminalId" => "terminal",
            "messageId" => "message",
            // The id of a request on the same connection, which is irrelevant.
            "requestId" => return Value::String("‹request›".to_owned()),
            "sessionId" | "cwd" => "",
            _ => return self.normalize(value, session),
        };
        match (name, value) {
            ("sessionId", Value::String(id)) => Value::String(self.session(id)),
            ("cwd", Value::String(folder)) => {
                self.add_folder(folder.trim_end_matches(['/', '\\']));
                Value::String(FOLDER.to_owned())
            }
            (_, Value::String(id)) => Value::String(self.name(kind, session, id)),
            _ => self.normalize(value, session),
        }
    }

    /// The rest of a `_meta`; `None` if it has trace members only.
    fn meta(&mut self, value: &Value, session: Option<&str>) -> Option<Value> {
        let Value::Object(members) = value else {
            return Some(self.normalize(value, session));
        };
        let rest = members
            .iter()
            .filter(|(name, _)| !TRACE_MEMBERS.contains(&name.as_str()));
        let rest: Map<_, _> = rest.map(|(n, v)| (n.clone(), v.clone())).collect();
        (!rest.is_empty() || members.is_empty())
            .then(|| self.normalize(&Value::Object(rest), session))
    }

    fn name(&mut self, kind: &'static str, scope: Option<&str>, id: &str) -> String {
        let key = (scope.map(str::to_owned), id.to_owned());
        if let Some(name) = self.known.get(&key) {
            return name.clone();
        }
        let count = self.counts.entry((kind, key.0.clone())).or_default();
        *count += 1;
        let name = format!("‹{kind} {count}›");
        self.known.insert(key, name.clone());
        name
    }

    fn add_folder(&mut self, folder: &str) {
        let is_path = folder.len() > 1 && folder.starts_with('/');
        if (is_path || is_long(folder)) && !self.folders.iter().any(|known| known == folder) {
            self.folders.push(folder.to_owned());
            self.folders.sort_by_key(|folder| Reverse(folder.len()));
        }
    }

    fn text(&self, text: &str, session: Option<&str>) -> String {
        for scope in [session, None] {
            if let Some(name) = self.known.get(&(scope.map(str::to_owned), text.to_owned())) {
                return name.clone();
            }
        }
        if is_time(text.as_bytes()) {
            return "‹time›".to_owned();
        }
        if is_uuid(text.as_bytes()) {
            return "‹uuid›".to_owned();
        }
        let mut text = Cow::Borrowed(text);
        for folder in &self.folders {
            text = Cow::Owned(replace_folder(&text, folder));
        }
        for (id, name) in &self.ids {
            if text.contains(id.as_str()) {
                text = Cow::Owned(text.replace(id.as_str(), name));
            }
        }
        without_hashes(&text)
    }
}

/// Replaces a folder where its name is found.
fn replace_folder(text: &str, folder: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for place in find_folder(text.as_bytes(), folder.as_bytes(), is_long(folder)) {
        out += &text[copied..place.start];
        out += FOLDER;
        copied = place.end;
    }
    out + &text[copied..]
}

/// Whether the member `name` is a measurement, such as `completed_at_ms`.
fn is_measured(name: &str) -> bool {
    let plain = name.to_ascii_lowercase().replace(['_', '-'], "");
    MEASUREMENTS.iter().any(|ending| plain.ends_with(ending))
}

/// Whether `value` is a number, a number in a string, or an object of these
/// (`{"secs": 0, "nanos": 7}`).
fn is_number(value: &Value) -> bool {
    match value {
        Value::Number(_) => true,
        Value::String(text) => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()),
        Value::Object(parts) => !parts.is_empty() && parts.values().all(is_number),
        _ => false,
    }
}

/// `2026-11-20T15:59:00…`.
fn is_time(text: &[u8]) -> bool {
    let form = b"0000-00-00T00:00:00";
    let fits = |(byte, form): (&u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        form => byte == form,
    };
    (form.len()..40).contains(&text.len()) && text.iter().zip(form).all(fits)
}

/// `01a1fa06-4498-7e61-8d6f-dc7ac1dcec67`.
fn is_uuid(text: &[u8]) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse_ascii(text).is_ok()
}

/// Removes the hashes of redaction, because their key differs between recordings.
fn without_hashes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once('‹') {
        out.push_str(before);
        out.push('‹');
        rest = inside;
        let Some((mark, after)) = inside.split_once('›') else {
            continue;
        };
        let Some((word, hash)) = mark.rsplit_once(':') else {
            continue;
        };
        let is_mark = word == "redacted" || word.ends_with(" bytes");
        if is_mark && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            out.push_str(word);
            out.push('›');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The values of `tests/vectors/compare/canonical-names.json`, one after the other in one
    /// conversation: as seen, normalized, and the id of the session.
    #[test]
    fn variable_values_are_named() {
        let rows = include_str!("../../../tests/vectors/compare/canonical-names.json");
        let rows: Vec<(Value, Value, Option<String>)> = serde_json::from_str(rows).unwrap();
        let mut names = NameTable::default();
        for (seen, normal, session) in rows {
            let session = session.map(|id| names.session(&id));
            assert_eq!(names.normalize(&seen, session.as_deref()), normal);
        }
    }

    #[test]
    fn a_short_folder_is_replaced_where_it_is_a_path() {
        let mut names = NameTable::default();
        names.normalize(&json!({"cwd": "/old/ws"}), None);
        for (seen, normal) in [
            ("in /old/ws/a and /old/ws", "in ‹cwd›/a and ‹cwd›"),
            ("(/old/ws:1)", "(‹cwd›:1)"),
            ("file:///old/ws/a", "file://‹cwd›/a"),
            ("a/old/ws/a b/old/ws/a", "a‹cwd›/a b‹cwd›/a"),
            ("in /old/ws. And old/ws", "in ‹cwd›. And old/ws"),
            (
                "/very/old/ws /old/ws2 x/old/ws",
                "/very/old/ws /old/ws2 x/old/ws",
            ),
        ] {
            assert_eq!(names.normalize(&json!(seen), None), json!(normal));
        }
        names.normalize(&json!({"cwd": "/tmp/long/ws/"}), None);
        let seen = "x/tmp/long/ws/a tmp/long/ws, **/tmp/long/ws** /tmp/long/ws2";
        let normal = "x‹cwd›/a ‹cwd›, **‹cwd›** /tmp/long/ws2";
        assert_eq!(names.normalize(&json!(seen), None), json!(normal));
    }

    #[test]
    fn listed_sessions_get_no_new_names() {
        let mut names = NameTable::default();
        names.session("ses_e05fbdec0f");
        let list = json!({"sessions": [{"sessionId": "ses_of_yesterday", "title": "old"},
            {"sessionId": "ses_e05fbdec0f", "title": "new"}]});
        assert_eq!(
            names.normalize_list(&list),
            json!({"sessions": [{"title": "old"}, {"sessionId": "‹session 1›", "title": "new"}]})
        );
        assert_eq!(names.session("the next"), "‹session 2›");
    }
}
