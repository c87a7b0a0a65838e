//! An index of the members of a message's body, and of the members of the objects among them.
//!
//! `scan` reads them anyway, so later lookups near the top of the body need no second pass. The
//! number of slots is fixed, so it costs no allocation; a body with more members, or with escapes
//! in their names, gets no index.

use super::Span;
use super::json::{Checkpoint, Visitor};
use super::key::Key;

/// Most members that are indexed. A tool call with all members that ACP defines has 13.
const SLOTS: usize = 16;

/// The index of one body.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemberIndex {
    slots: [Slot; SLOTS],
    count: u8,
    /// One bit for each slot: whether the member lies in the last one before it whose bit is clear.
    nested: u16,
}

/// A member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slot {
    /// Where its name begins, without the quote.
    name: u32,
    /// Its value.
    value: Span,
}

/// A member of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedMember {
    /// Which one it is.
    pub slot: SlotId,
    name: u32,
    /// Where its value is in the frame.
    pub value: Span,
}

/// The position of a member in its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotId(u8);

/// Builds an index while a body is read.
#[derive(Debug)]
pub(super) struct Indexer<'o> {
    index: &'o mut MemberIndex,
    /// The members whose values are being read, by level from 1; `SLOTS` for none.
    open: [usize; 3],
    /// Whether all members have a slot.
    pub(super) complete: bool,
    /// How often `sessionId` occurs among the body's own members.
    pub(super) session_ids: u8,
    /// Up to which byte checkpoints are taken, and the last one.
    reach: usize,
    pub(super) checkpoint: Option<IndexCheckpoint>,
}

/// A checkpoint of the reader, and the state of the index there.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexCheckpoint {
    pub(super) point: Checkpoint,
    pub(super) count: u8,
    inner: u16,
    open: [usize; 3],
    session_ids: u8,
}

impl MemberIndex {
    /// The members of the body, in their order.
    pub fn members(&self) -> impl DoubleEndedIterator<Item = IndexedMember> + '_ {
        (0..usize::from(self.count))
            .filter(|at| self.nested >> at & 1 == 0)
            .map(|at| self.get(at))
    }

    /// The last member of the body with that name, in the frame it was found in.
    #[must_use]
    pub fn last_member(&self, name: &str, text: &[u8]) -> Option<IndexedMember> {
        let mut members = self.members().rev();
        members.find(|member| member.has_name(name, text))
    }

    /// The members of the object that a member is, in their order; none when it is not an object.
    pub fn members_of(
        &self,
        member: SlotId,
    ) -> impl DoubleEndedIterator<Item = IndexedMember> + use<'_> {
        let first = usize::from(member.0) + 1;
        let rest = u32::from(self.nested) >> first;
        let last = usize::from(self.count).min(first + rest.trailing_ones() as usize);
        (first..last).map(|at| self.get(at))
    }

    fn get(&self, at: usize) -> IndexedMember {
        let Slot { name, value } = self.slots[at];
        IndexedMember {
            slot: SlotId(u8::try_from(at).unwrap_or(u8::MAX)),
            name,
            value,
        }
    }
}

impl PartialEq for MemberIndex {
    /// Slots past `count` hold leftovers.
    fn eq(&self, other: &Self) -> bool {
        let count = usize::from(self.count);
        (self.count, self.nested) == (other.count, other.nested)
            && self.slots[..count] == other.slots[..count]
    }
}

impl Eq for MemberIndex {}

impl IndexedMember {
    /// Whether it has that name, in the frame it was found in.
    #[must_use]
    pub fn has_name(&self, name: &str, text: &[u8]) -> bool {
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

impl<'o> Indexer<'o> {
    /// Clears `index` and starts over.
    pub(super) fn new(index: &'o mut MemberIndex) -> Self {
        index.count = 0;
        index.nested = 0;
        Self::resuming(index)
    }

    fn resuming(index: &'o mut MemberIndex) -> Self {
        Self {
            index,
            open: [SLOTS; 3],
            complete: true,
            session_ids: 0,
            reach: 0,
            checkpoint: None,
        }
    }

    /// Takes the last checkpoint that is no further than `reach`.
    pub(super) fn until(self, reach: usize) -> Self {
        Self { reach, ..self }
    }

    /// Continues in `index`, dropping what was indexed after `checkpoint` for another text. The
    /// members that were open there are open again.
    pub(super) fn resume(index: &'o mut MemberIndex, checkpoint: &IndexCheckpoint) -> Self {
        index.count = checkpoint.count;
        index.nested = checkpoint.inner;
        Self {
            open: checkpoint.open,
            session_ids: checkpoint.session_ids,
            ..Self::resuming(index)
        }
    }
}

impl Visitor for Indexer<'_> {
    const LEVELS: usize = 2;

    #[inline]
    fn key(&mut self, level: usize, key: Key<'_>, name: usize, value: usize) {
        if level == 1 && key.is("sessionId") {
            self.session_ids = self.session_ids.saturating_add(1);
        }
        let at = usize::from(self.index.count);
        self.complete &= at < SLOTS && !key.is_escaped();
        if !self.complete {
            self.open[level] = SLOTS;
            return;
        }
        let place = Span::new(name, value);
        self.index.slots[at] = Slot {
            name: place.start,
            value: Span {
                start: place.end,
                end: place.end,
            },
        };
        self.index.nested |= u16::from(level > 1) << at;
        self.index.count += 1;
        self.open[level] = at;
    }

    #[inline]
    fn ended(&mut self, level: usize, at: usize) {
        if let Some(mark) = self.index.slots.get_mut(self.open[level]) {
            mark.value.end = Span::new(at, at).end;
        }
    }

    #[inline(always)]
    fn wants_checkpoint(&self, at: usize) -> bool {
        self.complete && at <= self.reach
    }

    #[cold]
    fn checkpoint(&mut self, point: Checkpoint) {
        self.checkpoint = Some(IndexCheckpoint {
            point,
            count: self.index.count,
            inner: self.index.nested,
            open: self.open,
            session_ids: self.session_ids,
        });
    }
}
