//! Configuration options, and the modes of v1 that are one of them.

use crate::object::{Json, object};
use crate::text::JsonType;
use crate::tree::Node;

/// The members of a choice.
const CHOICE: &str = "value name description";

/// The options of a session as the agent has sent them last.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// Whether the client shows booleans.
    pub(super) booleans: bool,
    list: Vec<Json>,
    /// The memory behind the list, in bytes.
    pub(super) bytes: usize,
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
    pub(super) fn take(&mut self, list: Vec<Json>) -> Vec<Json> {
        self.bytes = list.iter().map(Node::size).sum();
        self.list = list;
        let shown = self.list.iter().map(|option| shown(option, self.booleans));
        shown.collect()
    }

    /// The modes of v1, which are offered from now on.
    pub(super) fn modes(&mut self) -> Option<Json> {
        let mode = self.of_category("mode")?;
        let current = mode.value("currentValue")?;
        let groups = mode.list("options").into_iter();
        let choices = groups.flat_map(|entry| match entry.array("options") {
            Some(inner) => inner,
            None => vec![entry],
        });
        let available = choices.map(|choice| {
            let mut made = choice.only("name description");
            made.set("id", choice.value("value").unwrap_or_else(|| "".into()));
            made
        });
        let available: Vec<_> = available.collect();
        self.offered_modes = true;
        Some(object! { "currentModeId": current, "availableModes": available })
    }

    /// The current mode, if the client was offered modes.
    pub(super) fn mode(&self) -> Option<String> {
        let mode = self.of_category("mode").filter(|_| self.offered_modes)?;
        mode.text("currentValue")
    }

    /// The id of the first choice of that category.
    pub(super) fn id_of(&self, category: &str) -> Option<Json> {
        self.of_category(category)?.value("id")
    }

    /// What a client's value for the option with that id is for the agent.
    pub(super) fn value(&self, id: &str, value: &str) -> Value {
        let option = self.list.iter().find(|option| option.says("id", id));
        let is_boolean = option.is_some_and(|option| option.says("type", "boolean"));
        match value {
            _ if self.booleans || !is_boolean => Value::Same,
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            _ => Value::Unknown,
        }
    }

    fn of_category(&self, category: &str) -> Option<&Json> {
        let is_it =
            |option: &&Node<'_>| option.says("category", category) && option.says("type", "select");
        self.list.iter().find(is_it)
    }
}

/// The list of options in a message.
pub(super) fn list(body: &Node<'_>) -> Option<Vec<Json>> {
    let mut all = body.array("configOptions")?;
    all.retain(|option| option.kind() == Some(JsonType::Object));
    Some(all)
}

/// An option in v1.
fn shown(option: &Json, booleans: bool) -> Json {
    let mut made = option.only("id name description category type currentValue options");
    if option.says("type", "select") {
        made.set("options", Node::from(option.list("options")));
        made.change_each("options", |entry| {
            if entry.array("options").is_some() {
                entry.keep_only("group name options");
                entry.change_each("options", |choice| choice.keep_only(CHOICE));
            } else {
                entry.keep_only(CHOICE);
            }
        });
    } else if !booleans {
        let current = option.value("currentValue");
        let is_on = current.is_some_and(|on| &*on.json() == b"true");
        let both = br#"[{"value":"true","name":"On"},{"value":"false","name":"Off"}]"#;
        made.set("type", "select");
        made.set("currentValue", is_on.to_string());
        made.set("options", Node::raw(both));
    }
    made
}
