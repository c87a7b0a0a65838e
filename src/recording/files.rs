//! The files of a recording: one for each segment, packed or not.
//!
//! `20261120T155900Z-8f1c22ab.000.acpr` is the first segment of a recording,
//! `….001.acpr.zst` a packed second one. Not here: making them (see `tap::recorder`).

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{Entry, Event, Found, Reader, Sealed};

/// How the name of a segment ends.
pub const PLAIN: &str = ".acpr";
/// How the name of a packed segment ends.
pub const PACKED: &str = ".acpr.zst";

/// A segment's file.
#[derive(Debug)]
pub enum Source {
    /// As it was written.
    Plain(File),
    /// Packed.
    Packed(Box<Sealed<File>>),
}

/// All segments of one recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The name they share.
    pub name: String,
    /// The segments, in order.
    pub segments: Vec<PathBuf>,
}

/// Opens one segment, packed or not.
///
/// # Errors
/// When it cannot be read.
pub fn open(path: &Path) -> io::Result<Reader<Source>> {
    let file = File::open(path)?;
    Ok(Reader::new(if ends_with(path, PACKED) {
        Source::Packed(Box::new(Sealed::new(file)?))
    } else {
        Source::Plain(file)
    }))
}

/// The recordings in a folder, by name. Of a segment that is there both packed and not, the one
/// that is not counts.
///
/// # Errors
/// When the folder cannot be read.
pub fn segments(folder: &Path) -> io::Result<Vec<Recording>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() && (ends_with(&path, PLAIN) || ends_with(&path, PACKED)) {
            paths.push(path);
        }
    }
    // The plain one of two stands before the packed one.
    paths.sort();
    let mut found: Vec<Recording> = Vec::new();
    for path in paths {
        let (name, number) = name(&path);
        match found.last_mut() {
            Some(last) if last.name == name => {
                let twice = last
                    .segments
                    .last()
                    .is_some_and(|known| self::name(known).1 == number);
                if !twice {
                    last.segments.push(path);
                }
            }
            _ => found.push(Recording {
                name,
                segments: vec![path],
            }),
        }
    }
    Ok(found)
}

impl Recording {
    /// The recording that the segment at `path` belongs to. A file with a name of another form is
    /// a recording of one segment.
    ///
    /// # Errors
    /// When its folder cannot be read.
    pub fn of(path: &Path) -> io::Result<Self> {
        let (name, number) = name(path);
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
        let found = segments(folder)?.into_iter();
        Ok(found
            .into_iter()
            .find(|known| known.name == name)
            .unwrap_or(alone))
    }

    /// The lines of all segments, each with the number of its segment's file.
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

    /// The events of all segments; broken lines and headers are passed over.
    pub fn events(&self) -> impl Iterator<Item = io::Result<Event>> + '_ {
        self.entries().filter_map(|entry| match entry {
            Ok((
                _,
                Entry {
                    found: Found::Event(event),
                    ..
                },
            )) => Some(Ok(*event)),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        })
    }
}

/// The recording's name in a segment's, and the segment's number.
fn name(path: &Path) -> (String, Option<u32>) {
    let whole = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = whole
        .strip_suffix(PACKED)
        .or_else(|| whole.strip_suffix(PLAIN));
    let stem = stem.unwrap_or(&whole);
    match stem.rsplit_once('.') {
        Some((name, number)) if number.len() >= 3 && number.bytes().all(|b| b.is_ascii_digit()) => {
            (name.to_owned(), number.parse().ok())
        }
        _ => (stem.to_owned(), None),
    }
}

fn ends_with(path: &Path, ending: &str) -> bool {
    path.to_string_lossy().ends_with(ending)
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(into),
            Self::Packed(sealed) => sealed.read(into),
        }
    }
}

impl Seek for Source {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Plain(file) => file.seek(to),
            Self::Packed(sealed) => sealed.seek(to),
        }
    }
}
