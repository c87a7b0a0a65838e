//! Models, and the config option that represents them.
//!
//! - `model_option`: `models` in the result that opens a session becomes a config option of
//!   category `model`, which the bridge owns; it is put back into every list that omits it, and so
//!   is the one for `modes` (see `mode`). Where the agent has such an option itself, `models` is
//!   parked. An answer to `session/set_config_option` without a list gets the last list, with the
//!   new value. Writing, lists are remembered, and the agent's `models` are added beside the
//!   options again, for clients that read nothing else.
//! - `set_model`: `session/set_model` becomes `session/set_config_option` of the option of category
//!   `model` that offers the id. If none does, and the agent offered `models`, the method is
//!   unchanged; if the agent did not, its only option of that category is set, and the agent checks
//!   the value.
//! - `models_of_options`: writing, `models` is made from that option, for clients that read it.
//! - `models_update`: a vendor's list of models becomes a `config_option_update`.
//!
//! No value is invented: where one is missing, the message is forwarded unchanged, with a note.

use super::mode::add_modes;
use super::option::{MODE, MODEL, SET_OPTION, choice_of, choose, chosen, member_is};
use crate::dialect::message::Message;
use crate::dialect::pending::PendingRequest;
use crate::dialect::pointer::own_pointer;
use crate::dialect::table::Way;
use crate::dialect::text::{self, JsonType};
use crate::dialect::translation::{DialectEvent, Translation};
use crate::dialect::translator::Translator;
use crate::dialect::tree::Node;
use crate::jsonrpc::Kind;

const PARKED: &str = "/_meta/acp-relay/models";

impl Translator {
    pub(super) fn model_option(
        &mut self,
        message: &mut Message<'_>,
        pending: &PendingRequest,
        way: Way,
        out: &mut Translation,
    ) {
        let (session_at, list_at) = match message.kind {
            Kind::Result => ("/sessionId", "/configOptions"),
            Kind::Notification => ("/sessionId", "/update/configOptions"),
            _ => return,
        };
        let session = message.text_at(session_at);
        let Some(session) = session.or_else(|| pending.session.clone()) else {
            return;
        };
        if way == Way::Read {
            if message.kind == Kind::Result {
                read_models(message, out);
                if add_modes(message) {
                    self.sessions.see(&session).with_modes = true;
                }
                self.fill_list(message, pending, &session, out);
            }
            self.put_back(message, pending, &session, list_at);
        } else if message.kind == Kind::Result && &*pending.canonical != SET_OPTION {
            write_models(message);
            if message.get("/models").is_some() {
                self.sessions.see(&session).with_models = true;
            }
        }
        if let Some(list) = message.get(list_at)
            && list.kind() == JsonType::Array
        {
            self.sessions.see(&session).set_config(Some(&list.json()));
        }
    }

    /// An answer without a list gets the list that was sent last.
    fn fill_list(
        &self,
        message: &mut Message<'_>,
        pending: &PendingRequest,
        session: &str,
        out: &mut Translation,
    ) {
        let empty = message.get("/configOptions").is_none();
        if &*pending.canonical != SET_OPTION || !empty {
            return;
        }
        let Some(known) = self.known_options(session) else {
            let why = "the answer has no config options, and none were sent before";
            out.note(DialectEvent::Unmatched, None, why);
            return;
        };
        if message.body.kind() != Some(JsonType::Object) {
            message.body = Node::Absent;
        }
        message.set("/configOptions", chosen(known, pending));
    }

    /// The list of options that was sent last.
    fn known_options(&self, session: &str) -> Option<&[u8]> {
        self.sessions.get(session)?.config.as_deref()
    }

    /// Restores the bridge's own options in a list that omits them.
    fn put_back(
        &self,
        message: &mut Message<'_>,
        pending: &PendingRequest,
        session: &str,
        list_at: &str,
    ) {
        let Some(known) = self.known_options(session) else {
            return;
        };
        let Some(list) = message.items(list_at) else {
            return;
        };
        let before = list.len();
        for (id, category) in [(MODEL, "model"), (MODE, "mode")] {
            let own = text::items(known).find(|option| member_is(option, "id", id));
            let has = |option: &Node<'_>| member_is(&option.json(), "category", category);
            let Some(own) = own.filter(|_| !list.iter().any(has)) else {
                continue;
            };
            let mut own = Node::owned(own.to_vec());
            if pending.text_param("configId").as_deref() == Some(id)
                && let Some(value) = pending.param("value")
            {
                choose(&mut own, value);
            }
            list.push(own);
        }
        message.changed |= list.len() > before;
    }

    pub(super) fn set_model(&self, message: &mut Message<'_>) {
        let session = message.text_at("/sessionId");
        let Some(session) = session else {
            return;
        };
        let names = ["/modelId", "/model_id"];
        let found = names.into_iter().find_map(|name| {
            let value = message.get(name)?.to_node();
            Some((name, value.to_static()))
        });
        let (Some(known), Some((name, value))) = (self.known_options(&session), found) else {
            return;
        };
        let all = || text::items(known).filter(|option| is_model(option));
        let value_json = value.json().into_owned();
        // The option made from the agent's `models` becomes the same method again, whatever the id.
        let offers = |option: &&[u8]| {
            let mut all = choices(option);
            member_is(option, "id", MODEL) || all.any(|choice| is_choice(choice, &value_json))
        };
        let offering: Vec<&[u8]> = all().filter(offers).collect();
        let candidates = match offering.is_empty() {
            true if self.session_has(&session, |session| session.with_models) => return,
            true => all().collect(),
            false => offering,
        };
        // Several candidates are ambiguous: nothing is changed.
        let [option] = candidates[..] else {
            return;
        };
        let Some(id) = text::member(option, "id") else {
            return;
        };
        let id = Node::owned(id.to_vec());
        message.take(name);
        message.set("/configId", id);
        message.set("/value", value);
        message.method = SET_OPTION.into();
        message.changed = true;
    }

    pub(super) fn models_update(&self, message: &mut Message<'_>, out: &mut Translation) {
        let session = message.text_at("/sessionId");
        let session = session.or_else(|| self.sessions.only().map(str::to_owned));
        let known = session
            .as_deref()
            .and_then(|session| self.known_options(session));
        let option = option_of(&message.body.json());
        let (Some(session), Some(known), Some(option)) = (session, known, option) else {
            let why = "a list of models that belongs to no session, or cannot be read";
            out.note(DialectEvent::Unmatched, None, why);
            return;
        };
        let mut list = Node::owned(known.to_vec());
        for old in list.items().into_iter() {
            old.retain(|option| !member_is(&option.json(), "id", MODEL));
            if old.iter().any(|option| is_model(&option.json())) {
                out.note(
                    DialectEvent::Unmatched,
                    None,
                    "the agent has a model option of its own",
                );
                return;
            }
            old.push(option.clone());
        }
        message.method = "session/update".into();
        let update = vec![
            ("sessionUpdate", Node::string("config_option_update")),
            ("configOptions", list),
        ];
        message.body = Message::update(Node::string(&session), Node::object(update)).body;
        message.changed = true;
    }
}

pub(super) fn models_of_options(message: &mut Message<'_>) {
    if message.kind != Kind::Result || message.get("/models").is_some() {
        return;
    }
    if let Some(parked) = message.take(PARKED) {
        return message.set("/models", parked);
    }
    let list = message.get("/configOptions");
    let Some(list) = list.filter(|list| list.kind() == JsonType::Array) else {
        return;
    };
    let list = list.json().into_owned();
    let option = text::items(&list).find(|option| is_model(option));
    if let Some(made) = option.and_then(models_of) {
        message.set("/models", made);
    }
}

/// Adds the agent's `models`, which were parked or made an option, beside the options again.
fn write_models(message: &mut Message<'_>) {
    let list = message.get("/configOptions");
    let list = list
        .map(|list| list.json().into_owned())
        .unwrap_or_default();
    let own = text::items(&list).find(|option| member_is(option, "id", MODEL));
    if own.is_some() || message.get(PARKED).is_some() {
        models_of_options(message);
    }
}

/// An option as `{currentModelId, availableModels}`; `None` when a part is missing.
fn models_of(option: &[u8]) -> Option<Node<'static>> {
    let current = text::member(option, "currentValue")?;
    text::member(option, "options").filter(|all| JsonType::of(all) == JsonType::Array)?;
    let models = choices(option).filter_map(model_of).collect();
    let mut made = vec![
        ("currentModelId", Node::owned(current.to_vec())),
        ("availableModels", Node::Array(models)),
    ];
    if let Some(meta) = text::member(option, "_meta").filter(|_| member_is(option, "id", MODEL)) {
        made.push(("_meta", Node::owned(meta.to_vec())));
    }
    Some(Node::object(made))
}

/// The choices of an option; a group contains choices of its own.
fn choices(option: &[u8]) -> impl Iterator<Item = &[u8]> {
    let list = |of| text::member(of, "options").filter(|all| JsonType::of(all) == JsonType::Array);
    text::items(list(option).unwrap_or(b"[]")).flat_map(move |choice| match list(choice) {
        Some(group) => text::items(group).collect(),
        None => vec![choice],
    })
}

fn is_choice(choice: &[u8], value: &[u8]) -> bool {
    text::member(choice, "value").is_some_and(|own| text::same(own, value))
}

/// `models` of a result → the option that represents them.
fn read_models(message: &mut Message<'_>, out: &mut Translation) {
    let Some(models) = message.get("/models") else {
        return;
    };
    if models.kind() == JsonType::Null {
        message.take("/models");
        message.changed = true;
        return;
    }
    let models = models.json().into_owned();
    let mut list = message
        .get("/configOptions")
        .map(|list| Node::owned(list.json().into_owned()));
    let own = list
        .as_mut()
        .and_then(Node::items)
        .is_some_and(|all| all.iter().any(|option| is_model(&option.json())));
    if own {
        message.take("/models");
        message.set(PARKED, Node::owned(models));
        return;
    }
    let Some(option) = option_of(&models) else {
        out.note(DialectEvent::Unmatched, None, "`models` cannot be read");
        return;
    };
    message.take("/models");
    match list.as_mut().and_then(Node::items) {
        Some(all) => all.push(option),
        None => list = Some(Node::Array(vec![option])),
    }
    message.set("/configOptions", list.unwrap_or(Node::Absent));
}

/// `{currentModelId, availableModels}` as a config option; `None` when a part is missing.
fn option_of(models: &[u8]) -> Option<Node<'static>> {
    let first = |names: &[&str]| names.iter().find_map(|name| text::member(models, name));
    let current = first(&["currentModelId", "current_model_id"])?;
    let all = first(&["availableModels", "available_models"])?;
    if JsonType::of(current) != JsonType::String || JsonType::of(all) != JsonType::Array {
        return None;
    }
    let choices: Option<Vec<_>> = text::items(all).map(choice_of).collect();
    let mut option = vec![
        ("id", Node::string(MODEL)),
        ("name", Node::string("Model")),
        ("category", Node::string("model")),
        ("type", Node::string("select")),
        ("currentValue", Node::owned(current.to_vec())),
        ("options", Node::Array(choices?)),
    ];
    if let Some(meta) = text::member(models, "_meta") {
        option.push(("_meta", Node::owned(meta.to_vec())));
    }
    Some(Node::object(option))
}

/// A choice of an option as a model.
fn model_of(choice: &[u8]) -> Option<Node<'static>> {
    let mut model = vec![(
        "modelId",
        Node::owned(text::member(choice, "value")?.to_vec()),
    )];
    for name in ["name", "description", "_meta"] {
        if let Some(value) = text::member(choice, name) {
            model.push((name, Node::owned(value.to_vec())));
        }
    }
    let mut model = Node::object(model);
    // Restores what `choice_of` has parked.
    let parked = model.take(own_pointer("/_meta/acp-relay").names());
    let parked = parked.map(|parked| parked.json().into_owned());
    for (raw, value) in text::members(parked.as_deref().unwrap_or(b"{}")) {
        // A model is an object, so `put` cannot be blocked.
        let _ = model.put(&[text::unescape(raw)?.into()], Node::owned(value.to_vec()));
    }
    Some(model)
}

fn is_model(option: &[u8]) -> bool {
    member_is(option, "category", "model")
}
