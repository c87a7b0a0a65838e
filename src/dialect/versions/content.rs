//! Content blocks in both versions, and the values in them that v2 is stricter about.

use std::sync::LazyLock;

use percent_encoding::{AsciiSet, utf8_percent_encode};
use regex_lite::Regex;

use crate::PATH_SEGMENT;
pub(super) use crate::convert::text_block;
use crate::object::{Json, object};
use crate::text::{self, JsonType};
use crate::tree::Node;

/// The types of content blocks in v1, each with its members.
const BLOCKS: [(&str, &str); 5] = [
    ("text", "type text annotations"),
    ("image", "type data mimeType uri annotations"),
    ("audio", "type data mimeType annotations"),
    (
        "resource_link",
        "type name uri title description mimeType size annotations",
    ),
    ("resource", "type resource annotations"),
];

/// The longest prompt whose repetition is recognised, in bytes.
const MAX_REPEATED: usize = 1 << 20;

/// What is encoded in the path of a URI.
const PATH: AsciiSet = PATH_SEGMENT.remove(b'/');

/// A date and time (RFC 3339, section 5.6).
static DATE_TIME: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$";
    Regex::new(pattern).expect("the pattern is valid")
});

/// A sequence of bytes that stands for a list of blocks: the sequence of a list that begins with
/// the blocks of another one begins with the sequence of that. Adjacent plain texts are one; the
/// order of members, `null` and `_meta` do not count.
#[derive(Clone, Debug, Default)]
pub(super) struct Canonical {
    pub(super) bytes: Vec<u8>,
    /// Whether it ends in a text, which a following one continues.
    pub(super) in_text: bool,
}

/// How much of a list of blocks was repeated.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repeated {
    bytes: usize,
    in_text: bool,
}

/// A block of the v2 side in v1; `None` if v1 has no such type.
pub(super) fn to_v1(v2: &Node<'_>) -> Option<Json> {
    let mut made = v2.only(members_of(&v2.text("type")?)?);
    made.change("resource", |resource| {
        resource.keep_only("uri text blob mimeType");
    });
    made.change("annotations", |annotations| {
        annotations.keep_only("audience lastModified priority");
        if let Some(mut roles) = annotations.array("audience") {
            let role = |role: &Node<'_>| text::string(&role.json()).map(|role| role.into_owned());
            roles.retain(|of| matches!(role(of).as_deref(), Some("user" | "assistant")));
            annotations.set("audience", roles);
        }
    });
    Some(made)
}

/// A block of an agent of v2 as a client of v1 is shown it.
pub(super) fn shown(v2: &Node<'_>) -> Json {
    to_v1(v2).unwrap_or_else(|| unsupported(v2))
}

/// What stands for content of a type that v1 lacks.
pub(super) fn unsupported(v2: &Node<'_>) -> Json {
    let kind = v2.word("type");
    text_block(&format!("[unsupported content: {kind}]"))
}

/// A block of a prompt of the v1 side in v2; `None` if v1 has no such type.
pub(super) fn prompt_to_v2(v1: &Node<'_>) -> Option<Json> {
    let mut made = v1.only(members_of(&v1.text("type")?)?);
    to_v2(&mut made);
    Some(made)
}

/// Converts a block of the v1 side.
pub(super) fn to_v2(block: &mut Node<'_>) {
    block.change("annotations", |annotations| {
        let is_share = |number: f64| (0.0..=1.0).contains(&number);
        drop_unless(annotations, "priority", |json| {
            json.parse().is_ok_and(is_share)
        });
        drop_odd_date(annotations, "lastModified");
    });
    drop_unless(block, "size", |json| {
        text::integer(json.as_bytes()).is_some_and(|size| !size.starts_with('-'))
    });
    to_uri(block);
    block.change("resource", to_uri);
}

/// Whether v1 has blocks of that type.
pub(super) fn is_block(kind: &str) -> bool {
    members_of(kind).is_some()
}

/// A block as content of a tool call.
pub(super) fn item(block: Json) -> Json {
    object! { "type": "content", "content": block }
}

/// A text as content of a tool call.
pub(super) fn text_item(text: &str) -> Json {
    item(text_block(text))
}

/// A text between fences, longer ones than those inside.
pub(super) fn fenced(language: &str, text: &str) -> String {
    let runs = text.split(|letter| letter != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    let is_ended = text.is_empty() || text.ends_with('\n');
    let end = if is_ended { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

/// Removes a member that is neither null nor a date and time.
pub(super) fn drop_odd_date(node: &mut Node<'_>, name: &str) {
    let is_date =
        |json: &str| text::string(json.as_bytes()).is_some_and(|date| DATE_TIME.is_match(&date));
    drop_unless(node, name, is_date);
}

/// A path, joined with the working directory of its session when it is relative.
pub(super) fn absolute(path: &str, cwd: Option<&str>) -> String {
    let is_absolute = path.starts_with(['/', '\\']) || is_drive(path);
    let Some(cwd) = cwd.filter(|_| !is_absolute) else {
        return path.to_owned();
    };
    let has_drive = is_drive(cwd) && cwd.contains('\\');
    let slash = if has_drive { '\\' } else { '/' };
    match path.strip_prefix("./").unwrap_or(path) {
        "" | "." => cwd.to_owned(),
        path => format!("{}{slash}{path}", cwd.trim_end_matches(slash)),
    }
}

impl Canonical {
    /// The sequence of a list of blocks.
    pub(super) fn of(blocks: &[Node<'_>]) -> Self {
        let mut made = Self::default();
        blocks.iter().for_each(|block| made.push(block));
        made
    }

    /// The same, of blocks that are short enough for their repetition to be recognised.
    pub(super) fn unless_long(blocks: &[Node<'_>]) -> Self {
        let size: usize = blocks.iter().map(Node::size).sum();
        Self::of(if size <= MAX_REPEATED { blocks } else { &[] })
    }

    /// Appends a block. The byte 0xff is in no text.
    pub(super) fn push(&mut self, block: &Node<'_>) {
        let is_text = block.says("type", "text") && block.value("annotations").is_none();
        if let Some(text) = block.text("text").filter(|_| is_text) {
            if !std::mem::replace(&mut self.in_text, true) {
                self.bytes.extend_from_slice(b"\xffT");
            }
            self.bytes.extend_from_slice(text.as_bytes());
        } else {
            self.in_text = false;
            self.bytes.extend_from_slice(b"\xffB");
            self.bytes.extend_from_slice(&sorted(&block.json()));
            self.bytes.push(0xff);
        }
    }

    /// How much is repeated when these blocks come next; `None` if they are something else.
    pub(super) fn repeated(&self, before: Repeated, blocks: &[Node<'_>]) -> Option<Repeated> {
        let mut next = Self {
            in_text: before.in_text,
            ..Self::default()
        };
        blocks.iter().for_each(|block| next.push(block));
        let rest = self.bytes.get(before.bytes..)?;
        rest.starts_with(&next.bytes).then_some(Repeated {
            bytes: before.bytes + next.bytes.len(),
            in_text: next.in_text,
        })
    }

    /// Whether all of it is repeated.
    pub(super) const fn is_all(&self, repeated: Repeated) -> bool {
        repeated.bytes == self.bytes.len()
    }
}

fn members_of(kind: &str) -> Option<&'static str> {
    let found = BLOCKS.iter().find(|(name, _)| *name == kind);
    found.map(|(_, members)| *members)
}

/// The JSON text with the members of objects in the order of their names, without `null` and `_meta`.
fn sorted(json: &[u8]) -> Vec<u8> {
    if JsonType::of(json) != JsonType::Object {
        return text::compact(json);
    }
    let mut members: Vec<Vec<u8>> = text::members(json)
        .filter(|(name, value)| *value != b"null" && *name != b"_meta")
        .map(|(name, value)| [name, b":", &sorted(value)].concat())
        .collect();
    members.sort_unstable();
    [b"{", &members.join(&b","[..])[..], b"}"].concat()
}

/// Removes a member that is neither null nor so.
fn drop_unless(node: &mut Node<'_>, name: &str, is_so: impl Fn(&str) -> bool) {
    let found = node.value(name);
    if found.is_some_and(|found| !std::str::from_utf8(&found.json()).is_ok_and(&is_so)) {
        node.remove(name);
    }
}

/// A bare path becomes a URI.
fn to_uri(node: &mut Node<'_>) {
    let (start, path) = match node.text("uri") {
        Some(path) if is_drive(&path) => ("file:///", path.replace('\\', "/")),
        Some(path) if path.starts_with('/') => ("file://", path),
        _ => return,
    };
    let uri = format!("{start}{}", utf8_percent_encode(&path, &PATH));
    node.set("uri", uri);
}

/// Whether a path begins with a drive of Windows.
fn is_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}
