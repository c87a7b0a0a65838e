//! Config options: v2 has no modes and no models apart from them.

use crate::action::{mode_list, model_list};
use crate::object::Json;
use crate::text::{self, JsonType};
use crate::tree::Node;

/// How much an agent may state of its options in parts, in bytes.
const MAX_LIST: usize = 1 << 20;

/// The options of a session, in the spelling of v1.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// The agent's own.
    list: Option<Vec<Json>>,
    /// The options that stand for what [`CHOICES`] names.
    stand_ins: [Option<Json>; 2],
    /// The list that was announced when the agent changed its mode, which it may announce as well.
    announced: Option<Vec<u8>>,
}

/// What v1 has apart from options, and an option stands for.
#[derive(Debug)]
pub(super) struct Choice {
    /// The id and the category of the option.
    id: &'static str,
    /// The id when an option of the agent has that one.
    other_id: &'static str,
    /// The member of a result, and the option that is made of it.
    state: &'static str,
    option: fn(&[u8]) -> Option<Json>,
    /// The method that sets it, and the member of its params.
    pub(super) set: (&'static str, &'static str),
}

/// Modes and models.
pub(super) static CHOICES: [Choice; 2] = [
    Choice {
        id: "mode",
        other_id: "acpb-mode",
        state: "modes",
        option: mode_list,
        set: ("session/set_mode", "modeId"),
    },
    Choice {
        id: "model",
        other_id: "acpb-model",
        state: "models",
        option: model_list,
        set: ("session/set_model", "modelId"),
    },
];
/// The position of modes among them.
const MODES: usize = 0;

impl Options {
    /// Takes what the result of a session states, and puts the whole list into it.
    pub(super) fn read_result(&mut self, result: &mut Node<'_>) {
        for (choice, stand_in) in CHOICES.iter().zip(&mut self.stand_ins) {
            if let Some(state) = result.value(choice.state) {
                let mut option = (choice.option)(&state.json());
                if let Some(option) = &mut option {
                    option.change_each("options", Node::drop_nulls);
                }
                *stand_in = option;
            }
        }
        self.list = list(result).or_else(|| self.list.take());
        self.announced = None;
        result.set("configOptions", self.whole());
    }

    /// The memory behind them, in bytes.
    pub(super) fn weight(&self) -> usize {
        let all = self.list.iter().flatten();
        let all = all.chain(self.stand_ins.iter().flatten()).map(Node::size);
        all.sum::<usize>() + self.announced.as_ref().map_or(0, Vec::capacity)
    }

    /// The whole list; none when the agent has stated nothing.
    pub(super) fn whole(&self) -> Option<Json> {
        let kinds = (0..CHOICES.len()).filter_map(|kind| Some((kind, self.id(kind)?)));
        let stand_ins = kinds.filter_map(|(kind, id)| {
            let mut option = self.stand_ins[kind].clone()?;
            option.set("id", id);
            Some(option)
        });
        let mut all: Vec<_> = stand_ins.collect();
        let is_stated = self.list.is_some() || !all.is_empty();
        all.extend(self.list.iter().flatten().cloned());
        is_stated.then_some(Node::Array(all))
    }

    /// What an option stands for, as its position in [`CHOICES`]; none if it is the agent's own.
    pub(super) fn target(&self, id: &str) -> Option<usize> {
        (0..CHOICES.len()).find(|kind| self.id(*kind) == Some(id))
    }

    /// Takes the agent's answer to a change of an option.
    pub(super) fn changed(
        &mut self,
        target: Option<usize>,
        id: &str,
        value: &Json,
        result: &Node<'_>,
    ) {
        if let Some(target) = target {
            let option = self.stand_ins[target].as_mut();
            if let Some(option) = option.filter(|_| value.kind() == Some(JsonType::String)) {
                option.set("currentValue", value.clone());
            }
            return;
        }
        // Some agents state only what has changed, or nothing.
        let mut stated = list(result).unwrap_or_default();
        let known = self.list.get_or_insert_default();
        if !stated.iter().any(|option| option.says("id", id)) {
            let changed = known.iter_mut().filter(|option| option.says("id", id));
            changed.for_each(|option| option.set("currentValue", value.clone()));
        }
        for option in known.iter_mut() {
            let same = |other: &Node<'_>| other.text("id") == option.text("id");
            if let Some(at) = stated.iter().position(same) {
                *option = stated.remove(at);
            }
        }
        let length = |option: &Json| option.json().len();
        let mut size: usize = known.iter().map(length).sum();
        known.extend(stated.into_iter().take_while(|option| {
            size += length(option);
            size <= MAX_LIST
        }));
    }

    /// The agent has changed its mode. Returns whether that changes an option.
    pub(super) fn set_mode(&mut self, mode: &str) -> bool {
        let native = self.native(MODES);
        let option = match native {
            Some(at) => self.list.iter_mut().flatten().nth(at),
            None => self.stand_ins[MODES].as_mut(),
        };
        let Some(option) = option.filter(|option| !option.says("currentValue", mode)) else {
            return false;
        };
        option.set("currentValue", mode);
        if native.is_some() {
            self.announced = self.whole().map(|whole| whole.json().into_owned());
        }
        true
    }

    /// Takes the list of an update. Returns whether it was announced before.
    pub(super) fn replace(&mut self, update: &Node<'_>) -> bool {
        self.list = Some(list(update).unwrap_or_default());
        let announced = self.announced.take();
        let whole = self.whole().unwrap_or(Node::Absent);
        announced.is_some_and(|announced| text::same(&announced, &whole.json()))
    }

    /// The id of the option that stands for modes or models, if there are any and the agent has no
    /// such option.
    fn id(&self, kind: usize) -> Option<&'static str> {
        let is_used = self.stand_ins[kind].is_some() && self.native(kind).is_none();
        let Choice { id, other_id, .. } = &CHOICES[kind];
        let mut all = self.list.iter().flatten();
        let is_taken = all.any(|option| option.says("id", id));
        is_used.then_some(if is_taken { other_id } else { id })
    }

    /// The position of the agent's own option of that category.
    fn native(&self, kind: usize) -> Option<usize> {
        let mut all = self.list.iter().flatten();
        all.position(|option| option.says("category", CHOICES[kind].id))
    }
}

/// The options that a message states.
fn list(body: &Node<'_>) -> Option<Vec<Json>> {
    body.array("configOptions")
}
