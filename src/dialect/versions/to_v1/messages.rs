//! Messages: v2 may send one whole, again and differently; v1 has only chunks that are appended.

use hashlink::LinkedHashMap;

use super::content::{Canonical, block, blocks};
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::Exchange;
use crate::dialect::versions::json::{
    add_meta, array, id, is_null, member, report, text_block, value,
};

/// How many messages of a session are remembered.
const MESSAGES: usize = 4096;

/// What is shown in place of a message that was withdrawn.
const WITHDRAWN: &str = "[message withdrawn by the agent]";

/// The messages of a session, by role and id.
#[derive(Debug, Default)]
pub(super) struct Messages(LinkedHashMap<String, Shown>);

/// What the client was shown of a message: how much, and a hash of it.
#[derive(Clone, Copy, Debug)]
struct Shown {
    length: usize,
    hash: u64,
    in_text: bool,
    revision: u32,
    withdrawn: bool,
}

impl Messages {
    /// A chunk, or a whole message, of the agent; `kind` is that of the update.
    pub(super) fn update(
        &mut self,
        kind: &str,
        update: &Node<'_>,
        out: &mut Exchange<'_>,
        made: &mut Vec<Node<'static>>,
    ) {
        out.rule("messages");
        let role = kind.strip_suffix("_chunk").unwrap_or(kind);
        let chunk = format!("{role}_chunk");
        let Some(id) = id(update, "messageId") else {
            let content = value(update, "content").filter(|_| kind == chunk);
            made.extend(content.map(|content| {
                Node::object(vec![
                    ("sessionUpdate", Node::string(&chunk)),
                    ("content", block(&content)),
                ])
            }));
            return;
        };
        let key = format!("{role} {id}");
        let mut shown = self.0.remove(&key).unwrap_or_default();
        let before = made.len();
        if kind == chunk {
            if let Some(content) = value(update, "content") {
                made.push(shown.chunk(&chunk, &id, block(&content)));
            }
        } else if is_null(update, "content") || member(update, "content").is_some() {
            let content = array(update, "content").unwrap_or_default();
            shown.whole(&chunk, &id, &blocks(&content), out, made);
        } else {
            let what = format!("{kind} {id} has no content: v1 cannot change what describes it");
            out.note(DialectEvent::Dropped, "messages", what);
        }
        if let (Some(first), Some(meta)) = (made.get_mut(before), value(update, "_meta")) {
            add_meta(first, meta);
        }
        self.0.insert(key, shown);
        if self.0.len() > MESSAGES {
            self.0.pop_front();
        }
    }
}

impl Shown {
    /// Shows a further block.
    fn chunk(&mut self, chunk: &str, id: &str, content: Node<'static>) -> Node<'static> {
        let mut text = Canonical {
            in_text: self.in_text,
            ..Canonical::default()
        };
        text.push(&content);
        self.length += text.bytes.len();
        self.hash = hash(self.hash, &text.bytes);
        self.in_text = text.in_text;
        self.withdrawn = false;
        Node::object(vec![
            ("sessionUpdate", Node::string(chunk)),
            ("messageId", Node::string(&self.id(id))),
            ("content", content),
        ])
    }

    /// Shows what is missing of the whole message, or a further revision of it.
    fn whole(
        &mut self,
        chunk: &str,
        id: &str,
        blocks: &[Node<'static>],
        out: &mut Exchange<'_>,
        made: &mut Vec<Node<'static>>,
    ) {
        if blocks.is_empty() && (self.length == 0 || self.withdrawn) {
            return;
        }
        let all = Canonical::of(blocks);
        let begun = all.bytes.get(..self.length);
        if !blocks.is_empty() && begun.is_some_and(|begun| hash(FNV, begun) == self.hash) {
            let mut seen = Canonical::default();
            let length = self.length;
            for block in blocks {
                let from = seen.bytes.len();
                seen.push(block);
                let missing = match seen.bytes.get(length..) {
                    None | Some([]) => continue,
                    Some(rest) if from < length => text_block(&String::from_utf8_lossy(rest)),
                    Some(_) => block.clone(),
                };
                made.push(self.chunk(chunk, id, missing));
            }
            return;
        }
        out.note(
            DialectEvent::Emulated,
            "messages",
            "the agent replaced a message, and v1 cannot take back what was shown",
        );
        if !out.policies.show_revisions {
            return;
        }
        let replaced = Node::string(&self.id(id));
        *self = Self {
            revision: self.revision.saturating_add(1),
            ..Self::default()
        };
        let first = made.len();
        for block in blocks {
            made.push(self.chunk(chunk, id, block.clone()));
        }
        if blocks.is_empty() {
            made.push(self.chunk(chunk, id, text_block(WITHDRAWN)));
            self.withdrawn = true;
        }
        report(&mut made[first], "replaces", replaced);
    }

    /// The id of the current revision.
    fn id(&self, id: &str) -> String {
        match self.revision {
            1 => id.to_owned(),
            number => format!("{id}~{number}"),
        }
    }
}

impl Default for Shown {
    fn default() -> Self {
        Self {
            length: 0,
            hash: FNV,
            in_text: false,
            revision: 1,
            withdrawn: false,
        }
    }
}

/// Where a hash begins.
pub(super) const FNV: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, continued: it compares what one agent has sent with what the same agent sends.
pub(super) fn hash(begun: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(begun, step)
}
