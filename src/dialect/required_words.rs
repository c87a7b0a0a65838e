//! Tells for most messages of a stream that no guard of their route holds, without reading them again.
//!
//! The guards of a busy method mostly require words at one place, such as the kind of an update. A
//! message with another word concerns none of them. For a guard with that word, one more expectation
//! is tested on the text of a member, because nearly all updates are chunks of text.

use memchr::memmem::Finder;

use super::guard::{GuardTest, is_among, is_met};
use super::message;
use super::pointer::JsonPointer;
use super::table::{Expect, Guard, Literal};
use super::text;
use super::tree::ValueRef;
use jsonrpc::{Envelope, Frame, MemberIndex, SlotId};

/// What all guards of a route require.
#[derive(Debug)]
pub(super) struct RequiredWords {
    /// The place at which all require a word.
    place: JsonPointer,
    /// The words by their lengths, each with the guards that require it, by their numbers.
    words: Vec<Vec<(Literal, Vec<usize>)>>,
    /// What else each guard requires.
    quick: Vec<Option<QuickTest>>,
}

/// An expectation of a guard about another member of the object that has the word.
#[derive(Debug)]
struct QuickTest {
    /// The name of that member.
    member: Box<str>,
    what: Quick,
}

/// What is expected of it.
#[derive(Debug)]
enum Quick {
    /// This, of its value.
    Is(Expect),
    /// It is an object, with one of `words` as the value of a certain member.
    Inside {
        /// The text up to that value, if the certain member is the object's first one.
        beginning: Box<[u8]>,
        /// These find, in the text behind the value, the same name once more: plainly, or an escape
        /// that may be a part of it.
        repetitions: Box<[Finder<'static>; 2]>,
        words: Vec<Literal>,
    },
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
            quick: guards
                .iter()
                .map(|guard| QuickTest::of(guard, place))
                .collect(),
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
        let mut left = numbers.iter().filter(|number| {
            let quick = self.quick[**number].as_ref();
            !quick.is_some_and(|quick| quick.fails(member(index, object, &quick.member, text)))
        });
        let Some(first) = left.next() else {
            return Some(false);
        };
        let body = message::body(frame, at);
        let mut test = GuardTest::new(&body);
        let mut holds = |number: &usize| test.holds(&guards[*number].0[1..]);
        Some(holds(first) || left.any(holds))
    }
}

impl QuickTest {
    /// The test of a guard that requires a word at that place.
    fn of(guard: &Guard, word: &JsonPointer) -> Option<Self> {
        let (_, outer) = word.names().split_last()?;
        let inside = guard.0[1..].iter().filter_map(|(place, expect)| {
            match (place.names().strip_prefix(outer)?, expect) {
                ([member], expect) => Some((member, Quick::Is(expect.clone()))),
                ([member, name], expect) => Some((member, Quick::inside(name, expect)?)),
                _ => None,
            }
        });
        // The deeper one tells more.
        let (member, what) = inside.max_by_key(|(_, what)| matches!(what, Quick::Inside { .. }))?;
        let is_member = text::array_index(member).is_none();
        is_member.then(|| Self {
            member: member.clone(),
            what,
        })
    }

    /// Whether it is certain that the guard does not hold, with this value of the member.
    fn fails(&self, value: Option<&[u8]>) -> bool {
        match &self.what {
            Quick::Is(expect) => !is_met(value.map(ValueRef::Raw), expect),
            Quick::Inside {
                beginning,
                repetitions,
                words,
            } => value.is_some_and(|value| {
                let Some((word, rest)) = first_word(value, beginning) else {
                    return false;
                };
                !is_among(words, word) && repetitions.iter().all(|one| one.find(rest).is_none())
            }),
        }
    }
}

impl Quick {
    fn inside(name: &str, expect: &Expect) -> Option<Self> {
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let words = words_of(expect).filter(|_| is_plain)?;
        let finder = |what: String| Finder::new(what.as_bytes()).into_owned();
        Some(Self::Inside {
            beginning: format!("{{\"{name}\":").into_bytes().into(),
            repetitions: Box::new([finder(format!("\"{name}\"")), finder("\\u".to_owned())]),
            words: words.to_vec(),
        })
    }
}

fn words_of(expect: &Expect) -> Option<&[Literal]> {
    match expect {
        Expect::Const(word) => Some(std::slice::from_ref(word)),
        Expect::In(all) => Some(all),
        _ => None,
    }
}

/// The string behind `beginning`, and what follows it; `None` where something else is there.
fn first_word<'a>(value: &'a [u8], beginning: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let value = value.strip_prefix(beginning)?;
    let inside = value.strip_prefix(b"\"")?;
    let (word, rest) = value.split_at(memchr::memchr(b'"', inside)? + 2);
    (!text::may_be_respelled(word)).then_some((word, rest))
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
