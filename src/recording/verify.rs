//! Checks whether a recording is intact.
//!
//! It compares each line with its checksum, the event numbers with each other, each segment with
//! its digest and with the one before, packed segments with their own digest, and each translated
//! message with its source and patch.

use std::io::{self, Read};

use super::event::{Header, What};
use super::files::{Recording, Source, open};
use super::origins::Origins;
use super::parse::{Fault, Found};
use super::read::Reader;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of segments checked.
    pub segments: usize,
    /// The number of intact events.
    pub events: u64,
    /// Whether the recording was ended properly. One that is still being written was not.
    pub ended: bool,
    /// The defects found.
    pub findings: Vec<Finding>,
}

/// A defect of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The index of the segment.
    pub segment: usize,
    /// The offset in the (unpacked) segment, in bytes.
    pub at: u64,
    /// A stable id: `torn`, `damaged`, `number`, `digest`, `link`, `time`, `header`, `after-end`,
    /// `translation`, `unreadable`.
    pub id: &'static str,
    /// A description for people.
    pub what: String,
}

/// The state that is kept from line to line and from segment to segment.
#[derive(Default)]
struct Progress {
    report: Report,
    /// The expected number of the next event; `None` before the first segment.
    next: Option<u64>,
    /// The digest of the segment before, and its header.
    before: Option<(String, Header)>,
    header: Option<Header>,
    digest: blake3::Hasher,
    origins: Origins,
    t: u64,
}

/// Checks all segments of a recording.
#[must_use]
pub fn verify(recording: &Recording) -> Report {
    let mut progress = Progress::default();
    for path in &recording.segments {
        progress.report.segments += 1;
        let looked = open(path).and_then(|mut reader| {
            if let Source::Packed(sealed) = reader.source()
                && !sealed.is_intact()?
            {
                progress.find(
                    0,
                    "digest",
                    "the packed bytes are not those that were written",
                );
            }
            let reader = open(path)?;
            progress.segment(reader)
        });
        if let Err(error) = looked {
            progress.find(0, "unreadable", format!("{}: {error}", path.display()));
        }
    }
    progress.report
}

/// Checks one segment by itself.
///
/// # Errors
/// When it cannot be read.
pub fn verify_segment<R: Read>(reader: Reader<R>) -> io::Result<Report> {
    let mut progress = Progress::default();
    progress.report.segments = 1;
    progress.segment(reader)?;
    Ok(progress.report)
}

impl Progress {
    fn segment<R: Read>(&mut self, mut reader: Reader<R>) -> io::Result<()> {
        self.digest = blake3::Hasher::new();
        self.header = None;
        self.report.ended = false;
        let mut first = true;
        for entry in reader.by_ref() {
            let entry = entry?;
            match entry.found {
                Found::Header(header) if first => self.header(*header),
                Found::Header(_) => self.find(entry.at, "header", "there is a second header"),
                Found::Event(event) => {
                    if first {
                        self.find(entry.at, "header", "there is no header");
                    }
                    self.event(entry.at, event.n, event.t, &event.what);
                }
                Found::Broken(fault) => self.find(entry.at, "damaged", fault.to_string()),
            }
            first = false;
            self.digest.update(&entry.line);
        }
        if reader.torn() > 0 {
            let fault = Fault::Torn {
                bytes: reader.torn(),
            };
            self.find(reader.at(), "torn", fault.to_string());
        } else if first {
            self.find(0, "header", "the file is empty");
        }
        let digest = self.digest.finalize().to_hex().to_string();
        self.before = self.header.take().map(|header| (digest, header));
        Ok(())
    }

    fn header(&mut self, header: Header) {
        if let Some((digest, before)) = self.before.take() {
            if before.id != header.id {
                self.find(0, "link", "this segment is of another recording");
            }
            if before.segment + 1 != header.segment {
                let what = format!(
                    "this is segment {} after segment {}",
                    header.segment, before.segment
                );
                self.find(0, "link", what);
            } else if header.previous.as_ref() != Some(&digest) {
                self.find(
                    0,
                    "link",
                    "the segment before is not the one this was linked to",
                );
            }
        }
        let next = *self.next.get_or_insert(header.first);
        if next != header.first {
            let what = format!("the segment begins at event {}, not {next}", header.first);
            self.find(0, "number", what);
            self.next = Some(header.first);
        }
        self.header = Some(header);
    }

    fn event(&mut self, at: u64, n: u64, t: u64, what: &What) {
        self.report.events += 1;
        let next = *self.next.get_or_insert(n);
        if n != next {
            self.find(at, "number", format!("this is event {n}, not {next}"));
        }
        self.next = Some(n.saturating_add(1));
        if self.t > t {
            self.find(
                at,
                "time",
                format!("event {n} is earlier than the one before"),
            );
        }
        self.t = t;
        if self.report.ended && *what != What::Resume {
            self.find(at, "after-end", format!("event {n} comes after the end"));
        }
        self.report.ended = matches!(what, What::End { rotated: false, .. });
        if let What::Message(message) = what
            && let Some(fault) = self.origins.see(n, message)
        {
            self.find(at, "translation", fault);
        }
        if let What::End { digest, .. } = what
            && self.digest.finalize().to_hex().as_str() != digest
        {
            self.find(
                at,
                "digest",
                "the segment is not the one that was ended here",
            );
        }
    }

    fn find(&mut self, at: u64, id: &'static str, what: impl Into<String>) {
        self.report.findings.push(Finding {
            segment: self.report.segments.saturating_sub(1),
            at,
            id,
            what: what.into(),
        });
    }
}
