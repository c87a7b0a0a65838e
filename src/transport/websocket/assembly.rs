//! Messages out of frames: fragments, control frames in between, UTF-8, and the longest message.
//!
//! A message that lies in the buffer as one whole frame is unmasked in place and shares the
//! buffer's memory. Any other is gathered in memory of its own as it comes, and its text is judged
//! as it comes. A message beyond the limit is refused at the header of the frame that passes it. It
//! owns no socket; not here: reading, and what is answered.

use bytes::{Buf, Bytes, BytesMut};

use super::frame::{Broken, Header, Mask, Opcode, Role};

/// Memory that is taken for a message before its bytes have come.
const AHEAD: usize = 64 << 10;
/// What is missing of a frame is read past the buffer when it is so long.
const PAST: usize = 16 << 10;

/// One thing a peer has said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// A whole message, in memory of its own.
    Message(Kind, Bytes),
    /// A whole message that shares the buffer's memory.
    Shared(Kind, Bytes),
    Ping(Bytes),
    Pong,
    /// The code and the reason, as they came; or nothing.
    Close(Bytes),
}

/// What a message is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// Anything.
    Binary,
}

/// Takes what a peer says out of the bytes it sends.
#[derive(Debug)]
pub(super) struct Assembly {
    role: Role,
    /// Longest message, in bytes.
    max: usize,
    frame: Option<Current>,
    message: Option<Message>,
}

/// The frame whose payload comes next.
#[derive(Debug)]
struct Current {
    opcode: Opcode,
    last: bool,
    mask: Option<Mask>,
    /// Bytes of the payload that are still to come.
    left: u64,
}

/// A message so far.
#[derive(Debug)]
struct Message {
    kind: Kind,
    kept: BytesMut,
    /// So many bytes of `kept` are whole characters.
    checked: usize,
}

impl Assembly {
    pub(super) fn new(role: Role, max: usize) -> Self {
        Self {
            role,
            max,
            frame: None,
            message: None,
        }
    }

    /// Takes the next thing out of `buffer`; `None` when more bytes are needed.
    pub(super) fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Heard>, Broken> {
        loop {
            let Some(frame) = &mut self.frame else {
                let Some((header, taken)) = Header::decode(buffer)? else {
                    return Ok(None);
                };
                self.judge(&header)?;
                buffer.advance(taken);
                if let Some(whole) = self.whole(&header, buffer)? {
                    return Ok(Some(whole));
                }
                self.begin(&header)?;
                continue;
            };
            let here = usize::try_from(frame.left).map_or(buffer.len(), |n| n.min(buffer.len()));
            if frame.opcode.is_control() {
                if frame.left > here as u64 {
                    return Ok(None);
                }
                let mut payload = buffer.split_to(here);
                if let Some(mask) = &mut frame.mask {
                    mask.apply(&mut payload);
                }
                let opcode = frame.opcode;
                self.frame = None;
                return control(opcode, payload.freeze()).map(Some);
            }
            let message = self.message.as_mut().expect("a data frame has its message");
            let new = &mut buffer[..here];
            if let Some(mask) = &mut frame.mask {
                mask.apply(new);
            }
            message.kept.extend_from_slice(new);
            message.check()?;
            buffer.advance(here);
            frame.left -= here as u64;
            if frame.left > 0 {
                return Ok(None);
            }
            if self.frame.take().is_some_and(|frame| frame.last)
                && let Some(message) = self.message.take()
            {
                return message.end().map(Some);
            }
        }
    }

    /// Where the next bytes of the stream may be read to instead of a buffer, and how many at
    /// most; [`Assembly::filled`] has to be told.
    pub(super) fn room(&mut self) -> Option<(&mut BytesMut, usize)> {
        let frame = self.frame.as_ref()?;
        let message = self.message.as_mut()?;
        let left = usize::try_from(frame.left).ok()?;
        if frame.opcode.is_control() || left < PAST {
            return None;
        }
        message.make_room(left);
        let spare = message.kept.capacity() - message.kept.len();
        Some((&mut message.kept, left.min(spare)))
    }

    /// `count` bytes were read to where [`Assembly::room`] said.
    pub(super) fn filled(&mut self, count: usize) -> Result<(), Broken> {
        if let (Some(frame), Some(message)) = (&mut self.frame, &mut self.message) {
            let from = message.kept.len() - count;
            if let Some(mask) = &mut frame.mask {
                mask.apply(&mut message.kept[from..]);
            }
            frame.left -= count as u64;
            message.check()?;
        }
        Ok(())
    }

    /// Whether such a frame may come now.
    fn judge(&self, header: &Header) -> Result<(), Broken> {
        if header.mask.is_some() != (self.role == Role::Server) {
            return Err(Broken::protocol(match self.role {
                Role::Server => "a frame of a client is not masked",
                Role::Client => "a frame of a server is masked",
            }));
        }
        match (header.opcode, &self.message) {
            (Opcode::Continuation, None) => {
                Err(Broken::protocol("a message goes on that has not begun"))
            }
            (Opcode::Text | Opcode::Binary, Some(_)) => {
                Err(Broken::protocol("a message begins within another"))
            }
            _ => Ok(()),
        }
    }

    /// The message that lies in the buffer as one whole frame.
    fn whole(&self, header: &Header, buffer: &mut BytesMut) -> Result<Option<Heard>, Broken> {
        let kind = match header.opcode {
            Opcode::Text => Kind::Text,
            Opcode::Binary => Kind::Binary,
            _ => return Ok(None),
        };
        let Ok(length) = usize::try_from(header.length) else {
            return Ok(None);
        };
        if !header.last || length > self.max || length > buffer.len() {
            return Ok(None);
        }
        let mut payload = buffer.split_to(length);
        if let Some(mut mask) = header.mask {
            mask.apply(&mut payload);
        }
        if kind == Kind::Text && simdutf8::basic::from_utf8(&payload).is_err() {
            return Err(Broken::not_utf8());
        }
        Ok(Some(Heard::Shared(kind, payload.freeze())))
    }

    fn begin(&mut self, header: &Header) -> Result<(), Broken> {
        if !header.opcode.is_control() {
            let message = self.message.get_or_insert_with(|| Message {
                kind: match header.opcode {
                    Opcode::Binary => Kind::Binary,
                    _ => Kind::Text,
                },
                kept: BytesMut::new(),
                checked: 0,
            });
            let room = self.max.saturating_sub(message.kept.len());
            match usize::try_from(header.length) {
                Ok(length) if length <= room => message.make_room(length),
                _ => return Err(Broken::too_long()),
            }
        }
        self.frame = Some(Current {
            opcode: header.opcode,
            last: header.last,
            mask: header.mask,
            left: header.length,
        });
        Ok(())
    }
}

impl Message {
    /// Makes room for some of `more` bytes; a promise alone takes [`AHEAD`] bytes at most.
    fn make_room(&mut self, more: usize) {
        if self.kept.capacity() - self.kept.len() < more.min(PAST) {
            self.kept.reserve(more.min(self.kept.len().max(AHEAD)));
        }
    }

    /// Judges the text that is new.
    fn check(&mut self) -> Result<(), Broken> {
        if self.kind == Kind::Text {
            match simdutf8::compat::from_utf8(&self.kept[self.checked..]) {
                Ok(new) => self.checked += new.len(),
                Err(fault) if fault.error_len().is_some() => return Err(Broken::not_utf8()),
                // The last character is not whole yet.
                Err(fault) => self.checked += fault.valid_up_to(),
            }
        }
        Ok(())
    }

    fn end(self) -> Result<Heard, Broken> {
        if self.kind == Kind::Text && self.checked < self.kept.len() {
            return Err(Broken::not_utf8());
        }
        Ok(Heard::Message(self.kind, self.kept.freeze()))
    }
}

fn control(opcode: Opcode, payload: Bytes) -> Result<Heard, Broken> {
    match opcode {
        Opcode::Ping => Ok(Heard::Ping(payload)),
        Opcode::Close => {
            let reason = match payload[..] {
                [] => &[],
                [a, b, ref reason @ ..] if may_be_said(u16::from_be_bytes([a, b])) => reason,
                _ => return Err(Broken::protocol("a close frame holds no valid code")),
            };
            if simdutf8::basic::from_utf8(reason).is_err() {
                return Err(Broken::not_utf8());
            }
            Ok(Heard::Close(payload))
        }
        _ => Ok(Heard::Pong),
    }
}

/// Whether a close frame may hold the code (7.4, and the registry of 11.7).
const fn may_be_said(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}
