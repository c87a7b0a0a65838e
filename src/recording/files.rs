//! The files of a recording: one for each segment, packed or not.
//!
//! `20261120T155900Z-8f1c22ab.000.acpr` is the first segment of a recording,
//! `….001.acpr.zst` a packed second one. `observe::recorder` writes them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{Entry, Header, PackedReader, Parsed, RecordedEvent, SegmentReader};

/// The file name extension of a segment.
pub const PLAIN: &str = ".acpr";
/// The file name extension of a packed segment.
pub const PACKED: &str = ".acpr.zst";

/// The magic number of zstd files (RFC 8878, 3.1.1).
pub(super) const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// An open segment file.
#[derive(Debug)]
pub enum SegmentSource {
    /// Not packed.
    Plain(File),
    /// Packed.
    Packed(Box<PackedReader<File>>),
}

/// All segments of one recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The file name that all segments share.
    pub name: String,
    /// The segments, in order.
    pub segments: Vec<PathBuf>,
}

/// Opens one segment, packed or not.
///
/// # Errors
/// When it cannot be read.
pub fn open(path: &Path) -> io::Result<SegmentReader<SegmentSource>> {
    let mut file = File::open(path)?;
    Ok(SegmentReader::new(
        if ends_with(path, PACKED) || is_packed(&mut file)? {
            SegmentSource::Packed(Box::new(PackedReader::new(file)?))
        } else {
            SegmentSource::Plain(file)
        },
    ))
}

/// Whether a file is packed, whatever its name. The file is rewound afterwards; a file that cannot
/// be rewound counts as not packed.
fn is_packed(file: &mut File) -> io::Result<bool> {
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    let mut head = Vec::new();
    file.take(ZSTD.len() as u64).read_to_end(&mut head)?;
    file.rewind()?;
    Ok(head == ZSTD)
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
