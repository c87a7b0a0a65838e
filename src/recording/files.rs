//! The files of a recording: one for each segment, packed or not.
//!
//! `20261120T155900Z-8f1c22ab.000.acpr` is the first segment of a recording,
//! `….001.acpr.zst` a packed second one. `observe::recorder` writes them.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::{Entry, Header, LineError, PackedReader, Parsed, RecordedEvent, SegmentReader};

/// The file name extension of a segment.
pub const PLAIN: &str = ".acpr";
/// The file name extension of a packed segment.
pub const PACKED: &str = ".acpr.zst";

/// The magic number of zstd files (RFC 8878, 3.1.1).
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// How a header line begins.
const HEAD: &[u8] = b"{\"acpr\":";

/// The number of lines that are searched for a readable one.
const MAX_LINES: usize = 64;

/// Why a file cannot be read as a recording.
#[derive(Debug, thiserror::Error)]
pub enum NotRecording {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    /// It is a folder.
    #[error("it is a folder; `acp-relay inspect ls` lists the recordings in one")]
    Folder,
    /// It is a pipe or a device. A recording is read several times, which these do not allow.
    #[error("it is a pipe or a device, and is read more than once: write it into a file first")]
    Pipe,
    /// It is empty.
    #[error("it is empty: nothing was recorded, or it was cut off before anything was")]
    Empty,
    /// It was written by a later version of the format.
    #[error("{0}")]
    Newer(LineError),
    /// It has another format.
    #[error(
        "this is no recording; of a capture, a trace or a HAR file, `acp-relay inspect import` \
         makes one"
    )]
    OtherFormat,
}

/// An open segment file.
#[derive(Debug)]
pub enum SegmentSource {
    /// Not packed.
    Plain(SegmentFile),
    /// Packed.
    Packed(Box<PackedReader<SegmentFile>>),
}

/// A segment's file. Its reads are reported, see [`on_read`].
#[derive(Debug)]
pub struct SegmentFile(File);

/// Who is told of reads.
static ON_READ: OnceLock<fn(u64)> = OnceLock::new();

/// All segments of one recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The file name that all segments share.
    pub name: String,
    /// The segments, in order.
    pub segments: Vec<PathBuf>,
}

impl NotRecording {
    /// What is wrong with the file type at `path`, before it is opened; `None` for a regular file
    /// and when there is none.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let kind = fs::metadata(path).ok()?.file_type();
        match () {
            () if kind.is_dir() => Some(Self::Folder),
            () if !kind.is_file() => Some(Self::Pipe),
            () => None,
        }
    }
}

/// Calls `report` with the number of bytes of each read of a segment's file in this process, for a
/// display of progress. Only the first call has an effect.
pub fn on_read(report: fn(u64)) {
    let _ = ON_READ.set(report);
}

/// Whether a process writes the segment at `path`: the writer has it locked.
#[must_use]
pub fn is_locked(path: &Path) -> bool {
    let file = File::open(path);
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Opens one segment, packed or not.
///
/// # Errors
/// When it cannot be read.
pub fn open(path: &Path) -> io::Result<SegmentReader<SegmentSource>> {
    Ok(SegmentReader::new(open_source(path)?))
}

/// Opens a file, which is unpacked if it is packed, whatever its name. One that cannot be rewound,
/// such as a pipe, counts as not packed.
pub(super) fn open_source(path: &Path) -> io::Result<SegmentSource> {
    let mut file = File::open(path)?;
    let mut head = Vec::new();
    if file.metadata()?.is_file() {
        (&file).take(ZSTD.len() as u64).read_to_end(&mut head)?;
        file.rewind()?;
    }
    Ok(match head == ZSTD || ends_with(path, PACKED) {
        true => SegmentSource::Packed(Box::new(PackedReader::new(SegmentFile(file))?)),
        false => SegmentSource::Plain(SegmentFile(file)),
    })
}

/// The recordings in a folder, by name. If a segment exists both packed and plain, the plain file
/// is used.
///
/// # Errors
/// When the folder cannot be read.
pub fn recordings(folder: &Path) -> io::Result<Vec<Recording>> {
    group_segments(folder, |_| true)
}

impl Recording {
    /// The recording that the segment at `path` belongs to. A file whose name has another form is a
    /// recording of one segment.
    ///
    /// # Errors
    /// When its folder cannot be read.
    pub fn of(path: &Path) -> io::Result<Self> {
        let (name, number) = recording_name(path);
        let alone = Self {
            name: name.clone(),
            segments: vec![path.to_owned()],
        };
        if number.is_none() {
            return Ok(alone);
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let base = |path: &Path| split_name(path).0;
        let found = group_segments(folder, |candidate| base(candidate) == base(path))?;
        let same = |known: &Self| known.name == name;
        Ok(found.into_iter().find(same).unwrap_or(alone))
    }

    /// Checks how it begins.
    ///
    /// # Errors
    /// When it cannot be read as a recording.
    pub fn check(&self) -> Result<(), NotRecording> {
        if let Some(error) = self.segments.iter().find_map(|path| NotRecording::of(path)) {
            return Err(error);
        }
        let mut is_empty = true;
        for entry in self.entries().take(MAX_LINES) {
            let (_, entry) = entry?;
            match entry.parsed {
                Parsed::Header(_) | Parsed::Event(_) => return Ok(()),
                Parsed::Invalid(fault @ LineError::Newer(_)) => {
                    return Err(NotRecording::Newer(fault));
                }
                // A recording whose only line is damaged.
                Parsed::Invalid(_) if entry.line.starts_with(HEAD) => return Ok(()),
                Parsed::Invalid(_) => is_empty = false,
            }
        }
        // An incomplete line is not returned by the reader.
        let is_torn = || self.segments.iter().any(|path| begins_header(path));
        match (is_empty, self.bytes()) {
            (true, 0) => Err(NotRecording::Empty),
            (true, _) if is_torn() => Err(NotRecording::Empty),
            _ => Err(NotRecording::OtherFormat),
        }
    }

    /// The bytes of its files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let length = |path| fs::metadata(path).map_or(0, |data| data.len());
        self.segments.iter().map(length).sum()
    }

    /// The first header that can be read.
    #[must_use]
    pub fn header(&self) -> Option<Header> {
        self.entries().find_map(|entry| match entry.ok()?.1.parsed {
            Parsed::Header(header) => Some(*header),
            _ => None,
        })
    }

    /// The lines of all segments, each with the index of its segment. If a segment cannot be read
    /// further, its error is returned once, and the next segment follows.
    pub fn entries(&self) -> impl Iterator<Item = io::Result<(usize, Entry)>> + '_ {
        let files = self.segments.iter().enumerate();
        files.flat_map(|(at, path)| {
            let (reader, error) = match open(path) {
                Ok(reader) => (Some(reader), None),
                Err(error) => (None, Some(error)),
            };
            let lines = reader.into_iter().flatten();
            lines
                .chain(error.map(Err))
                .map(move |entry| entry.map(|entry| (at, entry)))
        })
    }

    /// The events of all segments; broken lines and headers are skipped.
    pub fn events(&self) -> impl Iterator<Item = io::Result<RecordedEvent>> + '_ {
        let entries = self.entries();
        entries.filter_map(|entry| {
            entry
                .map(|(_, entry)| entry.parsed.into_event())
                .transpose()
        })
    }
}

/// Whether a file holds the beginning of a header line.
fn begins_header(path: &Path) -> bool {
    let mut head = Vec::new();
    let file = File::open(path);
    let read = file.and_then(|file| file.take(HEAD.len() as u64).read_to_end(&mut head));
    read.is_ok() && head == HEAD
}

/// The recordings in a folder that have segments among the files that `filter` accepts.
fn group_segments(folder: &Path, filter: impl Fn(&Path) -> bool) -> io::Result<Vec<Recording>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_segment = ends_with(&path, PLAIN) || ends_with(&path, PACKED);
        if is_segment && filter(&path) && path.is_file() {
            paths.push(path);
        }
    }
    // A plain file sorts before the packed one of the same segment.
    paths.sort();
    let mut found: BTreeMap<String, BTreeMap<Option<u64>, PathBuf>> = BTreeMap::new();
    for path in paths {
        let (name, number) = recording_name(&path);
        let segments = found.entry(name).or_default();
        segments.entry(number).or_insert(path);
    }
    let recording = |(name, segments): (_, BTreeMap<_, _>)| Recording {
        name,
        segments: segments.into_values().collect(),
    };
    Ok(found.into_iter().map(recording).collect())
}

/// The recording's name and the segment's number, from the path of a segment.
///
/// A name may end in a number that is not a segment number, such as a version: where the header
/// says otherwise, the number is part of the name. Without a header the file name decides.
fn recording_name(path: &Path) -> (String, Option<u64>) {
    let (name, number) = split_name(path);
    let Some((number, digits)) = number else {
        return (name, None);
    };
    let first = open(path).ok().and_then(|mut reader| reader.next());
    match first {
        Some(Ok(Entry {
            parsed: Parsed::Header(header),
            ..
        })) if header.segment != number => (format!("{name}.{digits}"), None),
        _ => (name, Some(number)),
    }
}

/// Splits a file name into the recording's name, and the number with its digits as spelled.
fn split_name(path: &Path) -> (String, Option<(u64, String)>) {
    let whole = path.file_name().unwrap_or_default().to_string_lossy();
    let name = whole
        .strip_suffix(PACKED)
        .or_else(|| whole.strip_suffix(PLAIN));
    let name = name.unwrap_or(&whole);
    let number = name.rsplit_once('.').and_then(|(name, digits)| {
        let number = digits.parse().ok()?;
        // The recorder writes at least three digits.
        (format!("{number:03}") == digits).then(|| (name.to_owned(), number, digits.to_owned()))
    });
    match number {
        Some((name, number, digits)) => (name, Some((number, digits))),
        None => (name.to_owned(), None),
    }
}

fn ends_with(path: &Path, ending: &str) -> bool {
    path.to_string_lossy().ends_with(ending)
}

impl Read for SegmentFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(into)?;
        if let Some(report) = ON_READ.get() {
            report(count as u64);
        }
        Ok(count)
    }
}

impl Seek for SegmentFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl Read for SegmentSource {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(into),
            Self::Packed(sealed) => sealed.read(into),
        }
    }
}

impl Seek for SegmentSource {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Plain(file) => file.seek(to),
            Self::Packed(sealed) => sealed.seek(to),
        }
    }
}
