//! Maps names of the recording to names of the live conversation: sessions, terminals, options, the
//! working directory.
//!
//! Names are replaced in the text of a message, so that all its other bytes stay as recorded; all
//! in one pass, so that no replacement is replaced again. `places` finds the names in a text; ids
//! of requests are in the envelope (see `ids`).

use std::cmp::Reverse;
use std::ops::Range;

use serde_json::Value;

use super::places::{folders, strings};
use crate::jsonrpc::Frame;

/// Session ids of at least this length are replaced wherever they are a whole string. A shorter one
/// may occur by chance.
const UNMISTAKABLE: usize = 16;

/// A kind of thing with a different name in each conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noun {
    Session,
    Terminal,
    Choice,
}

/// Pairs of names. The latest pair counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Whole strings: recorded, live.
    words: Vec<(Noun, String, String)>,
    /// Directories: recorded, live.
    folders: Vec<(String, String)>,
}

impl Noun {
    /// The kind of name that a member holds.
    fn of(member: &[u8]) -> Option<Self> {
        let letters = member.iter().filter(|byte| **byte != b'_');
        let letters: Vec<u8> = letters.map(u8::to_ascii_lowercase).collect();
        match letters.as_slice() {
            b"terminalid" => Some(Self::Terminal),
            b"optionid" => Some(Self::Choice),
            letters => letters.ends_with(b"sessionid").then_some(Self::Session),
        }
    }

    /// Whether a name of this kind is replaced as a whole string in `member`.
    fn is_meant(self, word: &str, member: Option<&[u8]>) -> bool {
        match member.and_then(Self::of) {
            Some(noun) => noun == self,
            None => self == Self::Session && word.len() >= UNMISTAKABLE,
        }
    }
}

impl Names {
    /// Learns the names that two bodies give to the same things.
    pub(super) fn bind(&mut self, recorded: &Value, live: &Value) {
        let text = |body: &Value, name| body.get(name)?.as_str().map(str::to_owned);
        for (noun, name) in [(Noun::Session, "sessionId"), (Noun::Terminal, "terminalId")] {
            if let (Some(recorded), Some(live)) = (text(recorded, name), text(live, name)) {
                self.word(noun, recorded, live);
            }
        }
        if let (Some(recorded), Some(live)) = (text(recorded, "cwd"), text(live, "cwd")) {
            self.folder(&recorded, &live);
        }
    }

    /// Maps `recorded` to `live` from now on.
    pub(super) fn word(&mut self, noun: Noun, recorded: String, live: String) {
        self.words
            .retain(|(known, _, taken)| *known != noun || *taken != live);
        self.words.push((noun, recorded, live));
    }

    /// The same for a directory, with or without a trailing slash.
    pub(super) fn folder(&mut self, recorded: &str, live: &str) {
        let bare = |name: &str| name.trim_end_matches(['/', '\\']).to_owned();
        let (recorded, live) = (bare(recorded), bare(live));
        if recorded.len() > 1 && live.len() > 1 {
            self.folders.retain(|pair| pair.0 != recorded);
            self.folders.push((recorded, live));
        }
    }

    /// Whether a live session has this name.
    pub(super) fn knows(&self, live: &str) -> bool {
        self.recorded(live).is_some()
    }

    /// The recorded session that a live one is mapped to.
    pub(super) fn recorded(&self, live: &str) -> Option<&str> {
        let mut words = self.words.iter().rev();
        let pair = words.find(|(noun, _, known)| *noun == Noun::Session && known == live)?;
        Some(&pair.1)
    }

    /// A recorded message with the live names.
    pub(super) fn said(&self, frame: &Frame) -> Frame {
        let text = frame.as_bytes();
        let mut edits = Vec::new();
        let words = self.words.iter().rev();
        let words: Vec<_> = words.map(|(noun, from, to)| (*noun, from, to)).collect();
        let spelled: Vec<_> = words.iter().map(|(_, from, _)| json(from)).collect();
        if spelled.iter().any(|word| contains(text, word.as_bytes())) {
            for (place, member) in strings(text) {
                let found = words.iter().zip(&spelled).find(|((noun, from, _), word)| {
                    word.as_bytes() == &text[place.clone()] && noun.is_meant(from, member)
                });
                if let Some(((_, _, to), _)) = found {
                    edits.push((place, json(to)));
                }
            }
        }
        let pairs = self.folders.iter();
        let inner = |text: &str| json(text).trim_matches('"').to_owned();
        let pairs = pairs.map(|(from, to)| (inner(from), inner(to)));
        edits.extend(moved(text, pairs));
        edit(text, edits).map_or_else(|| frame.clone(), Frame::from)
    }

    /// A live body with the recorded names.
    pub(super) fn heard(&self, body: &Value) -> Value {
        self.heard_in(None, body)
    }

    fn heard_in(&self, member: Option<&[u8]>, body: &Value) -> Value {
        match body {
            Value::String(text) => Value::String(self.heard_text(member, text)),
            Value::Array(all) => all.iter().map(|one| self.heard(one)).collect(),
            Value::Object(members) => {
                let members = members.iter().map(|(name, value)| {
                    let value = self.heard_in(Some(name.as_bytes()), value);
                    (name.clone(), value)
                });
                Value::Object(members.collect())
            }
            other => other.clone(),
        }
    }

    fn heard_text(&self, member: Option<&[u8]>, text: &str) -> String {
        let mut words = self.words.iter().rev();
        let word = words.find(|(noun, _, live)| live == text && noun.is_meant(live, member));
        if let Some((_, recorded, _)) = word {
            return recorded.clone();
        }
        let pairs = self.folders.iter().rev();
        let pairs = pairs.map(|(recorded, live)| (live.clone(), recorded.clone()));
        edit(text.as_bytes(), moved(text.as_bytes(), pairs))
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .unwrap_or_else(|| text.to_owned())
    }
}

/// The edits that replace directories in a text, by pairs of old and new name.
fn moved(
    text: &[u8],
    pairs: impl Iterator<Item = (String, String)>,
) -> Vec<(Range<usize>, String)> {
    pairs
        .flat_map(|(from, to)| {
            let places = folders(text, from.as_bytes());
            let edits = places.map(|place| (place, to.clone()));
            edits.collect::<Vec<_>>()
        })
        .collect()
}

/// Applies edits to a text; of several with one start the longest counts, of overlapping ones the
/// first. `None` if nothing changes.
fn edit(text: &[u8], mut edits: Vec<(Range<usize>, String)>) -> Option<Vec<u8>> {
    edits.sort_by_key(|(place, _)| (place.start, Reverse(place.end)));
    let mut out = Vec::new();
    let mut done = 0;
    for (place, to) in edits {
        if place.start >= done {
            out.extend_from_slice(&text[done..place.start]);
            out.extend_from_slice(to.as_bytes());
            done = place.end;
        }
    }
    out.extend_from_slice(&text[done..]);
    (out != text).then_some(out)
}

/// A text as a JSON string.
fn json(text: &str) -> String {
    Value::from(text).to_string()
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(text, word).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let mut names = Names::default();
        let long = "01a1fa06-4498-7e61-8d6f-dc7ac1dcec67";
        for (noun, recorded, live) in [
            (Noun::Terminal, "1", "term-77"),
            (Noun::Session, "2", "s"),
            (Noun::Session, long, "live"),
            (Noun::Choice, "3", "yes"),
        ] {
            names.word(noun, recorded.to_owned(), live.to_owned());
        }
        for (recorded, live) in [("/src", "/home/me"), ("/aa", "/bb"), ("/bb", "/cc")] {
            names.folder(recorded, live);
        }
        // A directory within another one keeps its own name.
        names.folder("/src/deep", "/src/deep");
        names
    }

    #[test]
    fn a_name_is_replaced_where_it_is_one() {
        for (recorded, live) in [
            (
                r#"{"terminalId":"1","text":"1"}"#,
                r#"{"terminalId":"term-77","text":"1"}"#,
            ),
            (r#"{"terminal_id" : "1"}"#, r#"{"terminal_id" : "term-77"}"#),
            (
                r#"{"toolCallId":"1","1":["1"]}"#,
                r#"{"toolCallId":"1","1":["1"]}"#,
            ),
            (
                r#"{"sessionId":"2","a":"2"}"#,
                r#"{"sessionId":"s","a":"2"}"#,
            ),
            (
                r#"{"optionId":"3","a":"3"}"#,
                r#"{"optionId":"yes","a":"3"}"#,
            ),
            (
                r#"{"sessionId":"1","terminalId":"2"}"#,
                r#"{"sessionId":"1","terminalId":"2"}"#,
            ),
            (
                r#"{"a":"01a1fa06-4498-7e61-8d6f-dc7ac1dcec67"}"#,
                r#"{"a":"live"}"#,
            ),
            (
                r#"["{\"terminalId\":\"1\"}"]"#,
                r#"["{\"terminalId\":\"1\"}"]"#,
            ),
        ] {
            let said = names().said(&Frame::from(recorded.to_owned()));
            assert_eq!(String::from_utf8_lossy(said.as_bytes()), live);
        }
        let heard = |text: &str| {
            names()
                .heard(&serde_json::from_str(text).unwrap())
                .to_string()
        };
        assert_eq!(
            heard(r#"{"terminalId":"term-77","text":"term-77"}"#),
            r#"{"terminalId":"1","text":"term-77"}"#
        );
        assert_eq!(
            heard(r#"{"sessionId":"s","text":"s"}"#),
            r#"{"sessionId":"2","text":"s"}"#
        );
    }

    #[test]
    fn a_directory_is_moved_where_it_is_one_and_once() {
        for (recorded, live) in [
            ("/src", "/home/me"),
            (
                "in /src/a, \\\"/src\\\"\\n/src: (/src)",
                "in /home/me/a, \\\"/home/me\\\"\\n/home/me: (/home/me)",
            ),
            (
                "file:///src/a PATH=/src:/src",
                "file:///home/me/a PATH=/home/me:/home/me",
            ),
            (
                "/usr/src/linux /src2 ./src ~/src ${HOME}/src",
                "/usr/src/linux /src2 ./src ~/src ${HOME}/src",
            ),
            (
                "https://x.example/src/a a//src",
                "https://x.example/src/a a//src",
            ),
            ("/aa/x and /bb/y", "/bb/x and /cc/y"),
            (
                "\\u001b[32m/src/a \\u003e/src -I/src/inc x-I/src",
                "\\u001b[32m/home/me/a \\u003e/home/me -I/home/me/inc x-I/src",
            ),
            ("/src/deep/x", "/src/deep/x"),
            (
                "\\u0041/src \\\\n/src \\t/src",
                "\\u0041/src \\\\n/src \\t/home/me",
            ),
        ] {
            let said = names().said(&Frame::from(format!("\"{recorded}\"")));
            assert_eq!(
                String::from_utf8_lossy(said.as_bytes()),
                format!("\"{live}\"")
            );
        }
        let mut slashed = Names::default();
        slashed.folder("/src/", "/home/me");
        slashed.folder("/lib", "/home/lib//");
        slashed.folder("C:\\src\\", "/win");
        let said = slashed.said(&Frame::from(r#""/src/ /src/a /src /lib/b /""#.to_owned()));
        assert_eq!(
            said.as_bytes(),
            br#""/home/me/ /home/me/a /home/me /home/lib/b /""#
        );
        assert_eq!(slashed.heard(&Value::from("/win/x")), "C:\\src/x");
        let heard = |text: &str| names().heard(&Value::from(text));
        assert_eq!(heard("/bb/x and /cc/y"), "/aa/x and /bb/y");
        assert_eq!(
            heard("/usr/home/me and /home/me\n/home/me/a"),
            "/usr/home/me and /src\n/src/a"
        );
    }
}
