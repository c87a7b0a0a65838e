//! Config options: v2 has no modes and no models apart from them.

use std::borrow::Cow;

use crate::dialect::text;
use crate::dialect::tree::Node;
use crate::dialect::versions::json::{array, remove, set, text as text_of, value};

/// The options of a session, in the spelling of v1.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// The agent's own.
    list: Option<Vec<Node<'static>>>,
    modes: Option<Choice>,
    models: Option<Choice>,
    /// The list that was announced when the agent changed its mode, which it may announce as well.
    announced: Option<Vec<u8>>,
}

/// Modes or models.
#[derive(Debug)]
struct Choice {
    current: String,
    /// Values of a select option.
    values: Node<'static>,
}

/// What an option stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Itself.
    Option,
    /// The modes of the session.
    Mode,
    /// The models of the session.
    Model,
}

/// The names of the option that stands for modes or models, and of their members.
struct Names {
    id: &'static str,
    /// The id when an option of the agent has that one.
    other_id: &'static str,
    name: &'static str,
    state: &'static str,
    current: &'static str,
    available: &'static str,
    value: &'static str,
}

const MODE: Names = Names {
    id: "mode",
    other_id: "acpb-mode",
    name: "Mode",
    state: "modes",
    current: "currentModeId",
    available: "availableModes",
    value: "id",
};
const MODEL: Names = Names {
    id: "model",
    other_id: "acpb-model",
    name: "Model",
    state: "models",
    current: "currentModelId",
    available: "availableModels",
    value: "modelId",
};

impl Options {
    /// Takes what the result of a session states, and puts the whole list into it.
    pub(super) fn read_result(&mut self, result: &mut Node<'_>) {
        for (names, choice) in [(MODE, &mut self.modes), (MODEL, &mut self.models)] {
            if let Some(state) = value(result, names.state) {
                *choice = Choice::read(&state, &names);
            }
        }
        if let Some(list) = list(result) {
            self.list = Some(list);
        }
        self.announced = None;
        remove(result, "configOptions");
        if let Some(whole) = self.whole() {
            set(result, "configOptions", whole);
        }
    }

    /// The whole list; none when the agent has stated nothing.
    pub(super) fn whole(&self) -> Option<Node<'static>> {
        let mut all = Vec::new();
        for (names, choice) in [(&MODE, &self.modes), (&MODEL, &self.models)] {
            if let Some(choice) = choice
                && self.native(names).is_none()
            {
                all.push(choice.option(names, self.id(names)));
            }
        }
        if self.list.is_none() && all.is_empty() {
            return None;
        }
        all.extend(self.list.iter().flatten().cloned());
        Some(Node::Array(all))
    }

    /// What an option stands for.
    pub(super) fn target(&self, id: &str) -> Target {
        let stands = |names: &Names, choice: &Option<Choice>| {
            choice.is_some() && self.native(names).is_none() && self.id(names) == id
        };
        match () {
            () if stands(&MODE, &self.modes) => Target::Mode,
            () if stands(&MODEL, &self.models) => Target::Model,
            () => Target::Option,
        }
    }

    /// Takes the agent's answer to a change of an option.
    pub(super) fn changed(
        &mut self,
        target: Target,
        id: &str,
        value: &Node<'static>,
        result: &Node<'_>,
    ) {
        let text = || text::string(&value.json()).map(Cow::into_owned);
        let choice = match target {
            Target::Mode => &mut self.modes,
            Target::Model => &mut self.models,
            Target::Option => {
                // Some agents state only what has changed, or nothing.
                let mut stated = list(result).unwrap_or_default();
                if !stated.iter().any(|option| has_id(option, id)) {
                    let known = self.list.iter_mut().flatten();
                    for option in known.filter(|option| has_id(option, id)) {
                        set(option, "currentValue", value.clone());
                    }
                }
                let list = self.list.get_or_insert_default();
                for option in list.iter_mut() {
                    let same = |other: &Node<'_>| text_of(other, "id") == text_of(option, "id");
                    if let Some(at) = stated.iter().position(same) {
                        *option = stated.remove(at);
                    }
                }
                list.extend(stated);
                return;
            }
        };
        if let (Some(choice), Some(value)) = (choice, text()) {
            choice.current = value;
        }
    }

    /// The agent has changed its mode. Returns whether that changes an option.
    pub(super) fn set_mode(&mut self, mode: &str) -> bool {
        let Some(at) = self.native(&MODE) else {
            let Some(modes) = &mut self.modes else {
                return false;
            };
            return std::mem::replace(&mut modes.current, mode.to_owned()) != mode;
        };
        let option = self.list.iter_mut().flatten().nth(at);
        let Some(option) = option.filter(|option| !has_text(option, "currentValue", mode)) else {
            return false;
        };
        set(option, "currentValue", Node::string(mode));
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

    /// The position of the agent's own option of that category.
    fn native(&self, names: &Names) -> Option<usize> {
        let mut all = self.list.iter().flatten();
        all.position(|option| has_text(option, "category", names.id))
    }

    /// The id of the option that stands for modes or models.
    fn id(&self, names: &Names) -> &'static str {
        let mut all = self.list.iter().flatten();
        match all.any(|option| has_id(option, names.id)) {
            true => names.other_id,
            false => names.id,
        }
    }
}

impl Choice {
    fn read(state: &Node<'static>, names: &Names) -> Option<Self> {
        let mut values = Vec::new();
        for stated in array(state, names.available)? {
            let id = text_of(&stated, names.value)?;
            let name = text_of(&stated, "name").unwrap_or_else(|| id.clone());
            let mut made = vec![("value", Node::string(&id)), ("name", Node::string(&name))];
            for name in ["description", "_meta"] {
                made.extend(value(&stated, name).map(|found| (name, found)));
            }
            values.push(Node::object(made));
        }
        Some(Self {
            current: text_of(state, names.current)?,
            values: Node::Array(values),
        })
    }

    /// The option that stands for it.
    fn option(&self, names: &Names, id: &str) -> Node<'static> {
        Node::object(vec![
            ("id", Node::string(id)),
            ("name", Node::string(names.name)),
            ("category", Node::string(names.id)),
            ("type", Node::string("select")),
            ("currentValue", Node::string(&self.current)),
            ("options", self.values.clone()),
        ])
    }
}

/// The options that a message states.
fn list(body: &Node<'_>) -> Option<Vec<Node<'static>>> {
    array(body, "configOptions")
}

fn has_id(option: &Node<'_>, id: &str) -> bool {
    has_text(option, "id", id)
}

fn has_text(option: &Node<'_>, name: &str, text: &str) -> bool {
    text_of(option, name).as_deref() == Some(text)
}
