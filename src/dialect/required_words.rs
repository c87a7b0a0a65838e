//! Tells for most messages of a stream that no guard of their route holds, without reading them again.
//!
//! The guards of a busy method mostly require words at one place, such as the kind of an update. A
//! message with another word concerns none of them.

use super::guard::GuardTest;
use super::message;
use super::pointer::JsonPointer;
use super::table::{Expect, Guard, Literal};
use super::text;
use jsonrpc::{Envelope, Frame, MemberIndex, SlotId};

/// What all guards of a route require.
#[derive(Debug)]
pub(super) struct RequiredWords {
    /// The place at which all require a word.
    place: JsonPointer,
    /// The words by their lengths, each with the guards that require it, by their numbers.
    words: Vec<Vec<(Literal, Vec<usize>)>>,
}

impl RequiredWords {
    /// Finds the place at which all guards require words.
    pub(super) fn of(guards: &[Guard]) -> Option<Self> {
        let (place, _) = guards.first()?.0.first()?;
        let ([_, name] | [name]) = place.names() else {
            return None;
        };
        let mut words: Vec<Vec<(Literal, Vec<usize>)>> = Vec::new();
        for (number, guard) in guards.iter().enumerate() {
            let required = match guard.0.first() {
                Some((other, expect)) if other == place => words_of(expect)?,
                _ => return None,
            };
            for word in required {
                let length = word.0.len();
                words.resize(words.len().max(length + 1), Vec::new());
                let alike = &mut words[length];
                match alike.iter_mut().find(|(known, _)| known == word) {
                    Some((_, guards)) => guards.push(number),
                    None => alike.push((word.clone(), vec![number])),
                }
            }
        }
        let is_word = |(literal, _): &(Literal, _)| literal.0.first() == Some(&b'"');
        // An array has no member index.
        let is_member = words.iter().flatten().all(is_word) && text::array_index(name).is_none();
        is_member.then(|| Self {
            place: place.clone(),
            words,
        })
    }

    /// Whether one of the guards holds; `None` if these words do not tell.
    pub(super) fn may_hold(&self, guards: &[Guard], frame: &Frame, at: &Envelope) -> Option<bool> {
        let (index, text) = (at.index.as_ref()?, frame.as_bytes());
        let (object, name) = match self.place.names() {
            [outer, inner] => match index.last_member(outer, text) {
                Some(object) => (Some(object.slot), inner),
                None => return Some(false),
            },
            [name] => (None, name),
            _ => return None,
        };
        let Some(value) = member(index, object, name, text) else {
            return Some(false);
        };
        if text::may_be_respelled(value) {
            return None;
        }
        let mut words = self.words.get(value.len()).into_iter().flatten();
        let Some((_, numbers)) = words.find(|(word, _)| *word.0 == *value) else {
            return Some(false);
        };
        let body = message::body(frame, at);
        let mut test = GuardTest::new(&body);
        let mut numbers = numbers.iter();
        Some(numbers.any(|number| test.holds(&guards[*number].0[1..])))
    }
}

fn words_of(expect: &Expect) -> Option<&[Literal]> {
    match expect {
        Expect::Const(word) => Some(std::slice::from_ref(word)),
        Expect::In(all) => Some(all),
        _ => None,
    }
}

/// The value of the last member with that name of an object, or of the body.
fn member<'a>(
    index: &MemberIndex,
    object: Option<SlotId>,
    name: &str,
    text: &'a [u8],
) -> Option<&'a [u8]> {
    let found = match object {
        Some(object) => {
            let mut members = index.members_of(object).rev();
            members.find(|member| member.has_name(name, text))
        }
        None => index.last_member(name, text),
    };
    Some(found?.value.of(text))
}
