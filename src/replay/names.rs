//! Maps names of the recording to names of the live conversation: sessions, terminals, permission
//! options, the working directory.
//!
//! Names are replaced in the text of a message, so that all its other bytes stay as recorded; all
//! in one pass, so that no replacement is replaced again.

use std::cmp::Reverse;
use std::ops::Range;

use serde_json::Value;

use jsonrpc::text::{items, members};
use jsonrpc::{Frame, Id, Limits, Scanned, scan};
use recording::{find_folder, is_long};

/// Session ids of at least this length are replaced wherever they are a whole string. A shorter one
/// may occur by chance.
const MIN_UNIQUE: usize = 16;

/// A kind of thing with a different name in each conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameKind {
    Session,
    Terminal,
    PermissionOption,
}

/// Pairs of names. The latest pair counts.
#[derive(Clone, Debug, Default)]
pub(super) struct NameMap {
    /// Whole strings: recorded, live.
    names: Vec<(NameKind, String, String)>,
    /// Directories: recorded, live.
    folders: Vec<(String, String)>,
}

impl NameKind {
    /// The kind of name that a member holds.
    fn of_member(member: &[u8]) -> Option<Self> {
        let letters = member.iter().filter(|byte| **byte != b'_');
        let letters: Vec<u8> = letters.map(u8::to_ascii_lowercase).collect();
        match letters.as_slice() {
            b"terminalid" => Some(Self::Terminal),
            b"optionid" => Some(Self::PermissionOption),
            letters => letters.ends_with(b"sessionid").then_some(Self::Session),
        }
    }

    /// Whether a name of this kind is replaced as a whole string in `member`.
    fn is_used_in(self, name: &str, member: Option<&[u8]>) -> bool {
        match member.and_then(Self::of_member) {
            Some(kind) => kind == self,
            None => self == Self::Session && name.len() >= MIN_UNIQUE,
        }
    }
}

impl NameMap {
    /// Maps the session, the terminal and the directory of a recorded body to those of the live one.
    pub(super) fn learn(&mut self, recorded: &Value, live: &Value) {
        let text = |body: &Value, name| body.get(name)?.as_str().map(str::to_owned);
        for (kind, member) in [
            (NameKind::Session, "sessionId"),
            (NameKind::Terminal, "terminalId"),
        ] {
            if let (Some(recorded), Some(live)) = (text(recorded, member), text(live, member)) {
                self.insert(kind, recorded, live);
            }
        }
        if let (Some(recorded), Some(live)) = (text(recorded, "cwd"), text(live, "cwd")) {
            self.insert_folder(&recorded, &live);
        }
    }

    /// Maps `recorded` to `live` from now on.
    pub(super) fn insert(&mut self, kind: NameKind, recorded: String, live: String) {
        self.names
            .retain(|(known, _, mapped)| *known != kind || *mapped != live);
        self.names.push((kind, recorded, live));
    }

    /// Maps a directory, with or without a trailing slash.
    pub(super) fn insert_folder(&mut self, recorded: &str, live: &str) {
        let without_slash = |name: &str| name.trim_end_matches(['/', '\\']).to_owned();
        let (recorded, live) = (without_slash(recorded), without_slash(live));
        if recorded.len() > 1 && live.len() > 1 {
            self.folders.retain(|pair| pair.0 != recorded);
            self.folders.push((recorded, live));
        }
    }

    /// The recorded session that a live one is mapped to.
    pub(super) fn recorded_session(&self, live: &str) -> Option<&str> {
        let mut names = self.names.iter().rev();
        let pair = names.find(|(kind, _, known)| *kind == NameKind::Session && known == live)?;
        Some(&pair.1)
    }

    /// A recorded message with the live names.
    pub(super) fn to_live(&self, frame: &Frame) -> Frame {
        let names = self.names.iter().rev();
        let names = names.map(|(kind, recorded, live)| (*kind, recorded, live));
        let folders = self.folders.iter().map(|(recorded, live)| (recorded, live));
        replace_names(frame.as_bytes(), names, folders).map_or_else(|| frame.clone(), Frame::from)
    }

    /// A live body with the recorded names.
    pub(super) fn to_recorded(&self, body: &Value) -> Value {
        let names = self.names.iter().rev();
        let names = names.map(|(kind, recorded, live)| (*kind, live, recorded));
        let folders = self.folders.iter().rev();
        let folders = folders.map(|(recorded, live)| (live, recorded));
        let text = replace_names(body.to_string().as_bytes(), names, folders);
        text.and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_else(|| body.clone())
    }
}

/// A JSON text in which each first name or directory of `names` and `folders` is replaced by the
/// second; `None` if nothing changes.
fn replace_names<'a>(
    text: &[u8],
    names: impl Iterator<Item = (NameKind, &'a String, &'a String)>,
    folders: impl Iterator<Item = (&'a String, &'a String)>,
) -> Option<Vec<u8>> {
    let names: Vec<_> = names
        .map(|(kind, from, to)| (kind, from, quoted(from), to))
        .filter(|(_, _, from, _)| contains(text, from.as_bytes()))
        .collect();
    let mut edits = Vec::new();
    if !names.is_empty() {
        for (place, member) in find_strings(text) {
            let found = names.iter().find(|(kind, from, quoted_from, _)| {
                quoted_from.as_bytes() == &text[place.clone()] && kind.is_used_in(from, member)
            });
            if let Some((.., to)) = found {
                edits.push((place, quoted(to)));
            }
        }
    }
    let escaped = |name: &str| {
        let quoted = quoted(name);
        quoted[1..quoted.len() - 1].to_owned()
    };
    for (from, to) in folders {
        let is_long = is_long(from) && is_long(to);
        let (from, to) = (escaped(from), escaped(to));
        for place in find_folder(text, from.as_bytes(), is_long) {
            let has_root = place.len() == from.len();
            let to = if has_root {
                &*to
            } else {
                to.trim_start_matches('/')
            };
            edits.push((place, to.to_owned()));
        }
    }
    edit(text, edits)
}

/// Applies edits to a text; of several with one start the longest counts, of overlapping ones the
/// first. `None` if nothing changes.
fn edit(text: &[u8], mut edits: Vec<(Range<usize>, String)>) -> Option<Vec<u8>> {
    edits.sort_by_key(|(place, _)| (place.start, Reverse(place.end)));
    let mut out = Vec::new();
    let mut copied = 0;
    for (place, to) in edits {
        if place.start >= copied {
            out.extend_from_slice(&text[copied..place.start]);
            out.extend_from_slice(to.as_bytes());
            copied = place.end;
        }
    }
    out.extend_from_slice(&text[copied..]);
    (out != text).then_some(out)
}

/// The strings in a JSON text that are values, including quotes, each with the name of its member
/// as spelled.
fn find_strings(text: &[u8]) -> Vec<(Range<usize>, Option<&[u8]>)> {
    let mut found = Vec::new();
    let mut open = vec![(text.trim_ascii(), None)];
    while let Some((value, member)) = open.pop() {
        if value.starts_with(b"\"") {
            let start = value.as_ptr() as usize - text.as_ptr() as usize;
            found.push((start..start + value.len(), member));
        }
        open.extend(members(value).map(|(name, value)| (value, Some(name))));
        open.extend(items(value).map(|item| (item, None)));
    }
    found
}

/// The message with another id; a frame that is no message is unchanged.
pub(super) fn with_id(frame: &Frame, id: Id<'_>) -> Frame {
    match scan(frame, &Limits::default()) {
        Scanned::Message(at) => at.with_id(frame, id),
        _ => frame.clone(),
    }
}

/// A text as a JSON string.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(text, word).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> NameMap {
        let mut names = NameMap::default();
        let long = "01a1fa06-4498-7e61-8d6f-dc7ac1dcec67";
        for (noun, recorded, live) in [
            (NameKind::Terminal, "1", "term-77"),
            (NameKind::Session, "2", "s"),
            (NameKind::Session, long, "live"),
            (NameKind::PermissionOption, "3", "yes"),
        ] {
            names.insert(noun, recorded.to_owned(), live.to_owned());
        }
        for (recorded, live) in [("/src", "/home/me"), ("/aa", "/bb"), ("/bb", "/cc")] {
            names.insert_folder(recorded, live);
        }
        // A directory within another one keeps its own name.
        names.insert_folder("/src/deep", "/src/deep");
        names
    }

    /// The messages and texts of `tests/vectors/compare/replayed-names.json`: recorded, live.
    #[test]
    fn names_are_replaced_where_they_are_used() {
        let vectors = include_str!("../../tests/vectors/compare/replayed-names.json");
        let vectors: Value = serde_json::from_str(vectors).unwrap();
        let rows = |name: &str| -> Vec<[String; 2]> {
            serde_json::from_value(vectors[name].clone()).unwrap()
        };
        for [recorded, live] in rows("sent") {
            let sent = names().to_live(&Frame::from(recorded));
            assert_eq!(String::from_utf8_lossy(sent.as_bytes()), live);
        }
        for [recorded, live] in rows("received") {
            let received = names().to_recorded(&serde_json::from_str(&live).unwrap());
            assert_eq!(received.to_string(), recorded);
        }
        let mut slashed = NameMap::default();
        slashed.insert_folder("/src/", "/home/me");
        slashed.insert_folder("/lib", "/home/lib//");
        slashed.insert_folder("C:\\src\\", "/win");
        slashed.insert_folder("/tmp/x/ws", "/home/long/place");
        for [recorded, live] in rows("slashed") {
            let sent = slashed.to_live(&Frame::from(recorded));
            assert_eq!(String::from_utf8_lossy(sent.as_bytes()), live);
        }
        assert_eq!(slashed.to_recorded(&Value::from("/win/x")), "C:\\src/x");
    }
}
