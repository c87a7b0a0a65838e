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

use super::mode::{self, add_modes};
use super::run::{place, set};
use crate::dialect::asked::Asked;
use crate::dialect::message::Message;
use crate::dialect::outcome::{Happened, Outcome};
use crate::dialect::table::Way;
use crate::dialect::text::{self, Type};
use crate::dialect::translate::Translator;
use crate::dialect::tree::Node;
use crate::jsonrpc::Kind;

/// The id of the option that the bridge owns.
pub(super) const OWN: &str = "_acp-relay.model";
pub(super) const SET_OPTION: &str = "session/set_config_option";
const PARKED: &str = "/_meta/acp-relay/models";

impl Translator {
    pub(super) fn model_option(
        &mut self,
        message: &mut Message<'_>,
        asked: &Asked,
        way: Way,
        out: &mut Outcome,
    ) {
        let (session_at, list_at) = match message.kind {
            Kind::Result => ("/sessionId", "/configOptions"),
            Kind::Notification => ("/sessionId", "/update/configOptions"),
            _ => return,
        };
        let session = message.body.text_at(&place(session_at));
        let Some(session) = session.or_else(|| asked.session.clone()) else {
            return;
        };
        if way == Way::Read {
            if message.kind == Kind::Result {
                read_models(message, out);
                if add_modes(message) {
                    self.kept.moded.keep(&session, []);
                }
                self.fill_list(message, asked, &session, out);
            }
            self.put_back(message, asked, &session, list_at);
        } else if message.kind == Kind::Result && &*asked.canonical != SET_OPTION {
            write_models(message);
            if message.body.look(&place("/models")).is_some() {
                self.kept.modeled.keep(&session, []);
            }
        }
        if let Some(list) = message.body.look(&place(list_at))
            && list.kind() == Type::Array
        {
            self.kept.options.keep(&session, list.json().into_owned());
        }
    }

    /// An answer without a list gets the list that was sent last.
    fn fill_list(
        &self,
        message: &mut Message<'_>,
        asked: &Asked,
        session: &str,
        out: &mut Outcome,
    ) {
        let empty = message.body.look(&place("/configOptions")).is_none();
        if &*asked.canonical != SET_OPTION || !empty {
            return;
        }
        let Some(known) = self.kept.options.get(session) else {
            let why = "the answer has no config options, and none were sent before";
            out.note(Happened::Unmatched, None, why);
            return;
        };
        let mut list = Node::made(known.clone());
        let params = asked.params.as_deref().unwrap_or(b"{}");
        if let (Some(id), Some(value)) = (
            text::member(params, "configId"),
            text::member(params, "value"),
        ) {
            for option in list.items().into_iter().flatten() {
                let own = member(option, "id").is_some_and(|own| text::same(&own, id));
                if own {
                    choose(option, value);
                }
            }
        }
        if message.body.kind() != Some(Type::Object) {
            message.body = Node::Absent;
        }
        set(message, "/configOptions", list);
    }

    /// Restores the bridge's own options in a list that omits them.
    fn put_back(&self, message: &mut Message<'_>, asked: &Asked, session: &str, list_at: &str) {
        let Some(known) = self.kept.options.get(session) else {
            return;
        };
        let list = message
            .body
            .at(place(list_at).names())
            .and_then(Node::items);
        let Some(list) = list else {
            return;
        };
        for (id, category) in [(OWN, "model"), (mode::OWN, "mode")] {
            let own = text::items(known).find(|option| is(option, "id", id));
            let has = |option: &Node<'_>| is(&option.json(), "category", category);
            let Some(own) = own.filter(|_| !list.iter().any(has)) else {
                continue;
            };
            let mut own = Node::made(own.to_vec());
            let params = asked.params.as_deref().unwrap_or(b"{}");
            if is(params, "configId", id)
                && let Some(value) = text::member(params, "value")
            {
                choose(&mut own, value);
            }
            list.push(own);
            message.changed = true;
        }
    }

    pub(super) fn set_model(&self, message: &mut Message<'_>) {
        let session = message.body.text_at(&place("/sessionId"));
        let Some(session) = session else {
            return;
        };
        let names = ["/modelId", "/model_id"];
        let found = names.into_iter().find_map(|name| {
            let value = message.body.look(&place(name))?.keep();
            Some((name, value.keep()))
        });
        let (Some(known), Some((name, value))) = (self.kept.options.get(&session), found) else {
            return;
        };
        let all = || text::items(known).filter(|option| is_model(option));
        let wanted = value.json().into_owned();
        // The option made from the agent's `models` becomes the same method again, whatever the id.
        let offers = |option: &&[u8]| {
            let mut all = choices(option);
            is(option, "id", OWN) || all.any(|choice| is_choice(choice, &wanted))
        };
        let offering: Vec<&[u8]> = all().filter(offers).collect();
        let candidates = match offering.is_empty() {
            true if self.kept.modeled.get(&session).is_some() => return,
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
        let id = Node::made(id.to_vec());
        message.body.take(place(name).names());
        set(message, "/configId", id);
        set(message, "/value", value);
        message.method = SET_OPTION.into();
        message.changed = true;
    }

    pub(super) fn models_update(&self, message: &mut Message<'_>, out: &mut Outcome) {
        let session = message.body.text_at(&place("/sessionId"));
        let session = session.or_else(|| self.kept.options.only().map(str::to_owned));
        let known = session
            .as_deref()
            .and_then(|session| self.kept.options.get(session));
        let option = option_of(&message.body.json());
        let (Some(session), Some(known), Some(option)) = (session, known, option) else {
            let why = "a list of models that belongs to no session, or cannot be read";
            out.note(Happened::Unmatched, None, why);
            return;
        };
        let mut list = Node::made(known.clone());
        for old in list.items().into_iter() {
            old.retain(|option| !is(&option.json(), "id", OWN));
            if old.iter().any(|option| is_model(&option.json())) {
                out.note(
                    Happened::Unmatched,
                    None,
                    "the agent has a model option of its own",
                );
                return;
            }
            old.push(option.clone());
        }
        message.method = "session/update".into();
        message.body = Node::object(vec![("sessionId", Node::string(&session))]);
        set(
            message,
            "/update/sessionUpdate",
            Node::string("config_option_update"),
        );
        set(message, "/update/configOptions", list);
    }
}

pub(super) fn models_of_options(message: &mut Message<'_>) {
    if message.kind != Kind::Result || message.body.look(&place("/models")).is_some() {
        return;
    }
    if let Some(parked) = message.body.take(place(PARKED).names()) {
        return set(message, "/models", parked);
    }
    let list = message.body.look(&place("/configOptions"));
    let Some(list) = list.filter(|list| list.kind() == Type::Array) else {
        return;
    };
    let list = list.json().into_owned();
    let option = text::items(&list).find(|option| is_model(option));
    if let Some(made) = option.and_then(models_of) {
        set(message, "/models", made);
    }
}

/// Adds the agent's `models`, which were parked or made an option, beside the options again.
fn write_models(message: &mut Message<'_>) {
    let list = message.body.look(&place("/configOptions"));
    let list = list
        .map(|list| list.json().into_owned())
        .unwrap_or_default();
    let own = text::items(&list).find(|option| is(option, "id", OWN));
    if own.is_some() || message.body.look(&place(PARKED)).is_some() {
        models_of_options(message);
    }
}

/// An option as `{currentModelId, availableModels}`; `None` when a part is missing.
fn models_of(option: &[u8]) -> Option<Node<'static>> {
    let current = text::member(option, "currentValue")?;
    text::member(option, "options").filter(|all| Type::of(all) == Type::Array)?;
    let models = choices(option).filter_map(model_of).collect();
    let mut made = vec![
        ("currentModelId", Node::made(current.to_vec())),
        ("availableModels", Node::Array(models)),
    ];
    if let Some(meta) = text::member(option, "_meta").filter(|_| is(option, "id", OWN)) {
        made.push(("_meta", Node::made(meta.to_vec())));
    }
    Some(Node::object(made))
}

/// The choices of an option; a group contains choices of its own.
fn choices(option: &[u8]) -> impl Iterator<Item = &[u8]> {
    let list = |of| text::member(of, "options").filter(|all| Type::of(all) == Type::Array);
    text::items(list(option).unwrap_or(b"[]")).flat_map(move |choice| match list(choice) {
        Some(group) => text::items(group).collect(),
        None => vec![choice],
    })
}

fn is_choice(choice: &[u8], value: &[u8]) -> bool {
    text::member(choice, "value").is_some_and(|own| text::same(own, value))
}

/// `models` of a result → the option that represents them.
fn read_models(message: &mut Message<'_>, out: &mut Outcome) {
    let Some(models) = message.body.look(&place("/models")) else {
        return;
    };
    if models.kind() == Type::Null {
        message.body.take(place("/models").names());
        message.changed = true;
        return;
    }
    let models = models.json().into_owned();
    let mut list = message
        .body
        .look(&place("/configOptions"))
        .map(|list| Node::made(list.json().into_owned()));
    let own = list
        .as_mut()
        .and_then(Node::items)
        .is_some_and(|all| all.iter().any(|option| is_model(&option.json())));
    if own {
        message.body.take(place("/models").names());
        set(message, PARKED, Node::made(models));
        return;
    }
    let Some(option) = option_of(&models) else {
        out.note(Happened::Unmatched, None, "`models` cannot be read");
        return;
    };
    message.body.take(place("/models").names());
    match list.as_mut().and_then(Node::items) {
        Some(all) => all.push(option),
        None => list = Some(Node::Array(vec![option])),
    }
    set(message, "/configOptions", list.unwrap_or(Node::Absent));
}

/// `{currentModelId, availableModels}` as a config option; `None` when a part is missing.
fn option_of(models: &[u8]) -> Option<Node<'static>> {
    let first = |names: &[&str]| names.iter().find_map(|name| text::member(models, name));
    let current = first(&["currentModelId", "current_model_id"])?;
    let all = first(&["availableModels", "available_models"])?;
    if Type::of(current) != Type::String || Type::of(all) != Type::Array {
        return None;
    }
    let choices: Option<Vec<_>> = text::items(all).map(choice_of).collect();
    let mut option = vec![
        ("id", Node::string(OWN)),
        ("name", Node::string("Model")),
        ("category", Node::string("model")),
        ("type", Node::string("select")),
        ("currentValue", Node::made(current.to_vec())),
        ("options", Node::Array(choices?)),
    ];
    if let Some(meta) = text::member(models, "_meta") {
        option.push(("_meta", Node::made(meta.to_vec())));
    }
    Some(Node::object(option))
}

/// A model as a choice of an option; members that a choice does not have are parked.
pub(super) fn choice_of(model: &[u8]) -> Option<Node<'static>> {
    if Type::of(model) != Type::Object {
        return None;
    }
    let ids = ["modelId", "model_id", "id", "value"];
    let names = ["name", "label"];
    let text_of = |all: &[&'static str]| {
        all.iter().find_map(|name| {
            let value = text::member(model, name)?;
            (Type::of(value) == Type::String).then_some((*name, value))
        })
    };
    let (id_name, id) = text_of(&ids)?;
    let name = text_of(&names);
    let mut choice = Node::object(vec![
        ("value", Node::made(id.to_vec())),
        (
            "name",
            Node::made(name.map_or(id, |(_, name)| name).to_vec()),
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
        let _ = choice.put(&at, Node::made(value.to_vec()));
    }
    Some(choice)
}

/// A choice of an option as a model.
fn model_of(choice: &[u8]) -> Option<Node<'static>> {
    let mut model = vec![(
        "modelId",
        Node::made(text::member(choice, "value")?.to_vec()),
    )];
    for name in ["name", "description", "_meta"] {
        if let Some(value) = text::member(choice, name) {
            model.push((name, Node::made(value.to_vec())));
        }
    }
    let mut model = Node::object(model);
    // Restores what `choice_of` has parked.
    let parked = model.take(place("/_meta/acp-relay").names());
    let parked = parked.map(|parked| parked.json().into_owned());
    for (raw, value) in text::members(parked.as_deref().unwrap_or(b"{}")) {
        // A model is an object, so `put` cannot be blocked.
        let _ = model.put(&[text::unescape(raw)?.into()], Node::made(value.to_vec()));
    }
    Some(model)
}

pub(super) fn choose(option: &mut Node<'_>, value: &[u8]) {
    // An option is an object, so `put` cannot be blocked.
    let _ = option.put(place("/currentValue").names(), Node::made(value.to_vec()));
}

fn member(option: &Node<'_>, name: &str) -> Option<Vec<u8>> {
    let json = option.json();
    text::member(&json, name).map(<[u8]>::to_vec)
}

fn is_model(option: &[u8]) -> bool {
    is(option, "category", "model")
}

pub(super) fn is(object: &[u8], name: &str, value: &str) -> bool {
    let found = text::member(object, name).and_then(text::string);
    found.is_some_and(|found| found == value)
}
