//! Messages: v2 may send one whole, again and differently; v1 has only chunks that are appended.

use crate::object::{Json, object};
use crate::recent::Recent;
use crate::tree::Node;
use crate::versions::content::{self, Canonical, text_block};
use crate::versions::out::Out;

/// What is shown in place of a message that was withdrawn.
const WITHDRAWN: &str = "[message withdrawn by the agent]";

/// What a hash begins with.
const FNV: u64 = 0xcbf2_9ce4_8422_2325;

/// The messages of a session, by role and id.
#[derive(Debug, Default)]
pub(super) struct Messages(pub(super) Recent<Shown, 4096, { 1 << 20 }>);

/// What the client was shown of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shown {
    prefix: Prefix,
    in_text: bool,
    /// How often it was replaced.
    revisions: u32,
    withdrawn: bool,
}

/// The beginning of a text that was shown: how much of it, and a hash.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prefix {
    pub(super) length: usize,
    /// Apart from what a hash begins with.
    hash: u64,
}

impl Messages {
    /// Shows a chunk, or a whole message, of the agent.
    pub(super) fn update(&mut self, update: &Node<'_>, out: &mut Out<'_>) -> Vec<Json> {
        out.rule("messages");
        let kind = update.word("sessionUpdate");
        let role = kind.strip_suffix("_chunk").unwrap_or(&kind);
        let chunk = format!("{role}_chunk");
        let content = update.value("content");
        let Some(id) = update.id("messageId") else {
            let content = content.filter(|_| kind == chunk);
            let shown = content.map(|content| {
                object! { "sessionUpdate": &*chunk, "content": content::shown(&content) }
            });
            return shown.into_iter().collect();
        };
        let key = format!("{role} {id}");
        let shown = self.0.of(&key);
        let mut made = Vec::new();
        if kind == chunk {
            made.extend(content.map(|content| shown.chunk(&chunk, &id, content::shown(&content))));
        } else if update.member("content").is_some() {
            let blocks = update.list("content");
            let blocks: Vec<_> = blocks.iter().map(content::shown).collect();
            shown.whole(&chunk, &id, &blocks, out, &mut made);
        } else {
            let what = format!("{kind} {id} has no content: v1 cannot change what describes it");
            out.dropped("messages", what);
        }
        if let Some(first) = made.first_mut() {
            first.add_meta(update.value("_meta"));
        }
        self.0.weigh(&key, 0);
        made
    }
}

impl Shown {
    /// Shows a further block.
    fn chunk(&mut self, chunk: &str, id: &str, content: Json) -> Json {
        let mut text = Canonical {
            in_text: self.in_text,
            ..Canonical::default()
        };
        text.push(&content);
        self.prefix.extend(&text.bytes);
        self.in_text = text.in_text;
        self.withdrawn = false;
        object! { "sessionUpdate": chunk, "messageId": self.id(id), "content": content }
    }

    /// Shows what is missing of the whole message, or a further revision of it.
    fn whole(
        &mut self,
        chunk: &str,
        id: &str,
        blocks: &[Json],
        out: &mut Out<'_>,
        made: &mut Vec<Json>,
    ) {
        if blocks.is_empty() && (self.prefix.length == 0 || self.withdrawn) {
            return;
        }
        if !blocks.is_empty() && self.prefix.begins(&Canonical::of(blocks).bytes) {
            let mut seen = Canonical::default();
            let length = self.prefix.length;
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
        let what = "the agent replaced a message, and v1 cannot take back what was shown";
        out.emulated("messages", what);
        if !out.policies.show_revisions {
            return;
        }
        let replaced = self.id(id);
        *self = Self {
            revisions: self.revisions.saturating_add(1),
            ..Self::default()
        };
        for block in blocks {
            made.push(self.chunk(chunk, id, block.clone()));
        }
        if blocks.is_empty() {
            made.push(self.chunk(chunk, id, text_block(WITHDRAWN)));
            self.withdrawn = true;
        }
        made[0].report("replaces", replaced);
    }

    /// The id of the current revision.
    fn id(&self, id: &str) -> String {
        match self.revisions {
            0 => id.to_owned(),
            number => format!("{id}~{}", number.saturating_add(1)),
        }
    }
}

impl Prefix {
    /// Takes more of the text: FNV-1a, since it compares what one agent has sent with what the same
    /// agent sends.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        self.hash = bytes.iter().fold(self.hash ^ FNV, step) ^ FNV;
    }

    /// Whether a text begins with it.
    pub(super) fn begins(&self, all: &[u8]) -> bool {
        let mut begun = Self::default();
        all.get(..self.length).is_some_and(|part| {
            begun.extend(part);
            begun.hash == self.hash
        })
    }
}
