//! Keeps small messages from holding large buffers.
//!
//! A frame shares the read buffer it was cut from, and while it waits for a slow reader, all of
//! that memory waits with it: a peer that sends 64 KiB of blank lines around each small message
//! would make the relay keep 64 KiB for each. What follows a frame is not known when it is cut. So
//! the rule looks back: when memory has to be replaced while frames still hold it, and less than
//! half of it was frames, small frames are copied out from then on, until memory was mostly frames
//! again. Queued frames hold at most a few times their own bytes and two buffers (the one that shows
//! the waste, and the next), and a stream of messages with nothing around them is never copied and needs no allocation. How many bytes may
//! wait is limited elsewhere (see `conversation::Outbox`).

use bytes::{Bytes, BytesMut};

/// Memory of more than this, in bytes, was needed for one large message. It is not kept after that
/// message, and small messages in it are copied out.
const OVERSIZE: usize = 128 << 10;

/// The memory behind a read buffer.
#[derive(Debug, Default)]
pub(super) struct BufferPool {
    /// Its size, which the buffer's capacity does not show once frames are cut.
    size: usize,
    /// Bytes of it that were frames.
    framed: usize,
    /// Whether memory like this was last held by few frames.
    wasteful: bool,
    /// The previous buffer: while its last frames are being written, the next bytes are read into
    /// the current one, and the two alternate without an allocation.
    spare: BytesMut,
    spare_size: usize,
}

impl BufferPool {
    /// For `buffer`, which is not shared yet.
    pub(super) fn new(buffer: &BytesMut) -> Self {
        Self {
            size: buffer.capacity(),
            ..Self::default()
        }
    }

    /// Bytes of memory behind the buffer.
    pub(super) const fn size(&self) -> usize {
        self.size
    }

    /// Records that the buffer was dropped.
    pub(super) fn reset(&mut self) {
        self.size = 0;
        self.framed = 0;
        self.spare = BytesMut::new();
        self.spare_size = 0;
    }

    /// Replaces memory that was needed for a large message, when the buffer holds little of the next.
    pub(super) fn shrink(&mut self, buffer: &mut BytesMut) {
        if self.size > OVERSIZE && buffer.len() <= OVERSIZE / 2 {
            *buffer = BytesMut::from(&buffer[..]);
            *self = Self::new(buffer);
        }
    }

    /// Makes room for `size_needed` more bytes.
    pub(super) fn make_room(&mut self, buffer: &mut BytesMut, size_needed: usize) {
        let full = 2 * self.framed >= self.size;
        // When every frame of the memory has been dropped, this reuses it, though the beginning of
        // a message that is carried over may take half of the room.
        if buffer.try_reclaim(size_needed)
            || (self.size >= size_needed && buffer.try_reclaim(size_needed / 2))
        {
            self.wasteful &= !full;
        } else if self.framed == 0 {
            // A message longer than the memory: it grows, without a copy where the allocator can.
            buffer.reserve(size_needed);
            self.size = buffer.capacity();
        } else {
            self.wasteful = !full;
            if !self.spare.try_reclaim(buffer.len() + size_needed) {
                self.spare = BytesMut::with_capacity(buffer.len() + size_needed);
                self.spare_size = self.spare.capacity();
            }
            self.spare.extend_from_slice(buffer);
            buffer.clear();
            std::mem::swap(buffer, &mut self.spare);
            std::mem::swap(&mut self.size, &mut self.spare_size);
        }
        self.framed = 0;
    }

    /// Passes on a message that shares the buffer, copied to memory of its own if necessary.
    pub(super) fn share(&mut self, message: Bytes) -> Bytes {
        self.framed += message.len();
        let small = 2 * message.len() < self.size;
        if small && (self.wasteful || self.size > OVERSIZE) {
            return Bytes::copy_from_slice(&message);
        }
        message
    }
}
