//! Finished segments, packed: independent zstd frames with a seek table at the end.
//!
//! Any zstd program unpacks the file; one that supports the [seekable format] can start in the
//! middle. Each frame has a checksum of its own; the segment's digest is in its last line.
//!
//! [seekable format]: https://github.com/facebook/zstd/blob/dev/contrib/seekable_format/zstd_seekable_compression_format.md

use std::io::{self, Read, Seek, SeekFrom, Write};

/// Bytes of the segment in each frame.
const FRAME: usize = 1 << 20;

/// The magic number of the skippable frame that holds the table.
const TABLE: u32 = 0x184D_2A5E;

/// The last four bytes of a file with a table.
const END: u32 = 0x8F92_EAB1;

/// Bytes of the table's footer: the number of frames, a descriptor, [`END`].
const FOOTER: usize = 9;

/// Bytes of a skippable frame with a digest, which earlier versions wrote before the table.
const DIGEST_LEN: u64 = 8 + 32;

/// Reads a packed segment as if it were plain.
#[derive(Debug)]
pub struct PackedReader<R> {
    source: R,
    /// The packed and plain offset of each frame, and of the end of the last one.
    frames: Vec<(u64, u64)>,
    /// The unpacked frame and its index.
    current: (Option<usize>, Vec<u8>),
    at: u64,
}

/// Packs a segment into `to`.
///
/// # Errors
/// When the segment cannot be read or the output cannot be written.
pub fn pack(mut from: impl Read, mut to: impl Write, level: i32) -> io::Result<()> {
    let mut table = Vec::new();
    let mut count: u32 = 0;
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
        to.write_all(&packed)?;
        table.extend_from_slice(&to_u32(packed.len())?.to_le_bytes());
        table.extend_from_slice(&to_u32(plain.len())?.to_le_bytes());
        count += 1;
    }
    table.extend_from_slice(&count.to_le_bytes());
    // The descriptor: the table has no checksums, because the frames have their own.
    table.push(0);
    table.extend_from_slice(&END.to_le_bytes());
    to.write_all(&TABLE.to_le_bytes())?;
    to.write_all(&to_u32(table.len())?.to_le_bytes())?;
    to.write_all(&table)
}

impl<R: Read + Seek> PackedReader<R> {
    /// Reads the seek table.
    ///
    /// # Errors
    /// When it cannot be read or is missing.
    pub fn new(mut source: R) -> io::Result<Self> {
        let length = source.seek(SeekFrom::End(0))?;
        let mut read = |from_end: u64| {
            let start = length.checked_sub(from_end).ok_or_else(no_table)?;
            source.seek(SeekFrom::Start(start))?;
            let mut bytes = Vec::new();
            (&mut source).take(from_end).read_to_end(&mut bytes)?;
            Ok::<_, io::Error>((start, bytes))
        };
        let (_, foot) = read(FOOTER as u64)?;
        if foot.get(4) != Some(&0) || u32_at(&foot, 5) != END {
            return Err(no_table());
        }
        let size = u64::from(u32_at(&foot, 0)) * 8 + FOOTER as u64;
        let (start, table) = read(size + 8)?;
        let is_whole = table.len() as u64 == size + 8;
        if !is_whole || u32_at(&table, 0) != TABLE || u64::from(u32_at(&table, 4)) != size {
            return Err(no_table());
        }
        let mut frames = vec![(0, 0)];
        let (mut packed, mut plain) = (0, 0);
        let (sizes, _) = table[8..table.len() - FOOTER].as_chunks::<8>();
        for sizes in sizes {
            packed += u64::from(u32_at(sizes, 0));
            plain += u64::from(u32_at(sizes, 4));
            frames.push((packed, plain));
        }
        if ![packed, packed + DIGEST_LEN].contains(&start) {
            return Err(no_table());
        }
        Ok(Self {
            source,
            frames,
            current: (None, Vec::new()),
            at: 0,
        })
    }

    fn length(&self) -> u64 {
        self.frames.last().map_or(0, |(_, plain)| *plain)
    }

    /// Unpacks the frame that contains the current position; returns the rest of it from there.
    fn unpack(&mut self) -> io::Result<&[u8]> {
        let index = self.frames.partition_point(|(_, plain)| *plain <= self.at) - 1;
        let ((from, begins), (to, ends)) = (self.frames[index], self.frames[index + 1]);
        if self.current.0 != Some(index) {
            self.current.0 = None;
            self.source.seek(SeekFrom::Start(from))?;
            let mut packed = Vec::new();
            let mut frame = (&mut self.source).take(to - from);
            frame.read_to_end(&mut packed)?;
            let size = usize::try_from(ends - begins).unwrap_or(usize::MAX);
            // Frames written by `pack` are never larger; a foreign table may claim any size.
            if size > 64 * FRAME {
                return Err(damaged());
            }
            self.current.1 = zstd::bulk::decompress(&packed, size)?;
            if self.current.1.len() != size {
                return Err(damaged());
            }
            self.current.0 = Some(index);
        }
        let done = usize::try_from(self.at - begins).unwrap_or(usize::MAX);
        Ok(&self.current.1[done..])
    }
}

impl<R: Read + Seek> Read for PackedReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.length() {
            return Ok(0);
        }
        let read = self.unpack()?.read(into)?;
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

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let own = bytes.get(at..).and_then(<[u8]>::first_chunk);
    own.map_or(0, |own| u32::from_le_bytes(*own))
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
