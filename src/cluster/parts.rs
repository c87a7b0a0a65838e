//! Messages of a link in parts that fit a message of NATS, each with its number.

use bytes::{BufMut as _, Bytes, BytesMut};

use jsonrpc::Frame;

/// Bytes before the content of a part: its number, and what it is.
const HEAD: usize = 9;
/// More parts of the same message follow.
const MORE: u8 = 0;
/// It is the last part of a message.
const LAST: u8 = 1;
/// The carrier ends here, and has no content.
const END: u8 = 2;

/// Cuts messages into parts.
#[derive(Debug)]
pub struct Splitter {
    next: u64,
    /// Most bytes of content in a part.
    most: usize,
}

/// Puts the parts of messages together.
#[derive(Debug)]
pub struct Joiner {
    next: u64,
    /// The message that has begun.
    begun: BytesMut,
    /// Most bytes of a message.
    limit: usize,
}

/// What a part completes.
#[derive(Debug, PartialEq, Eq)]
pub enum Joined {
    /// Nothing yet.
    More,
    /// A message.
    Message(Frame),
    /// The carrier.
    End,
}

impl Splitter {
    /// For parts of at most `payload` bytes.
    #[must_use]
    pub fn new(payload: usize) -> Self {
        Self {
            next: 0,
            most: payload.saturating_sub(HEAD).max(1),
        }
    }

    /// The parts of a message.
    pub fn split(&mut self, frame: &Frame) -> impl Iterator<Item = Bytes> {
        let mut rest = frame.as_bytes();
        let mut is_done = false;
        std::iter::from_fn(move || {
            if is_done {
                return None;
            }
            let (content, after) = rest.split_at(rest.len().min(self.most));
            rest = after;
            is_done = rest.is_empty();
            Some(self.part(if is_done { LAST } else { MORE }, content))
        })
    }

    /// The part that ends the carrier.
    pub fn end(&mut self) -> Bytes {
        self.part(END, &[])
    }

    fn part(&mut self, kind: u8, content: &[u8]) -> Bytes {
        let mut part = BytesMut::with_capacity(HEAD + content.len());
        part.put_u64(self.next);
        part.put_u8(kind);
        part.put_slice(content);
        self.next += 1;
        part.freeze()
    }
}

impl Joiner {
    /// For messages of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            next: 0,
            begun: BytesMut::new(),
            limit,
        }
    }

    /// Takes a part.
    ///
    /// # Errors
    /// What is wrong with it: the carrier is lost.
    pub fn join(&mut self, part: &Bytes) -> Result<Joined, String> {
        let Some((number, kind)) = part
            .first_chunk::<8>()
            .zip(part.get(HEAD - 1))
            .map(|(number, kind)| (u64::from_be_bytes(*number), *kind))
        else {
            return Err("a message of another program came".to_owned());
        };
        if kind == END {
            return Ok(Joined::End);
        }
        if number != self.next {
            return Err(format!("part {} is missing", self.next));
        }
        self.next += 1;
        let content = part.slice(HEAD..);
        if self.begun.len() + content.len() > self.limit {
            return Err(format!("a message is longer than {} bytes", self.limit));
        }
        match kind {
            LAST if self.begun.is_empty() => return Ok(Joined::Message(Frame::new(content))),
            LAST | MORE => self.begun.extend_from_slice(&content),
            other => return Err(format!("{other} is no kind of part")),
        }
        Ok(match kind {
            MORE => Joined::More,
            _ => Joined::Message(Frame::new(self.begun.split().freeze())),
        })
    }
}
