//! Scans the messages of one side, one after the other.
//!
//! An agent that streams says the same again and again, but for a few words at the end: half of
//! what [`scan`](super::scan()) does for each update, it has done for the one before. What was found
//! in the first bytes of a text depends on those bytes alone, so a text that begins with the same
//! ones is read from there on. Nothing is taken for granted: the bytes are compared, and the rest
//! is proved as ever. Not here: how a message is read.

use std::sync::Arc;

use super::scan::{Begun, scan_begun, scan_rest, scan_text};
use super::{Frame, Limits, Shape};

/// Bytes of a message that may be compared with the next one.
const REACH: usize = 512;

/// Fewer are not worth it.
const WORTH: usize = 64;

/// A link that has said fewer messages than this keeps no memory, because most never stream.
const PATIENCE: u32 = 8;

/// Each so many messages one is read whole, to learn what they begin with now.
const ANEW: u32 = 64;

/// After so many messages in a row that did not begin like the one before, one in `SELDOM` is looked
/// at for it: most who ask and answer in turns never repeat themselves.
const FRUITLESS: u8 = 4;
const SELDOM: u32 = 8;

/// The scanner of one side's messages.
#[derive(Debug)]
pub struct Scanner {
    limits: Arc<Limits>,
    scanned: u32,
    /// Messages in a row that were remembered in vain.
    fruitless: u8,
    /// How often the beginning of others was found.
    stems: u64,
    memory: Option<Box<Memory>>,
}

/// What is remembered of a message.
#[derive(Debug)]
struct Memory {
    /// Its first bytes.
    text: [u8; REACH],
    length: usize,
    /// From where those that begin like it can be read.
    begun: Option<Begun>,
}

impl Scanner {
    /// A scanner that has seen nothing.
    #[must_use]
    pub const fn new(limits: Arc<Limits>) -> Self {
        Self {
            limits,
            scanned: 0,
            fruitless: 0,
            stems: 0,
            memory: None,
        }
    }

    /// What [`scan`](super::scan()) finds. A message is marked as proved to be UTF-8.
    #[inline]
    pub fn scan(&mut self, frame: &mut Frame) -> Shape {
        let shape = self.find(frame);
        if matches!(shape, Shape::One(_)) {
            frame.proved();
        }
        shape
    }

    #[inline(always)]
    fn find(&mut self, frame: &Frame) -> Shape {
        let text = frame.as_bytes();
        self.scanned = self.scanned.wrapping_add(1);
        if let Some(memory) = &mut self.memory
            && !self.scanned.is_multiple_of(ANEW)
            && let Some(begun) = memory.known(text)
        {
            return scan_rest(text, &self.limits, begun);
        }
        let early = self.memory.is_none() && self.scanned < PATIENCE;
        let vain = self.fruitless >= FRUITLESS && !self.scanned.is_multiple_of(SELDOM);
        if early || vain {
            return scan_text(text, &self.limits);
        }
        self.learn(text)
    }

    /// Reads a message whole, and how far it is like the one that is remembered.
    #[inline(never)]
    fn learn(&mut self, text: &[u8]) -> Shape {
        let memory = self.memory.get_or_insert_with(Memory::nothing);
        let alike = memory.alike(text);
        let reach = if alike < WORTH { 0 } else { alike };
        let (shape, begun) = scan_begun(text, &self.limits, reach);
        self.stems += 1;
        let number = self.stems;
        let worthy = begun.filter(|begun| begun.shared() >= WORTH);
        memory.begun = worthy.map(|begun| begun.numbered(number));
        self.fruitless = match memory.begun {
            Some(_) => 0,
            None => self.fruitless.saturating_add(1),
        };
        memory.length = text.len().min(REACH);
        memory.text[..memory.length].copy_from_slice(&text[..memory.length]);
        shape
    }
}

impl Memory {
    fn nothing() -> Box<Self> {
        Box::new(Self {
            text: [0; REACH],
            length: 0,
            begun: None,
        })
    }

    /// Where `text` can be read from, when it begins like the one that is remembered.
    #[inline]
    fn known(&mut self, text: &[u8]) -> Option<&mut Begun> {
        let begun = self.begun.as_mut()?;
        let shared = begun.shared();
        let alike = text.get(..shared)? == &self.text[..shared];
        (alike && u32::try_from(text.len()).is_ok()).then_some(begun)
    }

    /// How many bytes of `text` are the same.
    fn alike(&self, text: &[u8]) -> usize {
        let known = &self.text[..self.length];
        let same = |(one, other): &(&u8, &u8)| one == other;
        known.iter().zip(text).take_while(same).count()
    }
}
