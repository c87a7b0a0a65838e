//! `acp-relay inspect follow`: shows a conversation while it is being recorded.
//!
//! It continues in the next segment, and ends with the recording.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::command::{recording, segments_of, unreadable};
use super::page::{Page, Style};
use super::select::Selection;
use crate::cli::console::remark;
use crate::cli::exit;
use crate::jsonrpc::printable;
use crate::recording::filter::Filter;
use crate::recording::{
    Conversation, Entry, Event, Found, Insight, Reader, Recording, Source, What, open, segments,
};

/// Time between two polls of a file that has not grown.
const PAUSE: Duration = Duration::from_millis(50);

/// Polls without a new line after which a run of chunks is shown, although it may continue.
const PATIENCE: u32 = 10;

/// The arguments of `inspect follow`.
#[derive(Debug, Args)]
pub(super) struct Follow {
    #[command(flatten)]
    selection: Selection,
    /// Begin this many events before the current end
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    last: usize,
    /// Show every event separately, also the notes that a frame was forwarded
    #[arg(long)]
    all: bool,
    /// Show whole message bodies
    #[arg(long)]
    bodies: bool,
    /// Print the lines of the recording, each answer with its duration
    #[arg(long)]
    json: bool,
}

/// A recording that grows.
struct Tail {
    recording: Recording,
    segment: usize,
    reader: Reader<Source>,
    /// The last event is the end of the recording.
    over: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Follow) -> ExitCode {
    let path = match newest(&args.selection.file) {
        Ok(path) => path,
        Err(error) => return unreadable(&args.selection.file, &error),
    };
    // A recording that has just begun may still be empty.
    let is_empty = std::fs::metadata(&path).is_ok_and(|data| data.len() == 0);
    let opened = if is_empty {
        segments_of(&path)
    } else {
        recording(&path)
    };
    let recording = match opened {
        Ok(recording) => recording,
        Err(code) => return code,
    };
    let style = Style {
        all: args.all,
        bodies: args.bodies,
        json: args.json,
        whole: false,
    };
    let known = known(&recording);
    let mut page = Page::new(style, known.clone());
    match follow(args, recording, &known, &mut page) {
        Ok(()) => {
            page.end_run();
            page.output.done(exit::SUCCESS)
        }
        Err(error) => unreadable(&path, &error),
    }
}

/// The file, or the latest recording in a folder.
fn newest(path: &Path) -> io::Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let last = segments(path)?
        .pop()
        .and_then(|mut last| last.segments.pop());
    last.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the folder has no recording yet"))
}

/// The exchanges recorded so far. An error is reported later, when the entry is read to be shown.
fn known(recording: &Recording) -> Conversation {
    let mut known = Conversation::default();
    for event in recording.events().map_while(Result::ok) {
        known.see(&event);
    }
    known
}

fn follow(
    args: &Follow,
    recording: Recording,
    known: &Conversation,
    page: &mut Page,
) -> io::Result<()> {
    let filter = args.selection.filter.as_ref();
    let mut insight = Insight::wanted_by(filter);
    let mut tail = Tail::new(recording)?;
    // The last lines of those already recorded; `None` once they have been shown.
    let mut before = Some(VecDeque::new());
    let mut idle = 0;
    while page.output.is_open() {
        let Some(entry) = tail.next()? else {
            for entry in before.take().into_iter().flatten() {
                show(page, entry);
            }
            if tail.over {
                return Ok(());
            }
            idle += 1;
            if idle == PATIENCE {
                page.end_run();
            }
            page.output.flush();
            std::thread::sleep(PAUSE);
            continue;
        };
        idle = 0;
        if let Found::Header(header) = &entry.found {
            insight.begin(header);
        }
        if let Found::Event(event) = &entry.found
            && !picks(filter, event, known, &mut insight)
        {
            page.pass_over(event);
            continue;
        }
        let Some(waiting) = &mut before else {
            show(page, entry);
            continue;
        };
        waiting.push_back(entry);
        if waiting.len() > args.last
            && let Some(Entry {
                found: Found::Event(event),
                ..
            }) = waiting.pop_front()
        {
            page.pass_over(&event);
        }
    }
    Ok(())
}

/// Whether an event matches, as far as is known now.
fn picks(
    filter: Option<&Filter>,
    event: &Event,
    known: &Conversation,
    insight: &mut Insight,
) -> bool {
    let Some(filter) = filter else {
        return true;
    };
    insight.see(event);
    let mut facts = insight.facts(event.n);
    facts.took = facts.took.or_else(|| known.took(event.n));
    filter.matches(event, facts)
}

fn show(page: &mut Page, entry: Entry) {
    if let Some(fault) = page.entry(entry) {
        page.end_run();
        page.output.flush();
        remark(&format!("acp-relay: {}", printable(fault.as_bytes())));
    }
}

impl Tail {
    fn new(recording: Recording) -> io::Result<Self> {
        let first = recording.segments.first().cloned().unwrap_or_default();
        Ok(Self {
            reader: open(&first)?,
            segment: 0,
            over: false,
            recording,
        })
    }

    /// The next line; `None` if there is none yet.
    fn next(&mut self) -> io::Result<Option<Entry>> {
        loop {
            let mut entry = self.reader.next();
            if entry.is_none()
                && let Some(path) = self.later()?
            {
                // More lines may have been written before the next segment was created.
                entry = self.reader.next();
                if entry.is_none() {
                    self.segment += 1;
                    self.reader = open(&path)?;
                    continue;
                }
            }
            let entry = entry.transpose()?;
            if let Some(Entry {
                found: Found::Event(event),
                ..
            }) = &entry
            {
                self.over = matches!(event.what, What::End { rotated: false, .. });
            }
            return Ok(entry);
        }
    }

    /// The next segment, if it exists: then the current one no longer grows.
    fn later(&mut self) -> io::Result<Option<PathBuf>> {
        let Some(path) = self.recording.segments.first() else {
            return Ok(None);
        };
        self.recording = Recording::of(path)?;
        Ok(self.recording.segments.get(self.segment + 1).cloned())
    }
}
