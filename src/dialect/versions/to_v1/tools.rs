//! Tool calls: v2 creates and changes them with one update, v1 creates them once.

use super::diffs;
use super::terminals::Terminals;
use crate::memory;
use crate::object::{Json, object};
use crate::recent::Recent;
use crate::text as json;
use crate::tree::Node;
use crate::versions::content::{self, item, text_item};
use crate::versions::initialize::Display;
use crate::versions::out::Out;

/// How much content of one tool call is kept, in bytes.
const CONTENT: usize = 1 << 20;

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

/// The tool calls of a session, by id, and its terminals.
#[derive(Debug, Default)]
pub(super) struct Tools {
    calls: Recent<Tool, 1024, { 8 << 20 }>,
    terminals: Terminals,
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
    locations: Option<Json>,
    raw_input: Option<Json>,
}

/// A part of its content.
#[derive(Debug)]
enum Item {
    /// Items of v1.
    Shown(Vec<Json>),
    /// A terminal of the agent.
    Terminal(String),
}

/// The changed members of a tool call.
type Fields = Vec<(&'static str, Json)>;

impl Tools {
    pub(super) fn new(display: Display) -> Self {
        Self {
            display,
            ..Self::default()
        }
    }

    /// The memory behind them, in bytes.
    pub(super) const fn weight(&self) -> usize {
        self.calls.bytes + self.terminals.0.bytes
    }

    /// Applies `tool_call_update`.
    pub(super) fn update(&mut self, update: &Node<'_>, out: &mut Out<'_>) -> Vec<Json> {
        let items = update.array("content");
        let items = items.map(|items| items.iter().map(Item::of).collect());
        let is_cleared = update.is_null("content");
        let content = |content: &mut Vec<Item>| {
            if let Some(items) = items {
                *content = items;
            } else if is_cleared {
                content.clear();
            }
        };
        let mut made = self.change(update, update, content, out);
        let id = update.word("toolCallId");
        if let (Some(shown), Some(tool)) = (made.first_mut(), self.calls.get(&id)) {
            for (name, word) in [("kind", tool.kind), ("status", tool.status)] {
                if let Some(given) = update.text(name).filter(|given| Some(&**given) != word) {
                    shown.report(name, given);
                }
            }
            if let Some(name) = update.text("name").filter(|name| *name != tool.title) {
                shown.report("name", name);
            }
        }
        made
    }

    /// Applies `tool_call_content_chunk`.
    pub(super) fn append(&mut self, update: &Node<'_>, out: &mut Out<'_>) -> Vec<Json> {
        let item = update.value("content").map(|item| Item::of(&item));
        let content = |content: &mut Vec<Item>| content.extend(item);
        self.change(update, &Node::Absent, content, out)
    }

    /// Changes the tool call of an update, by these `members` and by a change of its content.
    fn change(
        &mut self,
        update: &Node<'_>,
        members: &Node<'_>,
        content: impl FnOnce(&mut Vec<Item>),
        out: &mut Out<'_>,
    ) -> Vec<Json> {
        out.rule("tools");
        let Some(id) = update.id("toolCallId") else {
            out.dropped("tools", "a tool call has no id that can be remembered");
            return Vec::new();
        };
        let (display, terminals) = (self.display, &mut self.terminals);
        let is_new = self.calls.get(&id).is_none();
        let tool = self.calls.of(&id);
        let touches = update.member("content").is_some();
        let before = touches.then(|| tool.content(&id, display, terminals));
        let mut fields = tool.scalars(members, &id, is_new);
        content(&mut tool.content);
        tool.bound(out);
        // The extension shows the first terminal of a new call.
        let mut anchors = tool.content.iter().filter_map(Item::terminal);
        let owned = anchors.find(|terminal| {
            is_new && display == Display::Extension && terminals.own(terminal, &id)
        });
        let owned = owned.map(str::to_owned);
        if let Some(before) = before {
            let after = tool.content(&id, display, terminals);
            let is_given = is_new && !update.is_null("content");
            if is_given || after.json() != before.json() {
                fields.push(("content", after));
            }
        }
        if is_new {
            fields.push(("title", tool.title.clone().into()));
        }
        let size = tool.size();
        let meta = members.value("_meta");
        let mut made = Vec::new();
        if is_new || !fields.is_empty() || meta.is_some() {
            let kind = if is_new {
                "tool_call"
            } else {
                "tool_call_update"
            };
            let mut shown = call(kind, &id, fields);
            let info = owned.as_deref().map(|terminal| terminals.info(terminal));
            shown.set("_meta", info.map(|info| object! { "terminal_info": info }));
            shown.add_meta(meta);
            made.push(shown);
        }
        if let Some(terminal) = owned {
            made.extend(terminals.catch_up(&terminal));
        }
        self.calls.weigh(&id, size);
        made
    }

    /// Applies a change of a terminal.
    pub(super) fn terminal(&mut self, update: &Node<'_>, out: &mut Out<'_>) -> Vec<Json> {
        out.rule("terminals");
        let (changed, mut made) = self.terminals.update(update);
        let changed = changed.filter(|_| self.display != Display::Off);
        let Some(changed) = changed else {
            return made;
        };
        for (id, tool) in self.calls.iter() {
            let mut anchors = tool.content.iter().filter_map(Item::terminal);
            let is_text = self.terminals.owner(&changed) != Some(id);
            if is_text && anchors.any(|terminal| terminal == changed) {
                made.extend(self.restored(id));
            }
        }
        made
    }

    /// Whether there is a tool call with that id.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.calls.get(id).is_some()
    }

    /// A known tool call as a permission request shows it, and its title.
    pub(super) fn shown(&self, id: &str) -> Option<(String, Json)> {
        let tool = self.calls.get(id)?;
        let content = tool.content(id, self.display, &self.terminals);
        let shown = object! {
            "toolCallId": id,
            "title": &*tool.title,
            "kind": tool.kind,
            "status": tool.status,
            "locations": tool.locations.clone(),
            "rawInput": tool.raw_input.clone(),
            "content": (!tool.content.is_empty()).then_some(content),
        };
        Some((tool.title.clone(), shown))
    }

    /// An update that shows the tool call's own content.
    pub(super) fn restored(&self, id: &str) -> Option<Json> {
        let tool = self.calls.get(id)?;
        let content = tool.content(id, self.display, &self.terminals);
        Some(call("tool_call_update", id, vec![("content", content)]))
    }
}

impl Tool {
    /// Applies all but the content; returns the fields that have changed, of a new call without the
    /// title.
    fn scalars(&mut self, update: &Node<'_>, id: &str, is_new: bool) -> Fields {
        let mut fields = Vec::new();
        let is_cleared = |name| update.is_null(name) && !is_new;
        if update.member("name").is_some() {
            self.name = update.text("name");
        }
        let word = |name, convert: fn(&str) -> &'static str, default| {
            let given = update.text(name).map(|word| convert(&word));
            given.or_else(|| is_cleared(name).then_some(default))
        };
        let kind = word("kind", kind, "other");
        let status = word("status", status, "pending");
        for (name, own, new) in [
            ("kind", &mut self.kind, kind),
            ("status", &mut self.status, status),
        ] {
            if new.is_some() && *own != new {
                *own = new;
                fields.push((name, new.into()));
            }
        }
        let title = update.text("title").or_else(|| {
            let kind = self.kind.filter(|kind| *kind != "other");
            let name = self.name.as_deref().or(kind).unwrap_or(id);
            (is_new || update.is_null("title")).then(|| name.to_owned())
        });
        if let Some(title) = title.filter(|title| *title != self.title) {
            if !is_new {
                fields.push(("title", (&*title).into()));
            }
            self.title = title;
        }
        let mut shown = update.only("locations");
        shown.change_each("locations", |one| one.keep_only("path line"));
        let locations = shown.array("locations").map(Node::Array);
        let none = || is_cleared("locations").then(|| Node::Array(Vec::new()));
        for (name, own, new) in [
            ("locations", &mut self.locations, locations.or_else(none)),
            ("rawInput", &mut self.raw_input, update.value("rawInput")),
        ] {
            let is_same = |own: &Node<'_>, new: &Node<'_>| json::same(&own.json(), &new.json());
            if let Some(new) = new
                && !own.as_ref().is_some_and(|own| is_same(own, &new))
            {
                fields.push((name, new.clone()));
                *own = Some(new);
            }
        }
        fields.extend(update.value("rawOutput").map(|new| ("rawOutput", new)));
        fields
    }

    /// The content in v1.
    fn content(&self, id: &str, display: Display, terminals: &Terminals) -> Json {
        let mut made = Vec::new();
        for item in &self.content {
            match item {
                Item::Shown(items) => made.extend(items.iter().cloned()),
                Item::Terminal(terminal) if terminals.owner(terminal) == Some(id) => {
                    made.push(object! { "type": "terminal", "terminalId": &**terminal });
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
    fn bound(&mut self, out: &mut Out<'_>) {
        let mut size: usize = self.content.iter().map(Item::size).sum();
        while size > CONTENT && self.content.len() > 1 {
            size -= self.content.remove(0).size();
            let what = "the first parts of a tool call's content, which has grown too large";
            out.dropped("tools", what);
        }
    }

    /// The memory behind it, in bytes.
    fn size(&self) -> usize {
        let words = self.title.capacity() + memory::text(self.name.as_ref());
        let nodes = [&self.locations, &self.raw_input].into_iter().flatten();
        let content: usize = self.content.iter().map(Item::size).sum();
        words + nodes.map(Node::size).sum::<usize>() + content
    }
}

impl Item {
    fn of(v2: &Json) -> Self {
        match v2.text("type").as_deref() {
            Some("content") => {
                let mut made = v2.only("type");
                let block = v2.part("content");
                made.set("content", content::shown(&block));
                Self::Shown(vec![made])
            }
            Some("diff") => Self::Shown(diffs::items(v2)),
            Some("terminal") => Self::Terminal(v2.word("terminalId")),
            _ => Self::Shown(vec![item(content::unsupported(v2))]),
        }
    }

    fn terminal(&self) -> Option<&str> {
        match self {
            Self::Terminal(id) => Some(id),
            Self::Shown(_) => None,
        }
    }

    fn size(&self) -> usize {
        let inside = match self {
            Self::Terminal(id) => id.capacity(),
            Self::Shown(items) => {
                items.capacity() * size_of::<Json>() + items.iter().map(Node::size).sum::<usize>()
            }
        };
        size_of::<Self>() + inside
    }
}

/// An update of a tool call.
pub(super) fn call(update: &'static str, id: &str, fields: Fields) -> Json {
    let head = [("sessionUpdate", update.into()), ("toolCallId", id.into())];
    Node::object(head.into_iter().chain(fields))
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
