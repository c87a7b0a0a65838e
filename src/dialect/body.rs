//! A message's body, for code that changes single values without a translation.
//!
//! A path is a list of names from the outside in; `*` is every element. Where an object has two
//! members of one name both are addressed, because readers differ in which of them counts.
//! Everything else keeps its bytes.

use super::message::{self, Message};
use super::methods::method_of;
use super::pointer::own_pointer;
use super::text;
use super::tree::Node;
use jsonrpc::{Envelope, Frame};

/// The value of `params`, `result` or `error`.
#[derive(Debug)]
pub struct MessageBody<'a> {
    value: Node<'a>,
    ignores_case: bool,
}

impl<'a> MessageBody<'a> {
    /// The body of a message.
    #[must_use]
    pub fn of(frame: &'a Frame, at: &'a Envelope) -> Self {
        Self {
            value: message::body(frame, at),
            ignores_case: false,
        }
    }

    /// Sets whether a path also leads to members whose names differ in case: some readers take them
    /// for the same.
    pub const fn ignore_case(&mut self, ignores: bool) {
        self.ignores_case = ignores;
    }

    /// The names of the members at a path whose values are neither `false` nor `null`.
    #[must_use]
    pub fn names(&mut self, path: &[&str]) -> Vec<String> {
        let mut names = Vec::new();
        self.each(path, &mut |node| {
            for (raw, value) in node.members().into_iter().flatten() {
                if !matches!(&*value.json(), b"false" | b"null") {
                    names.extend(text::unescape(raw).map(std::borrow::Cow::into_owned));
                }
            }
            false
        });
        names
    }

    /// The strings at a path. Other values, and strings that are not valid text (a lone surrogate),
    /// are skipped: compare with [`MessageBody::count`] to detect them.
    #[must_use]
    pub fn strings(&mut self, path: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        self.each(path, &mut |node| {
            if let Some(text) = string(node) {
                found.push(text);
            }
            false
        });
        found
    }

    /// The number of values at a path, of any type.
    #[must_use]
    pub fn count(&mut self, path: &[&str]) -> usize {
        let mut count = 0;
        self.each(path, &mut |_| {
            count += 1;
            false
        });
        count
    }

    /// Replaces strings at a path, and returns how many.
    pub fn replace(&mut self, path: &[&str], mut by: impl FnMut(&str) -> Option<String>) -> usize {
        let mut count = 0;
        self.each(path, &mut |node| {
            if let Some(text) = string(node).and_then(|text| by(&text)) {
                *node = Node::string(&text);
                count += 1;
            }
            false
        });
        count
    }

    /// Removes the values at a path, members and elements, for which `unwanted` is true. Returns
    /// how many.
    pub fn remove(
        &mut self,
        path: &[&str],
        mut unwanted: impl FnMut(&mut MessageBody<'_>) -> bool,
    ) -> usize {
        let mut count = 0;
        let ignores_case = self.ignores_case;
        self.each(path, &mut |node| {
            let value = Node::owned(node.json().into_owned());
            let is_unwanted = unwanted(&mut MessageBody {
                value,
                ignores_case,
            });
            count += usize::from(is_unwanted);
            is_unwanted
        });
        count
    }

    /// Puts a string at a JSON Pointer that is written in the source; nothing happens where a scalar
    /// is in its way.
    pub fn put_text(&mut self, at: &str, text: &str) {
        let _ = self.value.put(own_pointer(at).names(), Node::string(text));
    }

    /// Removes the string at such a pointer if it is `text`, and the objects that become empty;
    /// returns whether it was.
    pub fn take_text(&mut self, at: &str, text: &str) -> bool {
        let is_there = self.value.text_at(&own_pointer(at)).as_deref() == Some(text);
        is_there && self.value.take(own_pointer(at).names()).is_some()
    }

    /// The message with this body. For an answer, the method of its request is used.
    #[must_use]
    pub fn into_frame(self, frame: &Frame, at: &Envelope) -> Frame {
        let mut message = Message::parse(frame, at, method_of(frame, at));
        message.body = self.value;
        message.frame(at.jsonrpc)
    }

    fn each(&mut self, path: &[&str], visit: &mut dyn FnMut(&mut Node<'_>) -> bool) {
        let is_same = match self.ignores_case {
            true => text::same_ignoring_case,
            false => text::same_name,
        };
        each(&mut self.value, path, is_same, visit);
    }
}

fn string(node: &Node<'_>) -> Option<String> {
    text::string(&node.json()).map(std::borrow::Cow::into_owned)
}

/// Calls `visit` for every value at a path. Where it returns `true` the value is removed.
fn each(
    node: &mut Node<'_>,
    path: &[&str],
    is_same: fn(&[u8], &str) -> bool,
    visit: &mut dyn FnMut(&mut Node<'_>) -> bool,
) -> bool {
    let Some((name, rest)) = path.split_first() else {
        return visit(node);
    };
    if *name == "*" {
        if let Some(items) = node.items() {
            items.retain_mut(|item| !each(item, rest, is_same, visit));
        }
    } else if let Some(members) = node.members() {
        members
            .retain_mut(|(raw, value)| !(is_same(raw, name) && each(value, rest, is_same, visit)));
    }
    false
}
