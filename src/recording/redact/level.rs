//! A container that a walk through a message (see `walk`) has entered.

use std::ops::Range;

use super::arguments::Word;
use super::named_secrets::{
    is_certain, is_secret_value, is_short_name, may_be_password, may_hold_secret,
};
use super::names::{is_directory, suggests_secret};
use super::random::{is_random, reads_as_words};

/// An open container.
#[derive(Default)]
pub(super) struct Level {
    pub(super) is_object: bool,
    /// Everything in it is secret.
    pub(super) secret: bool,
    /// It is secret only because of its member name, such as `api-key`.
    pub(super) by_name: bool,
    /// It is secret because of a rule of the user.
    pub(super) by_pointer: bool,
    /// Random values in it are secret, because it is in `credentials` or the like.
    pub(super) group: bool,
    /// The name of the current member.
    pub(super) name: String,
    /// The index of the current element.
    pub(super) index: usize,
    /// The element before was an option of a command that takes a secret.
    pub(super) option: bool,
    /// Of `{"name": …, "value": …}`: the name, if it suggests a secret.
    pub(super) secret_name: Option<String>,
    /// Of `{"configId": …, "value": …}`: whether the id is that of a secret.
    pub(super) option_id: bool,
    /// All strings and numbers of its `value`, with their pointers: replaced if the name suggests
    /// so.
    pub(super) values: Vec<(Range<usize>, String)>,
    /// The index of the level whose `value` contains this one.
    pub(super) pair: Option<usize>,
    /// The words of a command line: the first one, and the others.
    pub(super) program: Vec<Word>,
    pub(super) words: Vec<Word>,
}

impl Level {
    /// Whether a string is a secret by the name of the current member; `text` is called only when
    /// the name suggests so.
    pub(super) fn is_secret_text(&self, text: impl FnOnce() -> String) -> bool {
        let name = self.name.as_bytes();
        let is_telling = || suggests_secret(&self.name) || is_short_name(name);
        let is_secret_name = self.group || (self.is_object && is_telling());
        let may_hold = self.is_object && may_hold_secret(name);
        if !is_secret_name && !may_hold {
            return false;
        }
        let text = text();
        let text = text.as_bytes();
        let looks_random = || is_random(text) || is_certain(name) && may_be_password(text);
        (is_secret_name
            && !is_directory(&self.name, text)
            && looks_random()
            && !reads_as_words(text))
            || (may_hold && is_secret_value(name, text))
    }

    /// Whether the current member has that name.
    pub(super) fn is_at_member(&self, member: &str) -> bool {
        self.is_object && self.name == member
    }

    /// Whether the current member is the id of a session setting.
    pub(super) fn is_at_id(&self) -> bool {
        self.is_at_member("configId") || self.is_at_member("id")
    }

    /// Whether the current member is the value beside a name or an id.
    pub(super) fn is_at_value(&self) -> bool {
        self.is_at_member("value") || self.is_at_member("currentValue")
    }

    /// The last step of the JSON Pointer to the current value.
    pub(super) fn step(&self) -> String {
        if self.is_object {
            self.name.clone()
        } else {
            self.index.to_string()
        }
    }
}
