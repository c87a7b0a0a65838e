//! Modes, and the config option that represents them.
//!
//! A client that receives config options uses them in place of `modes` (see the protocol's page on
//! session config options), so a list that the bridge has made from `models` contains the modes,
//! too: an option of category `mode`, which the bridge owns. `modes` stays for clients that do not
//! know config options.
//!
//! - `mode_option`: keeps both in step. A `current_mode_update`, and the answer to a
//!   `session/set_mode`, send the list with the new value first, unless it had that value; the
//!   answer to a choice of the bridge's option sends a `current_mode_update`, unless the agent has.
//! - `choose_mode`: writing, a choice of that option is `session/set_mode`, if the bridge has made
//!   it.

use super::context::ActionContext;
use super::option::{MODE, MODEL, SET_OPTION, choice_of, choose, member_is};
use crate::dialect::message::Message;
use crate::dialect::pending::PendingRequest;
use crate::dialect::text::{self, JsonType};
use crate::dialect::translator::Translator;
use crate::dialect::tree::Node;
use crate::jsonrpc::Kind;

const SET_MODE: &str = "session/set_mode";

impl Translator {
    /// A choice of an option that this bridge has made becomes `session/set_mode`.
    pub(super) fn choose_mode(&self, message: &mut Message<'_>) {
        let session = message.session();
        if !session.is_some_and(|session| self.session_has(&session, |known| known.with_modes)) {
            return;
        }
        message.take("/configId");
        if let Some(mode) = message.take("/value") {
            message.set("/modeId", mode);
        }
        message.method = SET_MODE.into();
        message.changed = true;
    }

    pub(super) fn mode_option(
        &mut self,
        message: &Message<'_>,
        pending: &PendingRequest,
        context: &mut ActionContext<'_, '_>,
    ) {
        let chosen = &*pending.canonical == SET_OPTION
            && pending.text_param("configId").as_deref() == Some(MODE);
        let (session, mode) = match message.kind {
            Kind::Notification => {
                let mode = message.text_at("/update/currentModeId");
                (message.session(), mode)
            }
            Kind::Result if chosen => (pending.session.clone(), pending.text_param("value")),
            Kind::Result if &*pending.canonical == SET_MODE => {
                (pending.session.clone(), pending.text_param("modeId"))
            }
            _ => return,
        };
        let (Some(session), Some(mode)) = (session, mode) else {
            return;
        };
        // The option may belong to another relay, behind this one, which keeps it in step itself.
        let state = self.sessions.see(&session);
        let Some(known) = state.config.as_deref().filter(|_| state.with_modes) else {
            return;
        };
        let own = text::items(known).find(|option| member_is(option, "id", MODE));
        if own.is_none_or(|own| member_is(own, "currentValue", &mode)) {
            return;
        }
        let update = if chosen {
            vec![
                ("sessionUpdate", Node::string("current_mode_update")),
                ("currentModeId", Node::string(&mode)),
            ]
        } else {
            let mut list = Node::owned(known.to_vec());
            for option in list.items().into_iter().flatten() {
                if member_is(&option.json(), "id", MODE) {
                    choose(option, &text::quote(&mode));
                }
            }
            state.set_config(Some(&list.json()));
            vec![
                ("sessionUpdate", Node::string("config_option_update")),
                ("configOptions", list),
            ]
        };
        let made = Message::update(Node::string(&session), Node::object(update));
        context.before.push(made);
    }
}

/// Adds the modes of a result to the list that was made from its models. Returns whether it did.
pub(super) fn add_modes(message: &mut Message<'_>) -> bool {
    let modes = message.get("/modes");
    let Some(option) = modes.and_then(|modes| option_of(&modes.json())) else {
        return false;
    };
    let list = message.items("/configOptions");
    // If the agent lists options itself, nothing is added to them.
    let made = |list: &&mut Vec<Node<'_>>| match list.as_slice() {
        [only] => member_is(&only.json(), "id", MODEL),
        _ => false,
    };
    let Some(list) = list.filter(made) else {
        return false;
    };
    list.push(option);
    message.changed = true;
    true
}

/// `{currentModeId, availableModes}` as a config option; `None` when a part is missing.
fn option_of(modes: &[u8]) -> Option<Node<'static>> {
    let current = text::member(modes, "currentModeId")?;
    let all = text::member(modes, "availableModes")?;
    if JsonType::of(current) != JsonType::String || JsonType::of(all) != JsonType::Array {
        return None;
    }
    let choices: Option<Vec<_>> = text::items(all).map(choice_of).collect();
    let choices = choices.filter(|choices| !choices.is_empty())?;
    Some(Node::object(vec![
        ("id", Node::string(MODE)),
        ("name", Node::string("Mode")),
        ("category", Node::string("mode")),
        ("type", Node::string("select")),
        ("currentValue", Node::owned(current.to_vec())),
        ("options", Node::Array(choices)),
    ]))
}
