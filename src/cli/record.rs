//! `--record …`: where and how conversations are recorded. `observe::recorder` writes the
//! recordings; `inspect` reads them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::dialect_options::Dialects;
use super::random::random;
use super::stderr_capture::StderrCapture;
use super::{exit, limits, stderr};
use crate::conversation::Note;
use crate::jsonrpc::Side;
use crate::observe::recorder::{
    Durability, Folder, OverflowPolicy, Pruner, Recorder, RecorderHandle, RecorderStats,
    RecordingOutcome, RecordingPlan, Retention as Bounds, WriterThread,
};
use crate::proxy::StopSignals;
use crate::recording::redact::{Mode, PointerPattern, Redactor};
use crate::recording::{EventKind, PeerInfo};
use crate::transport::{self, Link, PeerKind, Presence};

/// How long a finished conversation waits for its last lines to be written.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an agent has to exit by itself when its conversation can no longer be recorded. Its
/// messages in that time are not recorded, so it is short.
const GRACE: Duration = Duration::from_secs(2);

/// Options of recordings.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Recording")]
pub(super) struct RecordArgs {
    /// Record every conversation into a file of its own in this folder
    #[arg(long, value_name = "DIR", env = "ACP_RELAY_RECORD")]
    record: Option<PathBuf>,
    /// Which recordings are kept [default: all]
    #[arg(long, value_enum, value_name = "WHICH")]
    record_mode: Option<RecordMode>,
    /// What to do when recording is slower than the conversation [default: lossless]
    #[arg(long, value_enum, value_name = "WHAT")]
    record_policy: Option<RecordPolicy>,
    /// When recorded data is synced to disk, so that it survives a power failure [default: none]
    #[arg(long, value_enum, value_name = "WHEN")]
    record_sync: Option<RecordSync>,
    /// What is redacted in recordings [default: default]
    #[arg(long, value_enum, value_name = "WHAT")]
    record_redact: Option<RecordRedact>,
    /// Also redact the value at this JSON Pointer in messages; `*` matches any one step
    #[arg(long, value_name = "POINTER")]
    record_redact_pointer: Vec<PointerPattern>,
    /// End a conversation that cannot be recorded, or can no longer be
    #[arg(long)]
    record_strict: bool,
    /// Delete recordings that were last written to longer ago than this, such as 30d or 12h
    #[arg(long, value_name = "TIME", value_parser = age)]
    record_max_age: Option<Duration>,
    /// Delete the oldest recordings when those in the folder exceed this in total, such as 10GiB
    #[arg(long, value_name = "SIZE", value_parser = limits::bytes)]
    record_max_total: Option<u64>,
}

/// The same options, from the command line and the configuration file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RecordPart {
    pub(super) folder: Option<PathBuf>,
    pub(super) mode: Option<RecordMode>,
    pub(super) policy: Option<RecordPolicy>,
    pub(super) sync: Option<RecordSync>,
    pub(super) redact: Option<RecordRedact>,
    pub(super) pointers: Vec<PointerPattern>,
    pub(super) strict: Option<bool>,
    pub(super) max_age: Option<Duration>,
    pub(super) max_total: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum RecordMode {
    /// All
    #[default]
    All,
    /// Those in which something failed: the last 16 MiB before it, and everything after
    OnError,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum RecordPolicy {
    /// The conversation waits
    #[default]
    Lossless,
    /// Data that does not fit is dropped and counted
    Lossy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum RecordSync {
    /// When the operating system decides, which may be half a minute later
    #[default]
    None,
    /// A second later, by a separate thread
    #[value(name = "1s")]
    Second,
    /// At each write, for which the recorder waits some milliseconds
    Always,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum RecordRedact {
    /// Nothing: secrets are recorded
    Full,
    /// Secrets
    #[default]
    Default,
    /// All text; lengths and hashes are kept
    Structure,
    /// All bodies
    Meta,
}

/// Creates the recorders of conversations.
#[derive(Debug)]
pub(super) struct RecorderFactory {
    writer: Arc<WriterThread>,
    folder: PathBuf,
    keep: RecordMode,
    policy: OverflowPolicy,
    durability: Durability,
    redactor: Arc<Redactor>,
    strict: bool,
    /// How much of the recordings is kept.
    bounds: Bounds,
}

/// The recording of one conversation.
#[derive(Debug)]
pub(super) struct ActiveRecording {
    stop: StopSignals,
    capture: Arc<StderrCapture>,
    end: oneshot::Receiver<RecordingOutcome>,
}

impl RecordArgs {
    /// These options, with those of `file` where one is not given.
    pub(super) fn with_defaults(&self, file: &RecordPart) -> RecordPart {
        let pointers = [&file.pointers[..], &self.record_redact_pointer].concat();
        RecordPart {
            folder: self.record.clone().or_else(|| file.folder.clone()),
            mode: self.record_mode.or(file.mode),
            policy: self.record_policy.or(file.policy),
            sync: self.record_sync.or(file.sync),
            redact: self.record_redact.or(file.redact),
            pointers,
            strict: self.record_strict.then_some(true).or(file.strict),
            max_age: self.record_max_age.or(file.max_age),
            max_total: self.record_max_total.or(file.max_total),
        }
    }
}

impl RecordPart {
    /// Opens the folder for recordings, if there is one. Errors are printed, and the exit code is
    /// returned.
    pub(super) fn open(self) -> Result<Option<RecorderFactory>, ExitCode> {
        let Some(folder) = self.folder else {
            if self == Self::default() {
                return Ok(None);
            }
            let fault = "recording options need a folder: --record DIR";
            return Err(exit::fail(exit::USAGE, &fault));
        };
        let trouble = |error: std::io::Error| {
            let what = format!("cannot record into {}: {error}", folder.display());
            exit::fail(exit::CANNOT_CREATE, &what)
        };
        // Tried now, so that it fails before a client connects.
        Folder::new(&folder, "", 0).map_err(trouble)?;
        let writer = WriterThread::start().map_err(trouble)?;
        let key = random().ok_or_else(|| {
            exit::fail(
                exit::SYSTEM,
                &"the system has no random numbers to hash secrets with",
            )
        })?;
        Ok(Some(RecorderFactory {
            writer,
            keep: self.mode.unwrap_or_default(),
            policy: match self.policy.unwrap_or_default() {
                RecordPolicy::Lossless => OverflowPolicy::Lossless,
                RecordPolicy::Lossy => OverflowPolicy::Lossy,
            },
            durability: match self.sync.unwrap_or_default() {
                RecordSync::None => Durability::System,
                RecordSync::Second => Durability::Second,
                RecordSync::Always => Durability::Always,
            },
            redactor: Arc::new(Redactor::new(
                self.redact.unwrap_or_default().mode(),
                self.pointers,
                key,
            )),
            strict: self.strict == Some(true),
            bounds: Bounds {
                age: self.max_age,
                total: self.max_total,
            },
            folder,
        }))
    }
}

impl RecordRedact {
    pub(super) const fn mode(self) -> Mode {
        match self {
            Self::Full => Mode::Full,
            Self::Default => Mode::Default,
            Self::Structure => Mode::Structure,
            Self::Meta => Mode::Meta,
        }
    }
}

impl RecorderFactory {
    /// The folder of the recordings.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Prints where recordings are. An editor starts `connect` in a folder of its own choice.
    pub(super) fn announce(&self, is_connect: bool) {
        let at = std::path::absolute(&self.folder).unwrap_or_else(|_| self.folder.clone());
        let depends = match is_connect && self.folder.is_relative() {
            true => {
                "; --record is a relative path, so this depends on the folder in which the \
                     editor starts acp-relay: give an absolute path"
            }
            false => "",
        };
        stderr::print(&format!(
            "acp-relay: recording into {}{depends}",
            at.display()
        ));
    }

    /// Starts to delete old recordings, if that is configured; it stops when the returned value is
    /// dropped.
    pub(super) fn sweep(&self) -> Option<Pruner> {
        if self.bounds == Bounds::default() {
            return None;
        }
        let started = Pruner::start(&self.folder, self.bounds);
        started
            .inspect_err(|error| tracing::warn!("old recordings are not deleted: {error}"))
            .ok()
    }

    /// Whether a conversation that cannot be recorded must end.
    pub(super) const fn is_strict(&self) -> bool {
        self.strict
    }

    /// Starts to record a conversation, which `stop` still ends.
    pub(super) fn begin(
        &self,
        client: &mut Link,
        agent: &mut Link,
        dialects: &Dialects,
        stop: &StopSignals,
        tally: Arc<RecorderStats>,
    ) -> Result<(Recorder, ActiveRecording), String> {
        let id = random::<16>().ok_or("the system has no random numbers to name it")?;
        let id = data_encoding::HEXLOWER.encode(&id);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let began = now.map_or(0, |now| u64::try_from(now.as_micros()).unwrap_or(0));
        let [client_speaks, agent_speaks] = dialects.for_client(&client.peer).names();
        let peer = |peer: &transport::Peer, dialect| PeerInfo {
            name: peer.name.clone(),
            dialect,
        };
        let own = StopSignals {
            requested: stop.requested.child_token(),
            forced: stop.forced.child_token(),
            unrecorded: CancellationToken::new(),
        };
        let (sender, end) = oneshot::channel();
        let strict = self.strict.then(|| (own.clone(), Handle::current()));
        let place = Folder::new(&self.folder, &id, began);
        let plan = RecordingPlan {
            store: Box::new(
                place
                    .map_err(|error| error.to_string())?
                    .with_durability(self.durability),
            ),
            id,
            client: peer(&client.peer, client_speaks),
            agent: peer(&agent.peer, agent_speaks),
            tables: Some(dialects.tables().to_owned()),
            policy: self.policy,
            on_error: self.keep == RecordMode::OnError,
            strict: self.strict,
            redactor: Arc::clone(&self.redactor),
            stats: tally,
            on_failure: Box::new(move || {
                if let Some((stop, runtime)) = strict {
                    end_unrecorded(stop, &runtime);
                }
            }),
            on_end: Box::new(move |outcome| {
                // The receiver is dropped if the conversation was cut off.
                let _ = sender.send(outcome);
            }),
        };
        let (recorder, remarks) = Recorder::open(&self.writer, plan)
            .map_err(|error| format!("{}: {error}", self.folder.display()))?;
        record_links(&remarks, client, agent);
        let capture = Arc::new(StderrCapture::new(remarks));
        let sink = Arc::clone(&capture);
        agent
            .guard
            .capture_stderr(Box::new(move |bytes| sink.push(bytes)));
        let recording = ActiveRecording {
            stop: own,
            capture,
            end,
        };
        Ok((recorder, recording))
    }
}

/// Records the peers, and when the client is lost and resumes.
fn record_links(remarks: &RecorderHandle, client: &mut Link, agent: &Link) {
    let watched = remarks.clone();
    client.guard.watch_presence(Box::new(move |presence| {
        let (event, what) = match presence {
            Presence::Lost(how) => ("lost", how),
            Presence::Restored(from) => ("resumed", from),
        };
        watched.event(EventKind::Link {
            side: Side::Client,
            event: event.to_owned(),
            detail: what.to_owned(),
        });
    }));
    for (side, peer) in [(Side::Client, &client.peer), (Side::Agent, &agent.peer)] {
        remarks.event(EventKind::Link {
            side,
            event: "open".to_owned(),
            detail: peer.name.clone(),
        });
    }
    if agent.peer.kind == PeerKind::Child {
        remarks.event(EventKind::Process {
            event: "start".to_owned(),
            detail: agent.peer.name.clone(),
        });
    }
}

/// Ends a conversation that must be recorded and no longer can be; the agent gets [`GRACE`].
fn end_unrecorded(stop: StopSignals, runtime: &Handle) {
    stop.unrecorded.cancel();
    stop.requested.cancel();
    runtime.spawn(async move {
        tokio::time::sleep(GRACE).await;
        stop.forced.cancel();
    });
}

impl ActiveRecording {
    /// Ends the conversation.
    pub(super) const fn stop(&self) -> &StopSignals {
        &self.stop
    }

    /// Receives the agent's stderr.
    pub(super) fn capture(&self) -> Arc<StderrCapture> {
        Arc::clone(&self.capture)
    }

    /// Waits until everything is written; returns a note if it could not be.
    pub(super) async fn end(self) -> Option<Note> {
        let why = match tokio::time::timeout(END_TIMEOUT, self.end).await {
            Ok(Ok(RecordingOutcome::Kept(path))) => {
                tracing::info!("recorded in {path}");
                return None;
            }
            Ok(Ok(RecordingOutcome::Dropped)) => {
                tracing::debug!("no error occurred; the recording is not kept");
                return None;
            }
            // The recorder has logged this error.
            Ok(Ok(RecordingOutcome::Failed(why))) => why,
            Ok(Err(_)) => "the recorder has stopped".to_owned(),
            Err(_) => {
                let why = "the end of the recording could not be written in time";
                tracing::error!("{why}");
                why.to_owned()
            }
        };
        Some(Note::Unrecorded { why })
    }
}

/// Parses the greatest age of a recording: `30d`, `12h`, `90m`.
///
/// # Errors
/// What was expected.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    let units = [('d', 86_400), ('h', 3600), ('m', 60)];
    let read = units.into_iter().find_map(|(unit, seconds)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(seconds).filter(|all| *all > 0)
    });
    let expected = "expected a number of days, hours or minutes: 30d, 12h, 90m";
    read.map(Duration::from_secs)
        .ok_or_else(|| expected.to_owned())
}

/// Formats an age as [`age`] parses it.
pub(super) fn format_age(age: Duration) -> String {
    let seconds = age.as_secs();
    match () {
        () if seconds.is_multiple_of(86_400) => format!("{}d", seconds / 86_400),
        () if seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        () => format!("{}m", seconds / 60),
    }
}
