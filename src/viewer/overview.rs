//! The overview: a row for each recording.
//!
//! A scan of the folder finds names, sizes and times, and reads the headers for a moment. One thread
//! then reads whole recordings, the newest first, for what else a row shows, and again when they have
//! changed. It works while a page asks. Each change of a row has a number, so that a page requests
//! what has changed since.

use std::cmp::Reverse;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::bounded::each_line;
use super::library::RecordingLibrary;
use super::reader_thread::is_written;
use analysis::lint::{Linter, Severity};
use jsonrpc::{Kind, Side};
use panics::{self, Place};
use recording::{
    Header, LineError, NotRecording, Parsed, RecordedEvent, Recording, Summary, peer_name,
    unix_micros,
};

/// Bytes of a recording that are read for its row, and for its header alone.
const MAX_READ: u64 = 64 << 20;
const MAX_HEAD: u64 = 16 << 10;

/// Rows in one answer.
const MAX_ROWS: usize = 1_000;

/// Time that one scan reads headers.
const HEAD_BUDGET: Duration = Duration::from_millis(250);

/// Minimum time between two scans, and between two readings of a recording; each is also at least
/// ten times as long as the scan or the reading took.
const PAUSE: Duration = Duration::from_secs(1);

/// Time between two looks at an empty queue.
const IDLE: Duration = Duration::from_millis(150);

/// How long the thread works after a page has asked.
const INTEREST: Duration = Duration::from_secs(60);

/// The rows of a library.
#[derive(Debug)]
pub(super) struct Overview {
    library: Arc<RecordingLibrary>,
    table: Mutex<Table>,
    /// The number of the last change, which is made while the table is locked.
    pub(super) revision: watch::Sender<u64>,
    is_kept: AtomicBool,
}

#[derive(Debug, Default)]
struct Table {
    /// By the index of the recording.
    listed: Vec<Listed>,
    /// When a page has asked last.
    asked: Option<Instant>,
    /// Why the folder cannot be read.
    error: Option<String>,
}

/// What changes when a recording changes: its length, and when it was written to last; `None` if no
/// file of it is there.
type Stamp = (u64, Option<SystemTime>);

#[derive(Debug, Default)]
struct Listed {
    row: Row,
    stamp: Stamp,
    /// The stamp with which it was read.
    read: Option<Stamp>,
    has_header: bool,
    /// It is not read again before.
    due: Option<Instant>,
    revision: u64,
}

/// A row as the page gets it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Row {
    id: usize,
    name: String,
    bytes: u64,
    /// When it began, in microseconds since 1970; until that is known, when it was changed.
    time: u64,
    client: String,
    agent: String,
    /// A process writes it.
    writing: bool,
    /// Its files are not there any more.
    gone: bool,
    fault: Option<String>,
    #[serde(flatten)]
    facts: Option<Facts>,
}

/// What is known of a recording that was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Facts {
    turns: u64,
    errors: u64,
    findings: usize,
    /// The worst among the findings.
    severity: Option<Severity>,
    /// Microseconds.
    length: u64,
    /// It is longer than what was read.
    partial: bool,
}

impl Overview {
    pub(super) fn new(library: Arc<RecordingLibrary>) -> Self {
        Self {
            library,
            table: Mutex::default(),
            revision: watch::Sender::default(),
            is_kept: AtomicBool::new(false),
        }
    }

    /// The rows that changed after the change `after`, of all 0; not more than a page takes at once.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) fn changes(self: &Arc<Self>, after: u64) -> io::Result<Value> {
        self.table.lock().asked = Some(Instant::now());
        if !self.is_kept.swap(true, Ordering::Relaxed) {
            self.scan();
            let weak = Arc::downgrade(self);
            let thread = thread::Builder::new().name("overview".to_owned());
            thread.spawn(move || panics::catch(Place::Viewer, || keep(&weak)))?;
        }
        let table = self.table.lock();
        if let Some(error) = &table.error {
            return Err(io::Error::other(error.clone()));
        }
        let mut changed: Vec<&Listed> = (table.listed.iter())
            .filter(|listed| listed.revision > after)
            .collect();
        changed.sort_by_key(|listed| listed.revision);
        let more = changed.len() > MAX_ROWS;
        changed.truncate(MAX_ROWS);
        let revision = match changed.last() {
            Some(last) if more => last.revision,
            _ => *self.revision.borrow(),
        };
        let rows: Vec<&Row> = changed.into_iter().map(|listed| &listed.row).collect();
        let folder = self.library.folder();
        Ok(json!({"revision": revision, "more": more, "folder": folder, "rows": rows}))
    }

    /// The indices of the recordings, the newest first.
    pub(super) fn newest_first(&self) -> Vec<usize> {
        let table = self.table.lock();
        let mut rows: Vec<&Row> = table.listed.iter().map(|listed| &listed.row).collect();
        rows.retain(|row| !row.gone);
        rows.sort_by_key(|row| Reverse(row.time));
        rows.into_iter().map(|row| row.id).collect()
    }

    /// Compares the rows with the files.
    #[expect(clippy::indexing_slicing, reason = "indices it has made")]
    pub(super) fn scan(&self) {
        let begun = Instant::now();
        let mut table = self.table.lock();
        let found = self.library.list();
        table.error = found.as_ref().err().map(ToString::to_string);
        let found = found.unwrap_or_default();
        let mut to_show = Vec::new();
        for (id, recording) in found.iter().enumerate() {
            let is_new = id == table.listed.len();
            if is_new {
                table.listed.push(Listed::default());
                let row = &mut table.listed[id].row;
                (row.id, row.name) = (id, recording.name.clone());
            }
            let listed = &mut table.listed[id];
            let is_changed = listed.see(recording) || is_new;
            if is_changed || listed.is_headless() {
                to_show.push((id, is_changed));
            }
        }
        // The newest ones come first.
        to_show.sort_by_key(|(id, _)| Reverse(table.listed[*id].row.time));
        for (id, mut is_changed) in to_show {
            let listed = &mut table.listed[id];
            if listed.is_headless()
                && begun.elapsed() < HEAD_BUDGET
                && let Some(header) = header(&found[id])
            {
                listed.has_header = true;
                listed.row.begin(&header);
                is_changed = true;
            }
            if is_changed {
                self.announce(listed);
            }
        }
    }

    /// Reads the newest recording that has changed since it was read. Returns whether there is one.
    #[expect(clippy::indexing_slicing, reason = "indices it has made")]
    fn read_next(&self) -> bool {
        let begun = Instant::now();
        let table = self.table.lock();
        let unread = table.listed.iter().filter(|listed| listed.is_due(begun));
        let Some(listed) = unread.max_by_key(|listed| listed.row.time) else {
            return false;
        };
        let (mut row, stamp) = (listed.row.clone(), listed.stamp);
        drop(table);
        if let Some(recording) = self.library.recording(row.id) {
            let read = panics::catch(Place::Viewer, || row.read(&recording));
            if read.is_none() {
                row.fault = Some("a fault of the viewer; the log has the place".to_owned());
            }
        }
        let mut table = self.table.lock();
        let listed = &mut table.listed[row.id];
        listed.read = Some(stamp);
        listed.due = Some(Instant::now() + PAUSE.max(10 * begun.elapsed()));
        // A scan may have changed these meanwhile.
        (row.bytes, row.gone) = (listed.row.bytes, listed.row.gone);
        if row != listed.row {
            listed.row = row;
            self.announce(listed);
        }
        true
    }

    /// Gives a change of a row its number.
    fn announce(&self, listed: &mut Listed) {
        self.revision.send_modify(|last| *last += 1);
        listed.revision = *self.revision.borrow();
    }
}

impl Listed {
    /// Notes the files of its recording. Returns whether the row has changed.
    fn see(&mut self, recording: &Recording) -> bool {
        let stamp = stamp(recording);
        if self.row.writing
            && self.stamp == stamp
            && let Some(last) = recording.segments.last()
            && !is_written(last, self.row.time)
        {
            // Its end is known only now.
            self.read = None;
        }
        let gone = stamp.1.is_none();
        if self.stamp == stamp && self.row.gone == gone {
            return false;
        }
        (self.stamp, self.row.gone, self.row.bytes) = (stamp, gone, stamp.0);
        if !self.has_header {
            self.row.time = stamp.1.map_or(0, unix_micros);
        }
        true
    }

    /// Whether nothing is known of its header, which may be there.
    fn is_headless(&self) -> bool {
        !self.has_header && !self.row.gone && self.read.is_none()
    }

    /// Whether it has to be read now.
    fn is_due(&self, now: Instant) -> bool {
        let is_changed = self.read != Some(self.stamp) && !self.row.gone;
        is_changed && self.due.is_none_or(|due| now >= due)
    }
}

impl Row {
    fn begin(&mut self, header: &Header) {
        self.time = header.began;
        self.client.clone_from(&header.client.name);
        self.agent.clone_from(&header.agent.name);
    }

    /// Reads its recording.
    fn read(&mut self, recording: &Recording) {
        let (mut summary, mut linter) = (Summary::default(), Linter::default());
        let (mut names, mut misfit) = ([None, None], None);
        let whole = each_line(recording, MAX_READ, |entry| {
            summary.add(&entry.parsed);
            match &entry.parsed {
                Parsed::Header(header) => linter.begin(header),
                Parsed::Event(event) => {
                    linter.add(event);
                    note_name(&mut names, event);
                }
                Parsed::Invalid(fault) => {
                    linter.skip_line();
                    misfit.get_or_insert_with(|| match fault {
                        LineError::Newer(_) => fault.to_string(),
                        _ => NotRecording::OtherFormat.to_string(),
                    });
                }
            }
            true
        });
        let header = summary.header.as_ref();
        let began = header.map_or(self.time, |header| header.began);
        let last = recording.segments.last();
        self.writing = !summary.has_ended() && last.is_some_and(|last| is_written(last, began));
        let findings = match self.writing {
            true => linter.findings().to_vec(),
            false => linter.end(),
        };
        if let Some(header) = header {
            self.begin(header);
            // Strings may have been replaced by their lengths.
            if matches!(header.redaction.mode.as_str(), "full" | "default") {
                let [client, agent] = names;
                for (own, name) in [(&mut self.client, client), (&mut self.agent, agent)] {
                    *own = name.unwrap_or_else(|| std::mem::take(own));
                }
            }
        }
        let is_recording = header.is_some() || summary.events > 0;
        self.fault = match (&whole, summary.damaged) {
            (Err(error), _) => Some(error.to_string()),
            (_, 0) if is_recording || self.writing => None,
            (Ok(true), 0) => Some(NotRecording::Empty.to_string()),
            (_, 0) => Some(NotRecording::OtherFormat.to_string()),
            (_, _) if !is_recording => misfit,
            (_, 1) => Some("1 damaged line".to_owned()),
            (_, damaged) => Some(format!("{damaged} damaged lines")),
        };
        self.facts = is_recording.then(|| Facts {
            turns: summary.turns,
            errors: summary.errors,
            findings: findings.len(),
            severity: findings.iter().map(|finding| finding.rule.severity).max(),
            length: summary.lasted,
            partial: whole.is_ok_and(|whole| !whole),
        });
    }
}

/// Reads recordings until the viewer ends.
fn keep(overview: &Weak<Overview>) {
    let mut next_scan = Instant::now() + PAUSE;
    while let Some(overview) = overview.upgrade() {
        let asked = overview.table.lock().asked;
        let is_wanted = asked.is_some_and(|asked| asked.elapsed() < INTEREST);
        if is_wanted && Instant::now() >= next_scan {
            let begun = Instant::now();
            overview.scan();
            next_scan = Instant::now() + PAUSE.max(10 * begun.elapsed());
        }
        let has_read = is_wanted && overview.read_next();
        drop(overview);
        if !has_read {
            thread::sleep(IDLE);
        }
    }
}

fn stamp(recording: &Recording) -> Stamp {
    let found = (recording.segments.iter()).filter_map(|path| fs::metadata(path).ok());
    found.fold((0, None), |(length, changed), data| {
        let own = data.modified().unwrap_or(UNIX_EPOCH);
        (length + data.len(), changed.max(Some(own)))
    })
}

/// The header, if it is where it should be.
fn header(recording: &Recording) -> Option<Header> {
    let mut found = None;
    let _ = each_line(recording, MAX_HEAD, |entry| {
        if let Parsed::Header(header) = &entry.parsed {
            found = Some((**header).clone());
        }
        false
    });
    found
}

/// Notes the name that a peer gives itself in `initialize`: the client's, the agent's.
fn note_name(names: &mut [Option<String>; 2], event: &RecordedEvent) {
    let Some(message) = event.message() else {
        return;
    };
    let from = match message.kind {
        Some(Kind::Request) => Side::Client,
        Some(Kind::Result) => Side::Agent,
        _ => return,
    };
    let name = from.of_mut(names);
    if name.is_none() && message.method.as_deref() == Some("initialize") {
        *name = (message.body.json()).and_then(|body| peer_name(from, &body, &["title", "name"]));
    }
}
