//! Writes lines to the segments of a recording, or keeps them in memory until something goes wrong.

use std::collections::VecDeque;
use std::io::{self, Write};

use recording::{Header, write};

/// The size of a segment, in bytes, after which the next one begins.
const MAX_SIZE: u64 = 64 << 20;

/// The age of a segment, in microseconds, after which the next one begins.
const MAX_AGE: u64 = 3_600_000_000;

/// The number of bytes kept in memory while nothing has gone wrong.
const RING_BYTES: usize = 16 << 20;

/// The destination of segments.
pub trait SegmentStore: Send {
    /// Names the agent and the client, before the first segment is created; unknown ones are empty.
    fn name_peers(&mut self, peers: [&str; 2]) {
        let _ = peers;
    }
    /// Creates segment `number`, which must not exist. It is flushed once a second.
    ///
    /// # Errors
    /// When that is not possible.
    fn create(&mut self, number: u64) -> io::Result<Box<dyn Write + Send>>;
    /// Called when segment `number` is complete.
    fn finish(&mut self, number: u64) {
        let _ = number;
    }
    /// The marks that other programs have added for the recording, each once.
    fn marks(&mut self) -> Vec<String> {
        Vec::new()
    }
    /// The location, for messages.
    fn name(&self) -> String;
}

/// The segments of one recording.
pub(super) struct SegmentWriter {
    store: Box<dyn SegmentStore>,
    header: Header,
    state: State,
}

enum State {
    /// Lines are kept in memory; each piece has the number of its first event.
    Waiting {
        ring: VecDeque<(u64, Vec<u8>)>,
        bytes: usize,
    },
    Open(Box<Open>),
    /// Writing has failed.
    Failed,
}

struct Open {
    file: Box<dyn Write + Send>,
    /// The BLAKE3 hash of what was written.
    digest: blake3::Hasher,
    size: u64,
    /// When the segment began, in microseconds since the recording did.
    since: u64,
}

impl SegmentWriter {
    /// Begins the first segment, unless `wait` delays it until something goes wrong.
    pub(super) fn begin(
        store: Box<dyn SegmentStore>,
        header: Header,
        wait: bool,
    ) -> io::Result<Self> {
        let state = State::Waiting {
            ring: VecDeque::new(),
            bytes: 0,
        };
        let mut segments = Self {
            store,
            header,
            state,
        };
        if !wait {
            segments.release(0)?;
        }
        Ok(segments)
    }

    /// Whether there is a file.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// The location, for messages.
    pub(super) fn name(&self) -> String {
        self.store.name()
    }

    /// Names the agent and the client, before the first segment is created.
    pub(super) fn name_peers(&mut self, peers: [&str; 2]) {
        self.store.name_peers(peers);
    }

    /// The marks that other programs have added for the recording.
    pub(super) fn marks(&mut self) -> Vec<String> {
        self.store.marks()
    }

    /// Writes the lines kept in memory; all further ones are written directly.
    pub(super) fn release(&mut self, t: u64) -> io::Result<()> {
        let State::Waiting { ring, .. } = &mut self.state else {
            return Ok(());
        };
        let ring = std::mem::take(ring);
        if let Some((first, _)) = ring.front() {
            self.header.first = *first;
        }
        self.state = State::Failed;
        let mut open = self.open(t)?;
        for (_, lines) in ring {
            open.write(&lines)?;
        }
        self.state = State::Open(Box::new(open));
        Ok(())
    }

    /// Adds lines, of which the first is event `first`.
    pub(super) fn write(&mut self, first: u64, lines: &[u8]) -> io::Result<()> {
        match &mut self.state {
            State::Open(open) => {
                let done = open.write(lines);
                if done.is_err() {
                    self.state = State::Failed;
                }
                done
            }
            State::Waiting { ring, bytes } => {
                *bytes += lines.len();
                ring.push_back((first, lines.to_vec()));
                while *bytes > RING_BYTES && ring.len() > 1 {
                    *bytes -= ring.pop_front().map_or(0, |(_, lines)| lines.len());
                }
                Ok(())
            }
            State::Failed => Ok(()),
        }
    }

    /// Syncs what was written.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Open(open) => open.file.flush(),
            _ => Ok(()),
        }
    }

    /// Whether the segment is large or old enough.
    pub(super) fn is_full(&self, t: u64) -> bool {
        match &self.state {
            State::Open(open) => open.size >= MAX_SIZE || t.saturating_sub(open.since) >= MAX_AGE,
            _ => false,
        }
    }

    /// The digest of the segment so far.
    pub(super) fn digest(&self) -> String {
        match &self.state {
            State::Open(open) => open.digest.finalize().to_hex().to_string(),
            _ => String::new(),
        }
    }

    /// Begins the next segment, whose first event will be `first`.
    pub(super) fn rotate(&mut self, first: u64, t: u64) -> io::Result<()> {
        self.header.previous = Some(self.digest());
        self.header.first = first;
        self.state = State::Failed;
        self.store.finish(self.header.segment);
        self.header.segment += 1;
        self.state = State::Open(Box::new(self.open(t)?));
        Ok(())
    }

    fn open(&mut self, t: u64) -> io::Result<Open> {
        let mut open = Open {
            file: self.store.create(self.header.segment)?,
            digest: blake3::Hasher::new(),
            size: 0,
            since: t,
        };
        let mut line = Vec::new();
        write::header(&mut line, &self.header);
        open.write(&line)?;
        Ok(open)
    }
}

impl Open {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.write_all(lines)?;
        self.digest.update(lines);
        self.size += lines.len() as u64;
        Ok(())
    }
}
