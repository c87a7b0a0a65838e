//! Models and modes, and the config options that represent them.
//!
//! - `model_option`: `models` in the result that opens a session becomes a config option of
//!   category `model`, which the bridge owns; it is put back into every list that omits it, and so
//!   is the one for `modes`. Where the agent has such an option itself, `models` is parked. An
//!   answer to `session/set_config_option` without a list gets the last list, with the new value.
//!   Writing, lists are remembered, and the agent's `models` are added beside the options again, for
//!   clients that read nothing else.
//! - `set_model`: `session/set_model` becomes `session/set_config_option` of the option of category
//!   `model` that offers the id. The method is unchanged if the agent offered the id in `models` and
//!   has not answered that it lacks the method, or if no option offers the id and the agent
//!   offered `models`. If there were neither, the agent's only option of that category is set, and
//!   the agent checks the value.
//! - `models_of_options`: writing, `models` is made from that option, for clients that read it.
//! - `models_update`: a vendor's list of models becomes a `config_option_update`.
//! - `mode_option`: a client that receives config options uses them in place of `modes` (see the
//!   protocol's page on session config options), so a list that the bridge has made from `models`
//!   contains the modes, too. Both are kept in step: a `current_mode_update`, and the answer to a
//!   `session/set_mode`, send the list with the new value first, unless it had that value; the
//!   answer to a choice of the bridge's option sends a `current_mode_update`, unless the agent has.
//! - `choose_mode`: writing, a choice of that option is `session/set_mode`, if the bridge has made
//!   it.
//!
//! No value is invented: where one is missing, the message is forwarded unchanged, with a note.

use crate::message::Message;
use crate::methods::method_name;
use crate::object::object;
use crate::pending::PendingRequest;
use crate::pointer::own_pointer;
use crate::step::Step;
use crate::table::Way;
use crate::text::{self, JsonType};
use crate::translation::DialectEvent;
use crate::translator::Translator;
use crate::tree::Node;
use jsonrpc::Kind;

/// The ids of the options that the bridge owns.
const MODEL: &str = "_acp-relay.model";
const MODE: &str = "_acp-relay.mode";

const SET_OPTION: &str = "session/set_config_option";
const SET_MODE: &str = "session/set_mode";
const SET_MODEL: &str = "session/set_model";

/// Where an agent's `models` are parked that has a model option of its own.
const PARKED: &str = "/_meta/acp-relay/models";

impl Translator {
    pub(super) fn model_option(&mut self, message: &mut Message<'_>, step: &mut Step<'_, '_>) {
        let list_at = match message.kind {
            Kind::Result => "/configOptions",
            Kind::Notification => "/update/configOptions",
            _ => return,
        };
        let session = message.session().or_else(|| step.pending.session.clone());
        let Some(session) = session else {
            return;
        };
        let is_result = message.kind == Kind::Result;
        if step.way == Way::Read {
            if is_result {
                read_models(message, step);
                if add_modes(message) {
                    self.sessions.see(&session).with_modes = true;
                }
                self.fill_list(message, step, &session);
            }
            self.put_back(message, step.pending, &session, list_at);
        } else if is_result && &*step.pending.canonical != SET_OPTION {
            // The agent's `models`, which were parked or made an option, are added again.
            let list = message.json_at("/configOptions").unwrap_or_default();
            let own = text::items(&list).any(|option| member_is(option, "id", MODEL));
            if own || message.get(PARKED).is_some() {
                models_of_options(message);
            }
            if let Some(models) = message.json_at("/models") {
                self.sessions.see(&session).set_models(models);
            }
        }
        if let Some(list) = array_at(message, list_at) {
            self.sessions.see(&session).set_config(Some(&list));
        }
    }

    /// An answer without a list gets the list that was sent last.
    fn fill_list(&self, message: &mut Message<'_>, step: &mut Step<'_, '_>, session: &str) {
        let is_empty = message.get("/configOptions").is_none();
        if &*step.pending.canonical != SET_OPTION || !is_empty {
            return;
        }
        let Some(known) = self.known_options(session) else {
            let why = "the answer has no config options, and none were sent before";
            step.out.note(DialectEvent::Unmatched, None, why);
            return;
        };
        if message.body.kind() != Some(JsonType::Object) {
            message.body = Node::Absent;
        }
        message.set("/configOptions", chosen(known, step.pending));
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

    pub(super) fn rebuild_options(&self, message: &mut Message<'_>, step: &Step<'_, '_>) {
        if message.get("/configOptions").is_none() && message.kind == Kind::Result {
            let session = self.session(step.pending);
            let known = session.and_then(|session| session.config.as_deref());
            message.set(
                "/configOptions",
                chosen(known.unwrap_or(b"[]"), step.pending),
            );
        }
    }

    pub(super) fn set_model(&self, message: &mut Message<'_>) {
        let found = ["/modelId", "/model_id"];
        let found = found
            .into_iter()
            .find_map(|at| Some((at, message.json_at(at)?)));
        let (Some(session), Some((at, value))) = (message.session(), found) else {
            return;
        };
        let session = self.sessions.get(&session);
        let Some(known) = session.and_then(|session| session.config.as_deref()) else {
            return;
        };
        let models = session.and_then(|session| session.models.as_deref());
        let offered = models.and_then(|models| text::member(models, "availableModels"));
        let is_offered = text::items(offered.unwrap_or_default())
            .any(|model| text::member(model, "modelId").is_some_and(|own| text::same(own, &value)));
        let is_made = text::items(known).any(|option| member_is(option, "id", MODEL));
        if is_offered && !is_made && session.is_some_and(|session| !session.lacks_set_model) {
            return;
        }
        let all = || text::items(known).filter(|option| is_model(option));
        // The option made from the agent's `models` becomes the same method again, whatever the id.
        let offers = |option: &&[u8]| {
            let is_value =
                |choice| text::member(choice, "value").is_some_and(|own| text::same(own, &value));
            member_is(option, "id", MODEL) || choices(option).any(is_value)
        };
        let offering: Vec<&[u8]> = all().filter(offers).collect();
        let candidates = match offering.is_empty() {
            true if session.is_some_and(|session| session.models.is_some()) => return,
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
        message.take(at);
        message.set("/configId", id);
        message.set("/value", Node::owned(value));
        message.method = method_name(SET_OPTION);
        message.changed = true;
    }

    /// Remembers an agent without `session/set_model`, by its error.
    pub(crate) fn see_error(&mut self, request: &PendingRequest, error: &[u8]) {
        if *request.canonical == *SET_MODEL
            && let Some(session) = &request.session
        {
            let code = text::member(error, "code").unwrap_or_default();
            self.sessions.see(session).lacks_set_model |= text::equals(b"-32601", code);
        }
    }

    pub(super) fn models_update(&self, message: &mut Message<'_>, step: &mut Step<'_, '_>) {
        let session = message.session();
        let session = session.or_else(|| self.sessions.only().map(str::to_owned));
        let known = session.as_deref();
        let known = known.and_then(|session| self.known_options(session));
        let option = model_list(&message.body.json());
        let (Some(session), Some(known), Some(option)) = (session, known, option) else {
            let why = "a list of models that belongs to no session, or cannot be read";
            return step.out.note(DialectEvent::Unmatched, None, why);
        };
        let mut list = Node::owned(known.to_vec());
        if let Some(all) = list.items() {
            all.retain(|option| !member_is(&option.json(), "id", MODEL));
            if all.iter().any(|option| is_model(&option.json())) {
                let why = "the agent has a model option of its own";
                return step.out.note(DialectEvent::Unmatched, None, why);
            }
            all.push(option);
        }
        message.method = method_name("session/update");
        message.body = options_update(&session, list).body;
        message.changed = true;
    }

    /// A choice of an option that this bridge has made becomes `session/set_mode`.
    pub(super) fn choose_mode(&self, message: &mut Message<'_>) {
        let session = message.session().unwrap_or_default();
        let session = self.sessions.get(&session);
        if session.is_none_or(|session| !session.with_modes) {
            return;
        }
        message.take("/configId");
        if let Some(mode) = message.take("/value") {
            message.set("/modeId", mode);
        }
        message.method = method_name(SET_MODE);
        message.changed = true;
    }

    pub(super) fn mode_option(&mut self, message: &Message<'_>, step: &mut Step<'_, '_>) {
        let pending = &*step.pending;
        let method = &*pending.canonical;
        let is_choice =
            method == SET_OPTION && pending.text_param("configId").as_deref() == Some(MODE);
        let (session, mode) = match message.kind {
            Kind::Notification => (message.session(), message.text_at("/update/currentModeId")),
            Kind::Result if is_choice => (pending.session.clone(), pending.text_param("value")),
            Kind::Result if method == SET_MODE => {
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
        let made = if is_choice {
            let update = object! { "sessionUpdate": "current_mode_update", "currentModeId": mode };
            Message::update(Node::string(&session), update)
        } else {
            let mut list = Node::owned(known.to_vec());
            for option in list.items().into_iter().flatten() {
                if member_is(&option.json(), "id", MODE) {
                    choose(option, &text::quote(&mode));
                }
            }
            state.set_config(Some(&list.json()));
            options_update(&session, list)
        };
        step.before.push(made);
    }
}

pub(super) fn models_of_options(message: &mut Message<'_>) {
    if message.kind != Kind::Result || message.get("/models").is_some() {
        return;
    }
    if let Some(parked) = message.take(PARKED) {
        return message.set("/models", parked);
    }
    let Some(list) = array_at(message, "/configOptions") else {
        return;
    };
    let option = text::items(&list).find(|option| is_model(option));
    if let Some(made) = option.and_then(models_of) {
        message.set("/models", made);
    }
}

/// A `config_option_update` with this list.
fn options_update<'a>(session: &str, list: Node<'a>) -> Message<'a> {
    let update = object! { "sessionUpdate": "config_option_update", "configOptions": list };
    Message::update(Node::string(session), update)
}

/// `models` of a result → the option that represents them.
fn read_models(message: &mut Message<'_>, step: &mut Step<'_, '_>) {
    let Some(models) = message.json_at("/models") else {
        return;
    };
    if models == b"null" {
        message.take("/models");
        message.changed = true;
        return;
    }
    let mut list = message.json_at("/configOptions").map(Node::owned);
    let mut own = list.as_mut().and_then(Node::items).into_iter().flatten();
    if own.any(|option| is_model(&option.json())) {
        message.take("/models");
        return message.set(PARKED, Node::owned(models));
    }
    let Some(option) = model_list(&models) else {
        let why = "`models` cannot be read";
        return step.out.note(DialectEvent::Unmatched, None, why);
    };
    message.take("/models");
    match list.as_mut().and_then(Node::items) {
        Some(all) => all.push(option),
        None => list = Some(Node::Array(vec![option])),
    }
    message.set("/configOptions", list.unwrap_or(Node::Absent));
}

/// Adds the modes of a result to the list that was made from its models. Returns whether it did.
fn add_modes(message: &mut Message<'_>) -> bool {
    let modes = message.json_at("/modes");
    let Some(option) = modes.and_then(|modes| mode_list(&modes)) else {
        return false;
    };
    match message.items("/configOptions") {
        // If the agent lists options itself, nothing is added to them.
        Some(list) if matches!(&list[..], [only] if member_is(&only.json(), "id", MODEL)) => {
            list.push(option);
            message.changed = true;
            true
        }
        _ => false,
    }
}

/// `{currentModelId, availableModels}` as a config option; `None` when a part is missing.
pub(crate) fn model_list(models: &[u8]) -> Option<Node<'static>> {
    let first = |names: &[&str]| names.iter().find_map(|name| text::member(models, name));
    let mut option = select_option(
        (MODEL, "Model", "model"),
        first(&["currentModelId", "current_model_id"])?,
        first(&["availableModels", "available_models"])?,
    )?;
    let meta = text::member(models, "_meta");
    option.set("_meta", meta.map(|meta| Node::owned(meta.to_vec())));
    Some(option)
}

/// `{currentModeId, availableModes}` as a config option; `None` when a part is missing.
pub(crate) fn mode_list(modes: &[u8]) -> Option<Node<'static>> {
    let all = text::member(modes, "availableModes")?;
    let current = text::member(modes, "currentModeId")?;
    text::items(all).next()?;
    select_option((MODE, "Mode", "mode"), current, all)
}

/// An option with these choices.
fn select_option(
    (id, name, category): (&str, &str, &str),
    current: &[u8],
    all: &[u8],
) -> Option<Node<'static>> {
    if JsonType::of(current) != JsonType::String || JsonType::of(all) != JsonType::Array {
        return None;
    }
    let choices: Option<Vec<_>> = text::items(all).map(choice_of).collect();
    Some(object! {
        "id": id,
        "name": name,
        "category": category,
        "type": "select",
        "currentValue": Node::owned(current.to_vec()),
        "options": choices?,
    })
}

/// An option as `{currentModelId, availableModels}`; `None` when a part is missing.
fn models_of(option: &[u8]) -> Option<Node<'static>> {
    let current = text::member(option, "currentValue")?;
    text::member(option, "options").filter(|all| JsonType::of(all) == JsonType::Array)?;
    let models: Vec<_> = choices(option).filter_map(model_of).collect();
    let meta = text::member(option, "_meta").filter(|_| member_is(option, "id", MODEL));
    Some(object! {
        "currentModelId": Node::owned(current.to_vec()),
        "availableModels": models,
        "_meta": meta.map(|meta| Node::owned(meta.to_vec())),
    })
}

/// The choices of an option; a group contains choices of its own.
fn choices(option: &[u8]) -> impl Iterator<Item = &[u8]> {
    let list = |of| text::member(of, "options").filter(|all| JsonType::of(all) == JsonType::Array);
    text::items(list(option).unwrap_or(b"[]")).flat_map(move |choice| match list(choice) {
        Some(group) => text::items(group).collect(),
        None => vec![choice],
    })
}

/// A model as a choice of an option; members that a choice does not have are parked.
fn choice_of(model: &[u8]) -> Option<Node<'static>> {
    if JsonType::of(model) != JsonType::Object {
        return None;
    }
    let text_of = |all: &[&'static str]| {
        all.iter().find_map(|name| {
            let value = text::member(model, name)?;
            (JsonType::of(value) == JsonType::String).then_some((*name, value))
        })
    };
    let (id_name, id) = text_of(&["modelId", "model_id", "id", "value"])?;
    let (name_name, name) = text_of(&["name", "label"]).unwrap_or((id_name, id));
    let (id, name) = (Node::owned(id.to_vec()), Node::owned(name.to_vec()));
    let mut choice = object! { "value": id, "name": name };
    for (raw, value) in text::members(model) {
        let member = text::unescape(raw)?;
        let at = match &*member {
            used if used == id_name || used == name_name => continue,
            "description" | "_meta" => vec![Box::from(&*member)],
            other => ["_meta", "acp-relay", other].map(Box::from).to_vec(),
        };
        // `_meta` of a model may be no object; then nothing is parked in it.
        let _ = choice.put(&at, Node::owned(value.to_vec()));
    }
    Some(choice)
}

/// A choice of an option as a model.
fn model_of(choice: &[u8]) -> Option<Node<'static>> {
    text::member(choice, "value")?;
    let names = [
        ("value", "modelId"),
        ("name", "name"),
        ("description", "description"),
        ("_meta", "_meta"),
    ];
    let members = names
        .into_iter()
        .filter_map(|(from, to)| Some((to, Node::owned(text::member(choice, from)?.to_vec()))));
    let mut model = Node::object(members);
    // Restores what `choice_of` has parked.
    let parked = model.take(own_pointer("/_meta/acp-relay").names());
    let parked = parked.map(|parked| parked.json().into_owned());
    for (raw, value) in text::members(parked.as_deref().unwrap_or(b"{}")) {
        // A model is an object, so `put` cannot be blocked.
        let _ = model.put(&[text::unescape(raw)?.into()], Node::owned(value.to_vec()));
    }
    Some(model)
}

/// A list with the option that a `session/set_config_option` names set to the value that it asks
/// for.
fn chosen(list: &[u8], pending: &PendingRequest) -> Node<'static> {
    let mut list = Node::owned(list.to_vec());
    let (Some(id), Some(value)) = (pending.param("configId"), pending.param("value")) else {
        return list;
    };
    for option in list.items().into_iter().flatten() {
        if text::member(&option.json(), "id").is_some_and(|own| text::same(own, id)) {
            choose(option, value);
        }
    }
    list
}

fn choose(option: &mut Node<'_>, value: &[u8]) {
    let at = own_pointer("/currentValue");
    // An option is an object, so `put` cannot be blocked.
    let _ = option.put(at.names(), Node::owned(value.to_vec()));
}

/// The array at a place, as JSON.
fn array_at(message: &Message<'_>, at: &str) -> Option<Vec<u8>> {
    let list = message.get(at)?;
    (list.kind() == JsonType::Array).then(|| list.json().into_owned())
}

fn is_model(option: &[u8]) -> bool {
    member_is(option, "category", "model")
}

fn member_is(object: &[u8], name: &str, value: &str) -> bool {
    let found = text::member(object, name).and_then(text::string);
    found.is_some_and(|found| found == value)
}
