//! Scans the messages of one side, one after the other.
//!
//! The messages of a streaming agent differ only in a few words at the end, so half of the work of
//! [`scan`](super::scan()) was done for the message before. What is found in the first bytes of a
//! text depends on those bytes alone, so a text that begins with the same bytes is read from there
//! on. The bytes are compared, and the rest is validated as always.

use std::sync::Arc;

use super::scan::{Begun, scan_begun, scan_rest, scan_text};
use super::{Frame, Limits, Shape};

/// Bytes of a message that are compared with the next one at most.
const REACH: usize = 512;

/// Shortest prefix that is worth sharing, in bytes.
const WORTH: usize = 64;

/// A link with fewer messages than this keeps no memory, because most never stream.
const PATIENCE: u32 = 8;

/// Every so many messages one is read whole, to learn the current prefix.
const ANEW: u32 = 64;

/// After so many messages in a row without a shared prefix, only every `RETRY_EVERY`th is compared:
/// peers that take turns never repeat themselves.
const FRUITLESS: u8 = 4;
const SELDOM: u32 = 8;

/// The scanner of one side's messages.
#[derive(Debug)]
pub struct Scanner {
    limits: Arc<Limits>,
    scanned: u32,
    /// Messages in a row that were stored without use.
    fruitless: u8,
    /// How many prefixes were found.
    stems: u64,
    memory: Option<Box<Memory>>,
}

/// The message that was stored last.
#[derive(Debug)]
struct Memory {
    /// Its first bytes.
    text: [u8; REACH],
    length: usize,
    /// Where reading can start for messages that begin like it.
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

    /// What [`scan`](super::scan()) finds. A message is marked as valid UTF-8.
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

    /// Reads a message whole, and compares it with the stored one.
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

    /// Where `text` can be read from, when it begins like the stored message.
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
