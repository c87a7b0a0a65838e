//! Finished segments, packed: independent zstd frames with a seek table at the end.
//!
//! Any zstd program unpacks the file; one that supports the [seekable format] can start in the
//! middle. The frames are followed by a skippable frame with their digest, and by the table.
//!
//! [seekable format]: https://github.com/facebook/zstd/blob/dev/contrib/seekable_format/zstd_seekable_compression_format.md

use std::io::{self, Read, Seek, SeekFrom, Write};

/// Bytes of the segment in each frame.
const FRAME: usize = 1 << 20;

/// The magic numbers of the two skippable frames in use.
const DIGEST: u32 = 0x184D_2A50;
const TABLE: u32 = 0x184D_2A5E;

/// The last four bytes of a file with a table.
const END: u32 = 0x8F92_EAB1;

/// Bytes of the table's footer: the number of frames, a descriptor, [`END`].
const FOOTER: u64 = 9;

/// Bytes of the skippable frame that holds the digest.
const DIGEST_LEN: u64 = 8 + 32;

/// Reads a packed segment as if it were plain.
#[derive(Debug)]
pub struct PackedReader<R> {
    source: R,
    /// The packed and plain offset of each frame, and of the end of the last one.
    frames: Vec<(u64, u64)>,
    /// The unpacked frame and its index.
    current: Option<(usize, Vec<u8>)>,
    at: u64,
}

/// Packs a segment into `to`.
///
/// # Errors
/// When the segment cannot be read or the output cannot be written.
pub fn pack(mut from: impl Read, mut to: impl Write, level: i32) -> io::Result<()> {
    let mut table = Vec::new();
    let mut count: u32 = 0;
    let mut digest = blake3::Hasher::new();
    let mut plain = Vec::with_capacity(FRAME);
    let mut packer = zstd::bulk::Compressor::new(level)?;
    packer.include_checksum(true)?;
    loop {
        plain.clear();
        (&mut from).take(FRAME as u64).read_to_end(&mut plain)?;
        if plain.is_empty() {
            break;
        }
        let packed = packer.compress(&plain)?;
        digest.update(&packed);
        to.write_all(&packed)?;
        table.extend_from_slice(&to_u32(packed.len())?.to_le_bytes());
        table.extend_from_slice(&to_u32(plain.len())?.to_le_bytes());
        count += 1;
    }
    table.extend_from_slice(&count.to_le_bytes());
    // The descriptor: the table has no checksums, because the frames have their own.
    table.push(0);
    table.extend_from_slice(&END.to_le_bytes());
    skippable(&mut to, DIGEST, digest.finalize().as_bytes())?;
    skippable(&mut to, TABLE, &table)
}

impl<R: Read + Seek> PackedReader<R> {
    /// Reads the seek table.
    ///
    /// # Errors
    /// When it cannot be read or is missing.
    pub fn new(mut source: R) -> io::Result<Self> {
        let length = source.seek(SeekFrom::End(0))?;
        let foot = length.checked_sub(FOOTER).ok_or_else(no_table)?;
        source.seek(SeekFrom::Start(foot))?;
        let count = u64::from(read_u32(&mut source)?);
        let mut descriptor = [0];
        source.read_exact(&mut descriptor)?;
        if read_u32(&mut source)? != END || descriptor != [0] {
            return Err(no_table());
        }
        let size = count * 8 + FOOTER;
        let start = length.checked_sub(size + 8).ok_or_else(no_table)?;
        source.seek(SeekFrom::Start(start))?;
        if read_u32(&mut source)? != TABLE || u64::from(read_u32(&mut source)?) != size {
            return Err(no_table());
        }
        let mut frames = vec![(0, 0)];
        let (mut packed, mut plain) = (0, 0);
        for _ in 0..count {
            packed += u64::from(read_u32(&mut source)?);
            plain += u64::from(read_u32(&mut source)?);
            frames.push((packed, plain));
        }
        if packed + DIGEST_LEN != start {
            return Err(no_table());
        }
        Ok(Self {
            source,
            frames,
            current: None,
            at: 0,
        })
    }

    /// Whether the packed bytes match their digest.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn is_intact(&mut self) -> io::Result<bool> {
        let length = self.frames.last().map_or(0, |(packed, _)| *packed);
        self.source.seek(SeekFrom::Start(0))?;
        let mut digest = blake3::Hasher::new();
        let copied = io::copy(&mut (&mut self.source).take(length), &mut digest)?;
        let head = (read_u32(&mut self.source)?, read_u32(&mut self.source)?);
        let mut found = [0; 32];
        self.source.read_exact(&mut found)?;
        Ok(copied == length && head == (DIGEST, 32) && digest.finalize() == found)
    }

    fn length(&self) -> u64 {
        self.frames.last().map_or(0, |(_, plain)| *plain)
    }

    /// Unpacks the frame that contains the current position.
    fn unpack(&mut self) -> io::Result<&[u8]> {
        let index = self.frames.partition_point(|(_, plain)| *plain <= self.at) - 1;
        if self
            .current
            .as_ref()
            .is_none_or(|(known, _)| *known != index)
        {
            let ((from, begins), (to, ends)) = (self.frames[index], self.frames[index + 1]);
            self.source.seek(SeekFrom::Start(from))?;
            let mut packed = Vec::new();
            (&mut self.source)
                .take(to - from)
                .read_to_end(&mut packed)?;
            let size = usize::try_from(ends - begins).unwrap_or(usize::MAX);
            // Frames written by `pack` are never larger; a foreign table may claim any size.
            if size > 64 * FRAME {
                return Err(damaged());
            }
            let plain = zstd::bulk::decompress(&packed, size)?;
            if plain.len() != size {
                return Err(damaged());
            }
            self.current = Some((index, plain));
        }
        let begins = self.frames[index].1;
        let (_, plain) = self.current.as_ref().expect("it was unpacked above");
        Ok(&plain[usize::try_from(self.at - begins).unwrap_or(usize::MAX)..])
    }
}

impl<R: Read + Seek> Read for PackedReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.length() {
            return Ok(0);
        }
        let mut rest = self.unpack()?;
        let read = rest.read(into)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<R: Read + Seek> Seek for PackedReader<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

fn skippable(to: &mut impl Write, kind: u32, content: &[u8]) -> io::Result<()> {
    to.write_all(&kind.to_le_bytes())?;
    to.write_all(&to_u32(content.len())?.to_le_bytes())?;
    to.write_all(content)
}

fn read_u32(from: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn to_u32(length: usize) -> io::Result<u32> {
    u32::try_from(length).map_err(|_| io::ErrorKind::InvalidData.into())
}

fn no_table() -> io::Error {
    let what = "it is packed, but no table of zstd frames is at its end: it is torn, or another \
                program has packed it; read what `zstd -d` unpacks of it";
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn damaged() -> io::Error {
    let what = "a packed frame is not as long as the table says: it is damaged";
    io::Error::new(io::ErrorKind::InvalidData, what)
}
