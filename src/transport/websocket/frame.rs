//! The frame of RFC 6455, section 5: its header, and the mask a client lays over what it sends.
//!
//! Not here: which frames may follow each other (see `assembly`).

use bytes::{BufMut, BytesMut};

/// A frame's header takes at most so many bytes.
pub(super) const LONGEST_HEADER: usize = 14;
/// The payload of a control frame takes at most so many bytes (5.5).
pub(super) const LONGEST_CONTROL: usize = 125;

/// Which end of the connection we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// We were connected to; what we say is not masked.
    Server,
    /// We connected; what we say is masked.
    Client,
}

/// What a frame is (11.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opcode {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

/// What breaks the connection, and the code it is closed with (7.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) code: u16,
    pub(super) what: &'static str,
}

/// A frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Whether the frame is the last of its message.
    pub(super) last: bool,
    pub(super) opcode: Opcode,
    pub(super) mask: Option<Mask>,
    /// Length of the payload, in bytes.
    pub(super) length: u64,
}

impl Header {
    /// Reads a header and says how many bytes it takes; `None` when more are needed.
    pub(super) fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, Broken> {
        let &[first, second, ..] = bytes else {
            return Ok(None);
        };
        if first & 0x70 != 0 {
            return Err(Broken::protocol("a reserved bit is set"));
        }
        let opcode = Opcode::of(first & 0x0f)?;
        let last = first & 0x80 != 0;
        let (length, mut taken) = match second & 0x7f {
            126 => match bytes.get(2..4) {
                Some(&[a, b]) => (u64::from(u16::from_be_bytes([a, b])), 4),
                _ => return Ok(None),
            },
            127 => match bytes.get(2..10).map(<[u8; 8]>::try_from) {
                Some(Ok(length)) => (u64::from_be_bytes(length), 10),
                _ => return Ok(None),
            },
            short => (u64::from(short), 2),
        };
        if opcode.is_control() && (!last || length > LONGEST_CONTROL as u64) {
            return Err(Broken::protocol(
                "a control frame is fragmented or too long",
            ));
        }
        if length >> 63 != 0 {
            return Err(Broken::protocol("a frame's length has its highest bit set"));
        }
        let mask = if second & 0x80 == 0 {
            None
        } else {
            let Some(&[a, b, c, d]) = bytes.get(taken..taken + 4) else {
                return Ok(None);
            };
            taken += 4;
            Some(Mask([a, b, c, d]))
        };
        let header = Self {
            last,
            opcode,
            mask,
            length,
        };
        Ok(Some((header, taken)))
    }

    /// Lays the header behind what is in `into`.
    pub(super) fn encode(&self, into: &mut BytesMut) {
        let masked = if self.mask.is_some() { 0x80 } else { 0 };
        let first = self.opcode.code() | if self.last { 0x80 } else { 0 };
        // One piece, for each takes a look at the room that is left.
        match self.length {
            short @ 0..126 => into.put_slice(&[first, masked | short as u8]),
            medium @ 126..0x1_0000 => {
                let [high, low] = (medium as u16).to_be_bytes();
                into.put_slice(&[first, masked | 126, high, low]);
            }
            long => {
                into.put_slice(&[first, masked | 127]);
                into.put_u64(long);
            }
        }
        if let Some(Mask(key)) = self.mask {
            into.put_slice(&key);
        }
    }
}

impl Opcode {
    pub(super) const fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }

    fn of(code: u8) -> Result<Self, Broken> {
        Ok(match code {
            0x0 => Self::Continuation,
            0x1 => Self::Text,
            0x2 => Self::Binary,
            0x8 => Self::Close,
            0x9 => Self::Ping,
            0xa => Self::Pong,
            _ => return Err(Broken::protocol("an opcode is unknown")),
        })
    }

    const fn code(self) -> u8 {
        match self {
            Self::Continuation => 0x0,
            Self::Text => 0x1,
            Self::Binary => 0x2,
            Self::Close => 0x8,
            Self::Ping => 0x9,
            Self::Pong => 0xa,
        }
    }
}

impl Broken {
    pub(super) const fn protocol(what: &'static str) -> Self {
        Self { code: 1002, what }
    }

    pub(super) const fn too_long() -> Self {
        let what = "a message is longer than --limit frame-from-network allows";
        Self { code: 1009, what }
    }

    pub(super) const fn not_utf8() -> Self {
        let what = "a text that is not UTF-8";
        Self { code: 1007, what }
    }
}

/// A masking key (5.3), turned so that its first byte belongs to the next byte of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mask(pub(super) [u8; 4]);

impl Mask {
    /// Lays the mask over the next bytes of the payload, or takes it off.
    pub(super) fn apply(&mut self, bytes: &mut [u8]) {
        let [a, b, c, d] = self.0;
        let eight = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
        let mut chunks = bytes.chunks_exact_mut(8);
        for chunk in &mut chunks {
            let word: &mut [u8; 8] = chunk.try_into().expect("chunks are of eight bytes");
            *word = (u64::from_ne_bytes(*word) ^ eight).to_ne_bytes();
        }
        let rest = chunks.into_remainder();
        for (byte, key) in rest.iter_mut().zip(self.0.iter().cycle()) {
            *byte ^= key;
        }
        self.0.rotate_left(rest.len() % 4);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The mask is what the RFC says, however the payload is cut.
        #[test]
        fn a_mask_is_its_definition(
            key: [u8; 4],
            payload: Vec<u8>,
            cuts in prop::collection::vec(0_usize..40, 0..8),
        ) {
            let expected: Vec<u8> = payload.iter().enumerate().map(|(i, byte)| byte ^ key[i % 4]).collect();
            let mut masked = payload;
            let mut mask = Mask(key);
            let mut rest = &mut masked[..];
            for cut in cuts {
                let (now, later) = rest.split_at_mut(cut.min(rest.len()));
                mask.apply(now);
                rest = later;
            }
            mask.apply(rest);
            prop_assert_eq!(masked, expected);
        }

        #[test]
        fn a_header_is_read_as_it_was_laid(
            last: bool,
            length in prop_oneof![0_u64..130, 65_530_u64..65_540, 0_u64..1 << 63],
            key: Option<[u8; 4]>,
        ) {
            let header = Header { last, opcode: Opcode::Text, mask: key.map(Mask), length };
            let mut laid = BytesMut::new();
            header.encode(&mut laid);
            prop_assert!(laid.len() <= LONGEST_HEADER);
            prop_assert_eq!(Header::decode(&laid), Ok(Some((header, laid.len()))));
            for part in 0..laid.len() {
                prop_assert_eq!(Header::decode(&laid[..part]), Ok(None));
            }
        }
    }
}
