//! Content blocks and the text that is compared of them.

use crate::dialect::text::{self, JsonType};
use crate::dialect::tree::Node;
use crate::dialect::versions::json::{
    array, member, only, set, text as text_of, text_block, value,
};
use crate::dialect::versions::to_v2::content::to_v2;

/// The types of content blocks in v1, each with its members.
const BLOCKS: [(&str, &[&str]); 5] = [
    ("text", &["type", "text", "annotations", "_meta"]),
    (
        "image",
        &["type", "data", "mimeType", "uri", "annotations", "_meta"],
    ),
    (
        "audio",
        &["type", "data", "mimeType", "annotations", "_meta"],
    ),
    (
        "resource_link",
        &[
            "type",
            "name",
            "uri",
            "title",
            "description",
            "mimeType",
            "size",
            "annotations",
            "_meta",
        ],
    ),
    ("resource", &["type", "resource", "annotations", "_meta"]),
];

/// A sequence of bytes that stands for a list of blocks: the sequence of a list that begins with
/// the blocks of another one begins with the sequence of that.
#[derive(Clone, Debug, Default)]
pub(super) struct Canonical {
    pub(super) bytes: Vec<u8>,
    /// Whether it ends in a text, which a following one continues.
    pub(super) in_text: bool,
}

/// A content block of the agent in v1.
pub(super) fn block(v2: &Node<'_>) -> Node<'static> {
    let kind = text_of(v2, "type").unwrap_or_default();
    let Some((_, names)) = BLOCKS.iter().find(|(name, _)| *name == kind) else {
        return text_block(&format!("[unsupported content: {kind}]"));
    };
    let mut made = only(v2, names);
    if let Some(resource) = value(v2, "resource").filter(|_| kind == "resource") {
        let names = ["uri", "text", "blob", "mimeType", "_meta"];
        set(&mut made, "resource", only(&resource, &names));
    }
    if let Some(annotations) = value(v2, "annotations") {
        let names = ["audience", "lastModified", "priority", "_meta"];
        let mut annotations = only(&annotations, &names);
        if let Some(mut roles) = array(&annotations, "audience") {
            roles.retain(|role| matches!(&*role.json(), b"\"user\"" | b"\"assistant\""));
            set(&mut annotations, "audience", Node::Array(roles));
        }
        set(&mut made, "annotations", annotations);
    }
    made
}

/// The blocks of the agent in v1.
pub(super) fn blocks(v2: &[Node<'static>]) -> Vec<Node<'static>> {
    v2.iter().map(block).collect()
}

/// A block of the client's prompt in v2; `None` if v1 has no such type.
pub(super) fn prompt_block(v1: &Node<'static>) -> Option<Node<'static>> {
    let kind = text_of(v1, "type")?;
    let (_, names) = BLOCKS.iter().find(|(name, _)| *name == kind)?;
    let mut made = only(v1, names);
    to_v2(&mut made);
    Some(made)
}

/// The text of a block that is nothing but text.
fn plain_text(block: &Node<'_>) -> Option<String> {
    let is_set = |name| member(block, name).is_some_and(|found| found.kind() != JsonType::Null);
    let is_plain = !is_set("annotations") && !is_set("_meta");
    let kind = text_of(block, "type")?;
    (is_plain && kind == "text").then(|| text_of(block, "text"))?
}

impl Canonical {
    /// The sequence of a list of blocks.
    pub(super) fn of(blocks: &[Node<'_>]) -> Self {
        let mut made = Self::default();
        for block in blocks {
            made.push(block);
        }
        made
    }

    /// Appends a block: adjacent plain texts become one, members that say nothing and the order of
    /// members do not count.
    pub(super) fn push(&mut self, block: &Node<'_>) {
        match plain_text(block) {
            Some(text) => self.text(&text),
            None => self.other(&sorted(&block.json())),
        }
    }

    // The byte 0xff is in no text.
    fn text(&mut self, text: &str) {
        if !std::mem::replace(&mut self.in_text, true) {
            self.bytes.extend_from_slice(b"\xffT");
        }
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn other(&mut self, block: &[u8]) {
        self.in_text = false;
        self.bytes.extend_from_slice(b"\xffB");
        self.bytes.extend_from_slice(block);
        self.bytes.push(0xff);
    }
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

/// A text as content of a tool call.
pub(super) fn text_item(text: &str) -> Node<'static> {
    Node::object(vec![
        ("type", Node::string("content")),
        ("content", text_block(text)),
    ])
}

/// A text between fences, longer ones than those inside.
pub(super) fn fenced(language: &str, text: &str) -> String {
    let runs = text.split(|letter| letter != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{fence}{language}\n{text}{end}{fence}")
}
