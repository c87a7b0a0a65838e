//! Config options, as the actions of `model` and `mode` read and make them.

use crate::dialect::pending::PendingRequest;
use crate::dialect::pointer::own_pointer;
use crate::dialect::text::{self, JsonType};
use crate::dialect::tree::Node;

/// The ids of the options that the bridge owns.
pub(super) const MODEL: &str = "_acp-relay.model";
pub(super) const MODE: &str = "_acp-relay.mode";
pub(super) const SET_OPTION: &str = "session/set_config_option";

/// A model as a choice of an option; members that a choice does not have are parked.
pub(super) fn choice_of(model: &[u8]) -> Option<Node<'static>> {
    if JsonType::of(model) != JsonType::Object {
        return None;
    }
    let ids = ["modelId", "model_id", "id", "value"];
    let names = ["name", "label"];
    let text_of = |all: &[&'static str]| {
        all.iter().find_map(|name| {
            let value = text::member(model, name)?;
            (JsonType::of(value) == JsonType::String).then_some((*name, value))
        })
    };
    let (id_name, id) = text_of(&ids)?;
    let name = text_of(&names);
    let mut choice = Node::object(vec![
        ("value", Node::owned(id.to_vec())),
        (
            "name",
            Node::owned(name.map_or(id, |(_, name)| name).to_vec()),
        ),
    ]);
    for (raw, value) in text::members(model) {
        let member = text::unescape(raw)?;
        let used = member == id_name || name.is_some_and(|(name, _)| member == name);
        let at = match &*member {
            _ if used => continue,
            "description" | "_meta" => vec![Box::from(&*member)],
            other => ["_meta", "acp-relay", other].map(Box::from).to_vec(),
        };
        // `_meta` of a model may be no object; then nothing is parked in it.
        let _ = choice.put(&at, Node::owned(value.to_vec()));
    }
    Some(choice)
}

/// A list with the option that a `session/set_config_option` names set to the value that it asks
/// for.
pub(super) fn chosen(list: &[u8], pending: &PendingRequest) -> Node<'static> {
    let mut list = Node::owned(list.to_vec());
    let (Some(id), Some(value)) = (pending.param("configId"), pending.param("value")) else {
        return list;
    };
    for option in list.items().into_iter().flatten() {
        let is_named = text::member(&option.json(), "id").is_some_and(|own| text::same(own, id));
        if is_named {
            choose(option, value);
        }
    }
    list
}

pub(super) fn choose(option: &mut Node<'_>, value: &[u8]) {
    // An option is an object, so `put` cannot be blocked.
    let _ = option.put(
        own_pointer("/currentValue").names(),
        Node::owned(value.to_vec()),
    );
}

pub(super) fn member_is(object: &[u8], name: &str, value: &str) -> bool {
    let found = text::member(object, name).and_then(text::string);
    found.is_some_and(|found| found == value)
}
