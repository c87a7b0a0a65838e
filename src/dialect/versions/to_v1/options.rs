//! Configuration options, and the modes of v1 that are one of them.

use crate::dialect::text::JsonType;
use crate::dialect::tree::Node;
use crate::dialect::versions::json::{array, is_null, member, only, set, text, value};

/// The members of an option.
const OPTION: [&str; 8] = [
    "id",
    "name",
    "description",
    "category",
    "type",
    "currentValue",
    "options",
    "_meta",
];

/// The options of a session as the agent has sent them last.
#[derive(Debug, Default)]
pub(super) struct Options {
    list: Vec<Node<'static>>,
    /// Whether the client was offered modes.
    offered_modes: bool,
}

/// What a client's value for an option is for the agent.
pub(super) enum Value {
    /// The value as it is.
    Same,
    /// A boolean that the client was shown as a choice.
    Boolean(bool),
    /// None of the choices that the client was shown for a boolean.
    Unknown,
}

impl Options {
    /// Remembers a list, and returns it in v1: without booleans if the client has none.
    pub(super) fn take(&mut self, list: Vec<Node<'static>>, booleans: bool) -> Node<'static> {
        self.list = list;
        let shown = self.list.iter().map(|option| shown(option, booleans));
        Node::Array(shown.collect())
    }

    /// The list in v1.
    pub(super) fn modes(&mut self) -> Option<Node<'static>> {
        let mode = self.of_category("mode")?;
        let current = value(mode, "currentValue")?;
        let available = choices(mode).into_iter().map(|choice| {
            let mut made = only(&choice, &["name", "description", "_meta"]);
            set(
                &mut made,
                "id",
                value(&choice, "value").unwrap_or_else(|| Node::string("")),
            );
            made
        });
        let modes = Node::object(vec![
            ("currentModeId", current),
            ("availableModes", Node::Array(available.collect())),
        ]);
        self.offered_modes = true;
        Some(modes)
    }

    /// The current mode, if the client was offered modes.
    pub(super) fn mode(&self) -> Option<String> {
        let mode = self.of_category("mode").filter(|_| self.offered_modes)?;
        text(mode, "currentValue")
    }

    /// The id of the first choice of that category.
    pub(super) fn id_of(&self, category: &str) -> Option<Node<'static>> {
        value(self.of_category(category)?, "id")
    }

    /// What a client's value for the option with that id is for the agent.
    pub(super) fn value(&self, id: &str, value: &str, booleans: bool) -> Value {
        let mut options = self.list.iter();
        let option = options.find(|option| text(option, "id").as_deref() == Some(id));
        let is_boolean = |option: &Node<'_>| text(option, "type").as_deref() == Some("boolean");
        match value {
            _ if booleans || !option.is_some_and(is_boolean) => Value::Same,
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            _ => Value::Unknown,
        }
    }

    fn of_category(&self, category: &str) -> Option<&Node<'static>> {
        self.list.iter().find(|option| {
            text(option, "category").as_deref() == Some(category)
                && text(option, "type").as_deref() == Some("select")
        })
    }
}

/// An option in v1.
fn shown(option: &Node<'static>, booleans: bool) -> Node<'static> {
    let mut made = only(option, &OPTION);
    match text(option, "type").as_deref() {
        Some("select") => {
            let options = array(option, "options").unwrap_or_default();
            let options = options.iter().map(|entry| match array(entry, "options") {
                Some(inner) => {
                    let mut group = only(entry, &["group", "name", "_meta"]);
                    set(
                        &mut group,
                        "options",
                        Node::Array(inner.iter().map(choice).collect()),
                    );
                    group
                }
                None => choice(entry),
            });
            set(&mut made, "options", Node::Array(options.collect()));
        }
        _ if !booleans => {
            let is_on = member(option, "currentValue").is_some_and(|on| &*on.json() == b"true");
            let current = if is_on { "true" } else { "false" };
            set(&mut made, "type", Node::string("select"));
            set(&mut made, "currentValue", Node::string(current));
            let both = br#"[{"value":"true","name":"On"},{"value":"false","name":"Off"}]"#;
            set(&mut made, "options", Node::raw(both));
        }
        _ => {}
    }
    made
}

fn choice(choice: &Node<'static>) -> Node<'static> {
    only(choice, &["value", "name", "description", "_meta"])
}

/// The choices of an option, those of groups included.
fn choices(option: &Node<'static>) -> Vec<Node<'static>> {
    let entries = array(option, "options").unwrap_or_default();
    let inner = entries
        .into_iter()
        .flat_map(|entry| match array(&entry, "options") {
            Some(inner) => inner,
            None => vec![entry],
        });
    inner.collect()
}

/// The list of options in a message.
pub(super) fn list(body: &Node<'_>) -> Option<Vec<Node<'static>>> {
    let is_object = |option: &Node<'_>| option.kind() == Some(JsonType::Object);
    let all = array(body, "configOptions").filter(|_| !is_null(body, "configOptions"))?;
    Some(all.into_iter().filter(is_object).collect())
}
