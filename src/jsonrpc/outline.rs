//! An index of the members of a message's body, and of the members of the objects among them.
//!
//! `scan` reads them anyway, so later lookups near the top of the body need no second pass. The
//! number of slots is fixed, so it costs no allocation; a body with more members, or with escapes
//! in their names, gets no index.

use super::Span;
use super::envelope::stretched;
use super::json::{Ear, Place};
use super::key::Key;

/// Most members that are indexed. A tool call with all members that ACP defines has 13.
const MARKS: usize = 16;

/// The index of one body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outline {
    marks: [Mark; MARKS],
    count: u8,
    /// One bit for each slot: whether the member lies in the last one before it whose bit is clear.
    inner: u16,
}

/// A member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mark {
    /// Where its name begins, without the quote.
    name: u32,
    /// Its value.
    value: Span,
}

/// A member of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlined {
    /// Which one it is.
    pub nth: Nth,
    name: u32,
    /// Where its value is in the frame.
    pub value: Span,
}

/// The position of a member in its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nth(u8);

/// Builds an index while a body is read.
#[derive(Debug)]
pub(super) struct Draw<'o> {
    outline: &'o mut Outline,
    /// The members whose values are being read, by level from 1; `SLOTS` for none.
    open: [usize; 3],
    /// Whether all members have a slot.
    pub(super) whole: bool,
    /// How often `sessionId` occurs among the body's own members.
    pub(super) sessions: u8,
    /// Up to which byte checkpoints are taken, and the last one.
    reach: usize,
    pub(super) mark: Option<Bookmark>,
}

/// A checkpoint of the reader, and the state of the index there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bookmark {
    pub(super) place: Place,
    pub(super) count: u8,
    inner: u16,
    open: [usize; 3],
    sessions: u8,
}

impl Outline {
    /// How many members are indexed, those of nested objects included.
    #[must_use]
    pub const fn marks(&self) -> u8 {
        self.count
    }

    /// The members of the body, in their order.
    pub fn members(&self) -> impl DoubleEndedIterator<Item = Outlined> + '_ {
        (0..usize::from(self.count))
            .filter(|at| self.inner >> at & 1 == 0)
            .map(|at| self.outlined(at))
    }

    /// The last member of the body with that name, in the frame it was found in.
    #[must_use]
    pub fn last_member(&self, name: &str, text: &[u8]) -> Option<Outlined> {
        let mut at = usize::from(self.count);
        while at > 0 {
            at -= 1;
            let member = self.outlined(at);
            if self.inner >> at & 1 == 0 && member.is_called(name, text) {
                return Some(member);
            }
        }
        None
    }

    /// The last member named `inner` of the last member of the body named `outer`.
    #[must_use]
    pub fn last_inner(&self, outer: &str, inner: &str, text: &[u8]) -> Option<Outlined> {
        let mut found = None;
        let mut at = usize::from(self.count);
        while at > 0 {
            at -= 1;
            let member = self.outlined(at);
            if self.inner >> at & 1 == 1 {
                if found.is_none() && member.is_called(inner, text) {
                    found = Some(member);
                }
            } else if member.is_called(outer, text) {
                return found;
            } else {
                found = None;
            }
        }
        None
    }

    /// The members of the object that a member is, in their order; none when it is not an object.
    pub fn members_of(&self, member: Nth) -> impl DoubleEndedIterator<Item = Outlined> + use<'_> {
        let first = usize::from(member.0) + 1;
        let rest = u32::from(self.inner) >> first;
        let last = usize::from(self.count).min(first + rest.trailing_ones() as usize);
        (first..last).map(|at| self.outlined(at))
    }

    /// The member whose name comes last.
    pub(crate) fn last(&self) -> Option<Outlined> {
        let at = usize::from(self.count).checked_sub(1)?;
        Some(self.outlined(at))
    }

    /// The index for a text in which the value at `place` is `len` bytes long.
    pub(super) fn stretched(mut self, place: Span, len: u32) -> Self {
        for mark in &mut self.marks[..usize::from(self.count)] {
            mark.name = stretched(mark.name, place, len);
            mark.value = mark.value.stretched(place, len);
        }
        self
    }

    fn outlined(&self, at: usize) -> Outlined {
        let Mark { name, value } = self.marks[at];
        Outlined {
            nth: Nth(u8::try_from(at).unwrap_or(u8::MAX)),
            name,
            value,
        }
    }
}

impl Outline {
    /// Adds a member while its message is written: where its name and its value begin. `None` when
    /// there is no free slot.
    pub(crate) fn begin(&mut self, name: usize, value: usize, inner: bool) -> Option<usize> {
        let at = usize::from(self.count);
        let mark = self.marks.get_mut(at)?;
        let place = Span::new(name, value);
        mark.name = place.start;
        mark.value.start = place.end;
        self.inner |= u16::from(inner) << at;
        self.count += 1;
        Some(at)
    }

    /// Sets the end of the value of the member in slot `at`.
    pub(crate) fn end(&mut self, at: usize, end: usize) {
        self.marks[at].value.end = Span::new(end, end).end;
    }

    /// Adds the members that `other` has of a member, whose text was moved from offset `from` to
    /// `to`; `false` when there are not enough free slots.
    pub(crate) fn copy(&mut self, other: &Self, member: Nth, from: usize, to: usize) -> bool {
        let moved = |place: u32| place as usize - from + to;
        other
            .members_of(member)
            .all(|Outlined { name, value, .. }| {
                let at = self.begin(moved(name), moved(value.start), true);
                at.map(|at| self.end(at, moved(value.end))).is_some()
            })
    }
}

impl PartialEq for Outline {
    /// Slots past `count` hold leftovers.
    fn eq(&self, other: &Self) -> bool {
        let count = usize::from(self.count);
        (self.count, self.inner) == (other.count, other.inner)
            && self.marks[..count] == other.marks[..count]
    }
}

impl Eq for Outline {}

impl Outlined {
    /// Whether it has that name, in the frame it was found in.
    #[must_use]
    pub fn is_called(&self, name: &str, text: &[u8]) -> bool {
        let before_value = &text[self.name as usize..self.value.start as usize];
        // The only quote there is the one that ends the name.
        before_value.get(name.len()) == Some(&b'"') && before_value.starts_with(name.as_bytes())
    }

    /// Its name, in the frame it was found in.
    #[must_use]
    pub fn name<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        let name = &text[self.name as usize..self.value.start as usize];
        // Only a colon and white space follow the quote.
        let end = name.iter().rposition(|&byte| byte == b'"').unwrap_or(0);
        &name[..end]
    }
}

impl<'o> Draw<'o> {
    /// Clears `index` and starts over.
    pub(super) fn new(outline: &'o mut Outline) -> Self {
        outline.count = 0;
        outline.inner = 0;
        Self::on(outline)
    }

    fn on(outline: &'o mut Outline) -> Self {
        Self {
            outline,
            open: [MARKS; 3],
            whole: true,
            sessions: 0,
            reach: 0,
            mark: None,
        }
    }

    /// Takes the last checkpoint that is no further than `reach`.
    pub(super) fn marking(self, reach: usize) -> Self {
        Self { reach, ..self }
    }

    /// Continues in `index`, dropping what was indexed after `checkpoint` for another text. The
    /// members that were open there are open again.
    pub(super) fn taken_up(outline: &'o mut Outline, mark: &Bookmark) -> Self {
        outline.count = mark.count;
        outline.inner = mark.inner;
        Self {
            open: mark.open,
            sessions: mark.sessions,
            ..Self::on(outline)
        }
    }
}

impl Ear for Draw<'_> {
    const LEVELS: usize = 2;

    #[inline]
    fn key(&mut self, level: usize, key: Key<'_>, name: usize, value: usize) {
        if level == 1 && key.is("sessionId") {
            self.sessions = self.sessions.saturating_add(1);
        }
        let at = usize::from(self.outline.count);
        self.whole &= at < MARKS && !key.is_escaped();
        if !self.whole {
            self.open[level] = MARKS;
            return;
        }
        let place = Span::new(name, value);
        self.outline.marks[at] = Mark {
            name: place.start,
            value: Span {
                start: place.end,
                end: place.end,
            },
        };
        self.outline.inner |= u16::from(level > 1) << at;
        self.outline.count += 1;
        self.open[level] = at;
    }

    #[inline]
    fn ended(&mut self, level: usize, at: usize) {
        if let Some(mark) = self.outline.marks.get_mut(self.open[level]) {
            mark.value.end = Span::new(at, at).end;
        }
    }

    #[inline(always)]
    fn asks_for_place(&self, at: usize) -> bool {
        self.whole && at <= self.reach
    }

    #[cold]
    fn place(&mut self, place: Place) {
        self.mark = Some(Bookmark {
            place,
            count: self.outline.count,
            inner: self.outline.inner,
            open: self.open,
            sessions: self.sessions,
        });
    }
}
