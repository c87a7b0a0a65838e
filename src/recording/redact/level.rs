//! A container that a walk through a message has entered.
//!
//! Not here: walking (see `walk`).

use std::ops::Range;

use super::arguments::Word;
use super::given::{is_chosen, is_held, is_short, is_sure, may_hold};
use super::names::{is_folder, is_telling};
use super::random::{is_random, reads_as_words};

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
    /// Whether a text, which is asked for when the name may tell, is a secret by the name of the
    /// member at hand.
    pub(super) fn holds(&self, text: impl FnOnce() -> String) -> bool {
        let name = self.name.as_bytes();
        let telling = || is_telling(&self.name) || is_short(name);
        let tells = self.group || (self.is_object && telling());
        let held = self.is_object && may_hold(name);
        if !tells && !held {
            return false;
        }
        let text = text();
        let text = text.as_bytes();
        let looks = || is_random(text) || is_sure(name) && is_chosen(text);
        (tells && !is_folder(&self.name, text) && looks() && !reads_as_words(text))
            || (held && is_held(name, text))
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
