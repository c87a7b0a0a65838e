//! A container that a walk through a message has entered.
//!
//! Not here: walking (see `walk`).

use std::ops::Range;

use super::arguments::Word;
use super::given::is_short;
use super::names::is_telling;

/// An open container.
#[derive(Default)]
pub(super) struct Level {
    pub(super) is_object: bool,
    /// All in it is secret.
    pub(super) secret: bool,
    /// That is so because of the name of the member it is, such as `api-key`, and nothing else.
    pub(super) named: bool,
    /// That is so because the user said so.
    pub(super) pointed: bool,
    /// What is random in it is secret, for it is in `credentials` or the like.
    pub(super) group: bool,
    /// The member at hand.
    pub(super) name: String,
    /// The element at hand.
    pub(super) index: usize,
    /// The element before was an option of a command that takes a secret.
    pub(super) option: bool,
    /// Of `{"name": …, "value": …}`: the name, if it tells.
    pub(super) telling: Option<String>,
    /// Of `{"configId": …, "value": …}`: whether the id is that of a secret.
    pub(super) option_id: bool,
    /// All texts and numbers of its `value`, with their places: to be replaced if the name tells.
    pub(super) values: Vec<(Range<usize>, String)>,
    /// The number of the level whose `value` it is in.
    pub(super) pair: Option<usize>,
    /// Words of a command line: the first one, and the others.
    pub(super) program: Vec<Word>,
    pub(super) words: Vec<Word>,
}

impl Level {
    /// Whether the name of the member at hand is that of a secret.
    pub(super) fn tells(&self) -> bool {
        let telling = || is_telling(&self.name) || is_short(self.name.as_bytes());
        self.group || (self.is_object && telling())
    }

    /// Whether the member at hand is that one.
    pub(super) fn is_at(&self, member: &str) -> bool {
        self.is_object && self.name == member
    }

    /// Whether the member at hand is the id of a session's setting.
    pub(super) fn is_at_id(&self) -> bool {
        self.is_at("configId") || self.is_at("id")
    }

    /// Whether it is what a name or an id stands beside.
    pub(super) fn is_at_value(&self) -> bool {
        self.is_at("value") || self.is_at("currentValue")
    }

    /// The step of a JSON Pointer to what is at hand.
    pub(super) fn step(&self) -> String {
        if self.is_object {
            self.name.clone()
        } else {
            self.index.to_string()
        }
    }
}
