//! Finished segments, packed with zstd. Each has a checksum, and any zstd program unpacks it.
//!
//! Earlier versions wrote several frames and a table of them, which are read as well.

use std::fmt;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};

use zstd::{Decoder, Encoder};

/// Reads a packed segment as if it were plain. To go back means to begin again.
pub struct PackedReader<R> {
    unpacked: Option<Decoder<'static, BufReader<R>>>,
    /// How far the segment is unpacked, and where the next byte is read.
    done: u64,
    at: u64,
    length: Option<u64>,
}

/// Packs a segment into `to`.
///
/// # Errors
/// When the segment cannot be read or the output cannot be written.
pub fn pack(mut from: impl Read, to: impl Write, level: i32) -> io::Result<()> {
    let mut packer = Encoder::new(to, level)?;
    packer.include_checksum(true)?;
    io::copy(&mut from, &mut packer)?;
    packer.finish()?.flush()
}

impl<R: Read + Seek> PackedReader<R> {
    /// Reads a packed segment from its beginning.
    ///
    /// # Errors
    /// When zstd cannot be set up.
    pub fn new(source: R) -> io::Result<Self> {
        Ok(Self {
            unpacked: Some(Decoder::new(source)?),
            done: 0,
            at: 0,
            length: None,
        })
    }

    /// Unpacks up to `to`, or the end.
    fn unpack(&mut self, to: u64) -> io::Result<()> {
        if self.done > to
            && let Some(unpacked) = self.unpacked.take()
        {
            let mut source = unpacked.finish().into_inner();
            source.rewind()?;
            (self.unpacked, self.done) = (Some(Decoder::new(source)?), 0);
        }
        let mut forgotten = [0; 16 << 10];
        while let Some(unpacked) = self.unpacked.as_mut().filter(|_| self.done < to) {
            let left = usize::try_from(to - self.done).unwrap_or(usize::MAX);
            let (part, _) = forgotten.split_at_mut(left.min(16 << 10));
            match unpacked.read(part).map_err(|error| damaged(&error))? {
                0 => break,
                read => self.done += read as u64,
            }
        }
        Ok(())
    }
}

impl<R: Read + Seek> Read for PackedReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.unpack(self.at)?;
        let Some(unpacked) = self.unpacked.as_mut().filter(|_| self.done == self.at) else {
            return Ok(0);
        };
        let read = unpacked.read(into).map_err(|error| damaged(&error))?;
        self.done += read as u64;
        self.at = self.done;
        Ok(read)
    }
}

impl<R: Read + Seek> Seek for PackedReader<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => {
                if self.length.is_none() {
                    // It ends where it is damaged; reading up to there reports that.
                    let _ = self.unpack(u64::MAX);
                }
                self.length.get_or_insert(self.done).checked_add_signed(by)
            }
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// The error with a remedy.
fn damaged(error: &io::Error) -> io::Error {
    let what = "it is torn or damaged; `zstd -d` unpacks what is whole of it";
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

impl<R> fmt::Debug for PackedReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackedReader")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}
