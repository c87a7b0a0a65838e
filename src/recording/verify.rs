//! Checks whether a recording is intact.
//!
//! It compares each line with its checksum, the event numbers with each other, each segment with
//! its digest and with the one before, and each translated message with its source and patch; zstd
//! checks the frames of packed segments.

use std::io::{self, Read};

use super::event::{EventKind, Header};
use super::files::{Recording, open};
use super::parse::{LineError, Parsed};
use super::read::SegmentReader;
use super::translation_check::TranslationCheck;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// The number of segments checked.
    pub segments: usize,
    /// The number of intact events.
    pub events: u64,
    /// Whether the recording was ended properly. One that is still being written was not.
    pub ended: bool,
    /// The defects found.
    pub findings: Vec<Defect>,
}

/// A defect of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// The index of the segment.
    pub segment: usize,
    /// The offset in the (unpacked) segment, in bytes.
    pub at: u64,
    /// A stable id: `torn`, `damaged`, `number`, `digest`, `link`, `time`, `header`, `after-end`,
    /// `translation`, `unreadable`.
    pub id: &'static str,
    /// A description for people.
    pub text: String,
}

/// The state that is kept from line to line and from segment to segment.
#[derive(Default)]
struct Progress {
    report: VerifyReport,
    /// The expected number of the next event; `None` before the first segment.
    next: Option<u64>,
    /// The digest of the segment before, and its header.
    previous: Option<(String, Header)>,
    header: Option<Header>,
    digest: blake3::Hasher,
    origins: TranslationCheck,
    t: u64,
}

/// Checks all segments of a recording.
#[must_use]
pub fn verify(recording: &Recording) -> VerifyReport {
    let mut progress = Progress::default();
    for path in &recording.segments {
        progress.report.segments += 1;
        let result = open(path).and_then(|reader| progress.segment(reader));
        if let Err(error) = result {
            progress.add(0, "unreadable", format!("{}: {error}", path.display()));
        }
    }
    progress.report
}

/// Checks one segment by itself.
///
/// # Errors
/// When it cannot be read.
pub fn verify_segment<R: Read>(reader: SegmentReader<R>) -> io::Result<VerifyReport> {
    let mut progress = Progress::default();
    progress.report.segments = 1;
    progress.segment(reader)?;
    Ok(progress.report)
}

impl Progress {
    fn segment<R: Read>(&mut self, mut reader: SegmentReader<R>) -> io::Result<()> {
        self.digest = blake3::Hasher::new();
        self.header = None;
        self.report.ended = false;
        let mut first = true;
        for entry in reader.by_ref() {
            let entry = entry?;
            match entry.parsed {
                Parsed::Header(header) if first => self.header(*header),
                Parsed::Header(_) => self.add(entry.at, "header", "there is a second header"),
                Parsed::Event(event) => {
                    if first {
                        self.add(entry.at, "header", "there is no header");
                    }
                    self.event(entry.at, event.n, event.t, &event.kind);
                }
                Parsed::Invalid(fault) => self.add(entry.at, "damaged", fault.to_string()),
            }
            first = false;
            self.digest.update(&entry.line);
        }
        if reader.torn_bytes() > 0 {
            let fault = LineError::Torn {
                bytes: reader.torn_bytes(),
            };
            self.add(reader.at(), "torn", fault.to_string());
        } else if first {
            self.add(0, "header", "the file is empty");
        }
        let digest = self.digest.finalize().to_hex().to_string();
        self.previous = self.header.take().map(|header| (digest, header));
        Ok(())
    }

    fn header(&mut self, header: Header) {
        if let Some((digest, previous)) = self.previous.take() {
            if previous.id != header.id {
                self.add(0, "link", "this segment is of another recording");
            }
            if previous.segment + 1 != header.segment {
                let what = format!(
                    "this is segment {} after segment {}",
                    header.segment, previous.segment
                );
                self.add(0, "link", what);
            } else if header.previous.as_ref() != Some(&digest) {
                self.add(
                    0,
                    "link",
                    "the segment before is not the one this was linked to",
                );
            }
        }
        let next = *self.next.get_or_insert(header.first);
        if next != header.first {
            let what = format!("the segment begins at event {}, not {next}", header.first);
            self.add(0, "number", what);
            self.next = Some(header.first);
        }
        self.header = Some(header);
    }

    fn event(&mut self, at: u64, n: u64, t: u64, kind: &EventKind) {
        self.report.events += 1;
        let next = *self.next.get_or_insert(n);
        if n != next {
            self.add(at, "number", format!("this is event {n}, not {next}"));
        }
        self.next = Some(n.saturating_add(1));
        if self.t > t {
            self.add(
                at,
                "time",
                format!("event {n} is earlier than the one before"),
            );
        }
        self.t = t;
        if self.report.ended && *kind != EventKind::Resume {
            self.add(at, "after-end", format!("event {n} follows the end"));
        }
        self.report.ended = matches!(kind, EventKind::End { rotated: false, .. });
        if let EventKind::Message(message) = kind
            && let Some(fault) = self.origins.check(n, message)
        {
            self.add(at, "translation", fault);
        }
        if let EventKind::End { digest, .. } = kind
            && self.digest.finalize().to_hex().as_str() != digest
        {
            self.add(
                at,
                "digest",
                "the segment is not the one that was ended here",
            );
        }
    }

    fn add(&mut self, at: u64, id: &'static str, text: impl Into<String>) {
        self.report.findings.push(Defect {
            segment: self.report.segments.saturating_sub(1),
            at,
            id,
            text: text.into(),
        });
    }
}
