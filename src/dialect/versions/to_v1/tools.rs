//! Tool calls: v2 creates and changes them with one update, v1 creates them once.

use hashlink::LinkedHashMap;

use super::content::{block, text_item};
use super::diffs;
use super::terminals::{Display, Terminals};
use crate::dialect::text::{self as json, JsonType};
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::Exchange;
use crate::dialect::versions::json::{
    add_meta, array, id, is_null, member, only, report, set, text, value,
};

/// How many tool calls of a session are remembered.
const CALLS: usize = 1024;
/// How much content of one tool call is kept, in bytes.
const CONTENT: usize = 1 << 20;
/// How much of all tool calls of a session.
const ALL: usize = 16 << 20;

/// The kinds that v1 has, without `other`.
const KINDS: [&str; 9] = [
    "read",
    "edit",
    "delete",
    "move",
    "search",
    "execute",
    "think",
    "fetch",
    "switch_mode",
];

/// The tool calls of a session, by id.
#[derive(Debug)]
pub(super) struct Tools {
    calls: LinkedHashMap<String, Tool>,
    display: Display,
}

/// One tool call, as the client knows it.
#[derive(Debug, Default)]
struct Tool {
    title: String,
    name: Option<String>,
    kind: Option<&'static str>,
    status: Option<&'static str>,
    content: Vec<Item>,
    locations: Option<Node<'static>>,
    raw_input: Option<Node<'static>>,
    /// About how many bytes it has.
    size: usize,
}

/// A part of its content.
#[derive(Debug)]
enum Item {
    /// Items of v1.
    Shown(Vec<Node<'static>>),
    /// A terminal of the agent.
    Terminal(String),
}

impl Tools {
    pub(super) fn new(display: Display) -> Self {
        Self {
            calls: LinkedHashMap::new(),
            display,
        }
    }

    /// Applies `tool_call_update` or `tool_call_content_chunk`.
    pub(super) fn update(
        &mut self,
        update: &Node<'_>,
        is_chunk: bool,
        terminals: &mut Terminals,
        out: &mut Exchange<'_>,
        made: &mut Vec<Node<'static>>,
    ) {
        out.rule("tools");
        let Some(id) = id(update, "toolCallId") else {
            out.note(
                DialectEvent::Dropped,
                "tools",
                "a tool call has no id that can be remembered",
            );
            return;
        };
        let is_new = !self.calls.contains_key(&id);
        if is_new && self.calls.len() >= CALLS {
            self.calls.pop_front();
        }
        let display = self.display;
        let tool = self.calls.entry(id.clone()).or_insert_with(Tool::default);
        let touches = is_chunk || member(update, "content").is_some();
        let before = touches.then(|| tool.content(&id, display, terminals));
        let mut fields = Vec::new();
        let mut meta = value(update, "_meta").filter(|_| !is_chunk);
        if is_chunk {
            tool.scalars(&Node::Absent, &id, is_new, &mut fields);
            tool.content
                .extend(value(update, "content").map(|item| Item::of(&item)));
        } else {
            tool.scalars(update, &id, is_new, &mut fields);
            if let Some(content) = array(update, "content") {
                tool.content = content.iter().map(Item::of).collect();
            } else if is_null(update, "content") {
                tool.content.clear();
            }
        }
        tool.bound(out);
        let mut owned: Option<(String, Node<'static>)> = None;
        if is_new && display == Display::Extension {
            let mut anchors = tool.content.iter().filter_map(Item::terminal);
            owned = anchors.find_map(|terminal: &str| {
                let info = terminals.own(terminal, &id)?;
                Some((terminal.to_owned(), info))
            });
        }
        if let Some(before) = before {
            let content = tool.content(&id, display, terminals);
            let is_given = is_chunk || array(update, "content").is_some();
            if content.json() != before.json() || is_new && is_given {
                fields.push(("content", content));
            }
        }
        if let Some((_, info)) = &owned {
            let mut with = Node::object(vec![("terminal_info", info.clone())]);
            if let Some(meta) = meta.take() {
                let mut holder = Node::object(vec![("_meta", with)]);
                add_meta(&mut holder, meta);
                with = value(&holder, "_meta").unwrap_or(Node::Absent);
            }
            meta = Some(with);
        }
        if is_new {
            fields.push(("title", Node::string(&tool.title)));
        }
        if is_new || !fields.is_empty() || meta.is_some() {
            let kind = if is_new {
                "tool_call"
            } else {
                "tool_call_update"
            };
            let mut shown = call(kind, &id, fields);
            meta.into_iter().for_each(|meta| add_meta(&mut shown, meta));
            if !is_chunk {
                report_original(update, "kind", tool.kind, &mut shown);
                report_original(update, "status", tool.status, &mut shown);
            }
            made.push(shown);
        }
        if let Some((terminal, _)) = owned {
            terminals.catch_up(&terminal, made);
        }
        self.shed(&id);
    }

    /// Applies a change of a terminal.
    pub(super) fn terminal(
        &mut self,
        update: &Node<'_>,
        is_chunk: bool,
        terminals: &mut Terminals,
        out: &mut Exchange<'_>,
        made: &mut Vec<Node<'static>>,
    ) {
        out.rule("terminals");
        let Some(changed) = terminals.update(update, is_chunk, made) else {
            return;
        };
        if self.display == Display::Off {
            return;
        }
        for (id, tool) in &self.calls {
            let mut anchors = tool.content.iter().filter_map(Item::terminal);
            let is_text = terminals.owner(&changed) != Some(id);
            if is_text && anchors.any(|terminal| terminal == changed) {
                let content = tool.content(id, self.display, terminals);
                made.push(call("tool_call_update", id, vec![("content", content)]));
            }
        }
    }

    /// Whether there is a tool call with that id.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.calls.contains_key(id)
    }

    /// A known tool call as a permission request shows it, and its title.
    pub(super) fn shown(&self, id: &str, terminals: &Terminals) -> Option<(String, Node<'static>)> {
        let tool = self.calls.get(id)?;
        let mut shown = Node::object(vec![
            ("toolCallId", Node::string(id)),
            ("title", Node::string(&tool.title)),
        ]);
        for (name, word) in [("kind", tool.kind), ("status", tool.status)] {
            word.into_iter()
                .for_each(|word| set(&mut shown, name, Node::string(word)));
        }
        for (name, value) in [
            ("locations", &tool.locations),
            ("rawInput", &tool.raw_input),
        ] {
            let value = value.iter().cloned();
            value.for_each(|value| set(&mut shown, name, value));
        }
        if !tool.content.is_empty() {
            let content = tool.content(id, self.display, terminals);
            set(&mut shown, "content", content);
        }
        Some((tool.title.clone(), shown))
    }

    /// An update that shows the tool call's own content.
    pub(super) fn restored(&self, id: &str, terminals: &Terminals) -> Option<Node<'static>> {
        let content = self.calls.get(id)?.content(id, self.display, terminals);
        Some(call("tool_call_update", id, vec![("content", content)]))
    }

    /// Forgets the content of the oldest while all are too large.
    fn shed(&mut self, newest: &str) {
        let mut size: usize = self.calls.values().map(|tool| tool.size).sum();
        for (id, tool) in &mut self.calls {
            if size <= ALL {
                return;
            }
            if id != newest {
                size -= std::mem::take(&mut tool.size);
                tool.content.clear();
                tool.raw_input = None;
            }
        }
    }
}

impl Tool {
    /// Applies all but the content; the fields that have changed are added.
    fn scalars(
        &mut self,
        update: &Node<'_>,
        id: &str,
        is_new: bool,
        fields: &mut Vec<(&'static str, Node<'static>)>,
    ) {
        if let Some(name) = text(update, "name") {
            self.name = Some(name);
        } else if is_null(update, "name") {
            self.name = None;
        }
        let word = |name, convert: fn(&str) -> &'static str, default| match text(update, name) {
            Some(word) => Some(convert(&word)),
            None => (is_null(update, name) && !is_new).then_some(default),
        };
        for (name, own, new) in [
            ("kind", &mut self.kind, word("kind", kind, "other")),
            (
                "status",
                &mut self.status,
                word("status", status, "pending"),
            ),
        ] {
            if new.is_some() && *own != new {
                *own = new;
                fields.extend(new.map(|new| (name, Node::string(new))));
            }
        }
        let title = match text(update, "title") {
            Some(title) => Some(title),
            None if is_new || is_null(update, "title") => {
                let kind = self.kind.filter(|kind| *kind != "other");
                let name = self.name.as_deref().or(kind).unwrap_or(id);
                Some(name.to_owned())
            }
            None => None,
        };
        if let Some(title) = title.filter(|title| *title != self.title) {
            if !is_new {
                fields.push(("title", Node::string(&title)));
            }
            self.title = title;
        }
        let locations = match array(update, "locations") {
            Some(all) => {
                let all = all.iter().map(|one| only(one, &["path", "line", "_meta"]));
                Some(Node::Array(all.collect()))
            }
            None if is_null(update, "locations") && !is_new => Some(Node::raw(b"[]")),
            None => None,
        };
        let changes = |own: &Option<Node<'static>>, new: &Node<'static>| {
            let own = own.as_ref().map(|own| own.json());
            own.is_none_or(|own| !json::same(&own, &new.json()))
        };
        if let Some(new) = locations.filter(|new| changes(&self.locations, new)) {
            fields.push(("locations", new.clone()));
            self.locations = Some(new);
        }
        if let Some(new) = value(update, "rawInput").filter(|new| changes(&self.raw_input, new)) {
            fields.push(("rawInput", new.clone()));
            self.raw_input = Some(new);
        }
        fields.extend(value(update, "rawOutput").map(|new| ("rawOutput", new)));
    }

    /// The content in v1.
    fn content(&self, id: &str, display: Display, terminals: &Terminals) -> Node<'static> {
        let mut made = Vec::new();
        for item in &self.content {
            match item {
                Item::Shown(items) => made.extend(items.iter().cloned()),
                Item::Terminal(terminal) if terminals.owner(terminal) == Some(id) => {
                    made.push(Node::object(vec![
                        ("type", Node::string("terminal")),
                        ("terminalId", Node::string(terminal)),
                    ]));
                }
                Item::Terminal(_) if display == Display::Off => {}
                Item::Terminal(terminal) => {
                    made.extend(terminals.text(terminal).map(|text| text_item(&text)));
                }
            }
        }
        Node::Array(made)
    }

    /// Forgets the first parts of the content while there is too much.
    fn bound(&mut self, out: &mut Exchange<'_>) {
        let mut size: usize = self.content.iter().map(Item::size).sum();
        while size > CONTENT && self.content.len() > 1 {
            size -= self.content.remove(0).size();
            let what = "the first parts of a tool call's content, which has grown too large";
            out.note(DialectEvent::Dropped, "tools", what);
        }
        let size_of =
            |node: &Option<Node<'static>>| node.as_ref().map_or(0, |raw| raw.json().len());
        self.size = size + size_of(&self.raw_input) + size_of(&self.locations);
    }
}

impl Item {
    fn of(item: &Node<'static>) -> Self {
        match text(item, "type").as_deref() {
            Some("content") => {
                let mut made = only(item, &["type", "_meta"]);
                let content = value(item, "content").unwrap_or(Node::Absent);
                set(&mut made, "content", block(&content));
                Self::Shown(vec![made])
            }
            Some("diff") => Self::Shown(diffs::items(item)),
            Some("terminal") => Self::Terminal(text(item, "terminalId").unwrap_or_default()),
            other => {
                let what = format!("[unsupported content: {}]", other.unwrap_or_default());
                Self::Shown(vec![text_item(&what)])
            }
        }
    }

    fn terminal(&self) -> Option<&str> {
        match self {
            Self::Terminal(id) => Some(id),
            Self::Shown(_) => None,
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Terminal(id) => id.len(),
            Self::Shown(items) => items.iter().map(|item| item.json().len()).sum(),
        }
    }
}

/// An update of a tool call.
pub(super) fn call(
    update: &str,
    id: &str,
    fields: Vec<(&'static str, Node<'static>)>,
) -> Node<'static> {
    let mut members = vec![
        ("sessionUpdate", Node::string(update)),
        ("toolCallId", Node::string(id)),
    ];
    members.extend(fields);
    Node::object(members)
}

fn kind(word: &str) -> &'static str {
    let known = KINDS.into_iter().find(|known| *known == word);
    known.unwrap_or("other")
}

fn status(word: &str) -> &'static str {
    match word {
        "pending" => "pending",
        "completed" => "completed",
        "failed" | "cancelled" => "failed",
        _ => "in_progress",
    }
}

/// Reports the agent's word where v1 has another one.
fn report_original(
    update: &Node<'_>,
    name: &'static str,
    shown: Option<&'static str>,
    made: &mut Node<'static>,
) {
    let word = value(update, name).filter(|word| word.kind() == Some(JsonType::String));
    if let Some(word) = word.filter(|_| text(update, name).as_deref() != shown) {
        report(made, name, word);
    }
}
