//! Config options: v2 has no modes and no models apart from them.

use crate::dialect::object::object;
use crate::dialect::text;
use crate::dialect::tree::Node;

/// How much an agent may state of its options in parts, in bytes.
const MAX_LIST: usize = 1 << 20;

/// The options of a session, in the spelling of v1.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// The agent's own.
    list: Option<Vec<Node<'static>>>,
    /// What [`CHOICES`] names.
    choices: [Option<Choice>; 2],
    /// The list that was announced when the agent changed its mode, which it may announce as well.
    announced: Option<Vec<u8>>,
}

/// The state of modes or models.
#[derive(Debug)]
struct Choice {
    current: String,
    /// Values of a select option.
    values: Vec<Node<'static>>,
}

/// What v1 has apart from options, and an option stands for.
#[derive(Debug)]
pub(super) struct Names {
    /// The id and the category of the option.
    id: &'static str,
    /// The id when an option of the agent has that one.
    other_id: &'static str,
    name: &'static str,
    /// The member of a result, and those in it.
    state: &'static str,
    current: &'static str,
    available: &'static str,
    value: &'static str,
    /// The method that sets it, and the member of its params.
    pub(super) set: (&'static str, &'static str),
}

/// Modes and models.
pub(super) static CHOICES: [Names; 2] = [
    Names {
        id: "mode",
        other_id: "acpb-mode",
        name: "Mode",
        state: "modes",
        current: "currentModeId",
        available: "availableModes",
        value: "id",
        set: ("session/set_mode", "modeId"),
    },
    Names {
        id: "model",
        other_id: "acpb-model",
        name: "Model",
        state: "models",
        current: "currentModelId",
        available: "availableModels",
        value: "modelId",
        set: ("session/set_model", "modelId"),
    },
];
/// The position of modes among them.
const MODES: usize = 0;

impl Options {
    /// Takes what the result of a session states, and puts the whole list into it.
    pub(super) fn read_result(&mut self, result: &mut Node<'_>) {
        for (names, choice) in CHOICES.iter().zip(&mut self.choices) {
            if let Some(state) = result.value(names.state) {
                *choice = Choice::read(&state, names);
            }
        }
        self.list = list(result).or(self.list.take());
        self.announced = None;
        result.set("configOptions", self.whole());
    }

    /// The whole list; none when the agent has stated nothing.
    pub(super) fn whole(&self) -> Option<Node<'static>> {
        let stand_ins = (0..CHOICES.len()).filter_map(|kind| self.stand_in(kind));
        let stand_ins = stand_ins.map(|(id, choice, names)| {
            object! {
                "id": id,
                "name": names.name,
                "category": names.id,
                "type": "select",
                "currentValue": &*choice.current,
                "options": choice.values.clone(),
            }
        });
        let mut all: Vec<_> = stand_ins.collect();
        let is_stated = self.list.is_some() || !all.is_empty();
        all.extend(self.list.iter().flatten().cloned());
        is_stated.then_some(Node::Array(all))
    }

    /// What an option stands for, as its position in [`CHOICES`]; none if it is the agent's own.
    pub(super) fn target(&self, id: &str) -> Option<usize> {
        let is_it = |kind: &usize| self.stand_in(*kind).is_some_and(|(own, ..)| own == id);
        (0..CHOICES.len()).find(is_it)
    }

    /// Takes the agent's answer to a change of an option.
    pub(super) fn changed(
        &mut self,
        target: Option<usize>,
        id: &str,
        value: &Node<'static>,
        result: &Node<'_>,
    ) {
        if let Some(target) = target {
            let value = text::string(&value.json()).map(std::borrow::Cow::into_owned);
            if let (Some(choice), Some(value)) = (&mut self.choices[target], value) {
                choice.current = value;
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
        let mut size: usize = known.iter().map(Node::size).sum();
        known.extend(stated.into_iter().take_while(|option| {
            size += option.size();
            size <= MAX_LIST
        }));
    }

    /// The agent has changed its mode. Returns whether that changes an option.
    pub(super) fn set_mode(&mut self, mode: &str) -> bool {
        let Some(at) = self.native(&CHOICES[MODES]) else {
            let modes = self.choices[MODES].as_mut();
            return modes.is_some_and(|modes| {
                std::mem::replace(&mut modes.current, mode.to_owned()) != mode
            });
        };
        let option = self.list.iter_mut().flatten().nth(at);
        let Some(option) = option.filter(|option| !option.says("currentValue", mode)) else {
            return false;
        };
        option.set("currentValue", mode);
        self.announced = self.whole().map(|whole| whole.json().into_owned());
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
    fn stand_in(&self, kind: usize) -> Option<(&'static str, &Choice, &'static Names)> {
        let names = &CHOICES[kind];
        let choice = self.choices[kind].as_ref()?;
        let is_taken = || {
            let mut all = self.list.iter().flatten();
            all.any(|option| option.says("id", names.id))
        };
        match self.native(names) {
            Some(_) => None,
            None if is_taken() => Some((names.other_id, choice, names)),
            None => Some((names.id, choice, names)),
        }
    }

    /// The position of the agent's own option of that category.
    fn native(&self, names: &Names) -> Option<usize> {
        let mut all = self.list.iter().flatten();
        all.position(|option| option.says("category", names.id))
    }
}

impl Choice {
    fn read(state: &Node<'static>, names: &Names) -> Option<Self> {
        let value = |stated: Node<'static>| {
            let id = stated.text(names.value)?;
            let name = stated.text("name").unwrap_or_else(|| id.clone());
            Some(object! {
                "value": id,
                "name": name,
                "description": stated.value("description"),
                "_meta": stated.value("_meta"),
            })
        };
        let values = state.array(names.available)?.into_iter().map(value);
        Some(Self {
            current: state.text(names.current)?,
            values: values.collect::<Option<_>>()?,
        })
    }
}

/// The options that a message states.
fn list(body: &Node<'_>) -> Option<Vec<Node<'static>>> {
    body.array("configOptions")
}
