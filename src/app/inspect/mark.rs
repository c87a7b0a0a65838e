//! `acp-relay inspect mark`: a place in a recording that somebody wants to find again.
//!
//! A recording that is being written has one writer, which takes marks up from a file beside it.
//! One that is over, or was torn, is added to: nothing in it is changed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use rustix::fs::FlockOperation;
use serde_json::{Value, json};

use super::command::{recording, unreadable};
use crate::app::console::print;
use crate::app::{cli, exit};
use crate::recording::write::{self, Stamp};
use crate::recording::{Found, PACKED, Reader, What};
use crate::tap::recorder::wishes;

/// What `inspect mark` is asked for.
#[derive(Debug, Args)]
pub(super) struct Mark {
    /// The recording; of one in several segments, any of them
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What is worth remembering here
    #[arg(value_name = "TEXT")]
    text: String,
    /// Say what was done as JSON: file, by (mark or writer), n (by mark)
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn run(args: &Mark) -> ExitCode {
    let last = match recording(&args.file) {
        Ok(recording) => recording.segments.last().cloned(),
        Err(code) => return code,
    };
    let last = last.unwrap_or_else(|| args.file.clone());
    if last.to_string_lossy().ends_with(PACKED) {
        let what = "the last segment is packed, and nothing is added to those";
        return cli::fail(exit::DATA, &format!("{}: {what}", last.display()));
    }
    match mark(&last, &args.text) {
        Ok(None) if args.json => said(&last, json!({"by": "writer"})),
        Ok(Some(n)) if args.json => said(&last, json!({"by": "mark", "n": n})),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => unreadable(&last, &error),
    }
}

fn said(file: &Path, mut what: Value) -> ExitCode {
    what["file"] = file.to_string_lossy().into();
    print(&what.to_string(), exit::SUCCESS)
}

/// The number of the mark's event; none when the recording has a writer, who will give it one.
fn mark(path: &Path, text: &str) -> io::Result<Option<u64>> {
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    let lock = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
    if lock.is_err() {
        return wish(path, text).map(|()| None);
    }
    resume(file, text).map(Some)
}

/// Leaves a mark for the writer.
fn wish(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(wishes(path))?;
    file.write_all(format!("{}\n", text.replace(['\n', '\r'], " ")).as_bytes())
}

/// Adds a mark to a recording that nobody writes.
fn resume(mut file: File, text: &str) -> io::Result<u64> {
    let mut reader = Reader::new(&file);
    let mut last = Stamp::default();
    for entry in reader.by_ref() {
        match entry?.found {
            Found::Event(event) => {
                last = Stamp {
                    n: event.n,
                    t: event.t,
                    w: event.w,
                }
            }
            Found::Header(header) => {
                last.n = header.first - 1;
                last.w = header.began;
            }
            Found::Broken(_) => {}
        }
    }
    let torn = reader.torn() > 0;
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(0));
    let mut out = Vec::new();
    if torn {
        out.push(b'\n');
    }
    for what in [What::Resume, What::Mark(text.to_owned())] {
        last.n += 1;
        // The recording's own clock has stopped.
        last.w = now;
        write::event(&mut out, last, &what);
    }
    file.write_all(&out)?;
    Ok(last.n)
}
