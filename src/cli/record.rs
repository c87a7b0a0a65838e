//! `--record …`: where and how conversations are recorded. `observe::recorder` writes the
//! recordings; `inspect` reads them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::{Args, ValueEnum};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::dialect_options::Dialects;
use super::random::{random, random_hex};
use super::stderr_capture::StderrCapture;
use super::{exit, limits, recordings, stderr};
use crate::cli::variant::variant_of;
use conversation::Note;
use jsonrpc::{Side, parse_duration};
use observe::recorder::{
    Durability, Folder, OverflowPolicy, Pruner, Recorder, RecorderHandle, RecorderStats,
    RecordingOutcome, RecordingPlan, Retention as Bounds, WriterThread,
};
use proxy::StopSignals;
use recording::redact::{Mode, PointerPattern, Redactor};
use recording::{EventKind, PeerInfo, unix_micros};
use transport::{self, Link, PeerKind, Presence};

/// How long a finished conversation waits for its last lines to be written.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an agent has to exit by itself when its conversation can no longer be recorded. Its
/// messages in that time are not recorded, so it is short.
const GRACE: Duration = Duration::from_secs(2);

/// The value of `--record` without a folder.
pub(super) const HOME: &str = "true";

/// Options of recordings.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Recording")]
pub(super) struct RecordArgs {
    /// Record every conversation into a file of its own in this folder; without one, or with `true`,
    /// in the state directory
    #[arg(id = "record.dir", long = "record", value_name = "DIR")]
    #[arg(num_args = 0..=1, default_missing_value = HOME)]
    #[arg(env = "ACP_RELAY_RECORD")]
    pub(super) folder: Option<PathBuf>,
    /// Which recordings are kept
    #[arg(id = "record.mode", long = "record-mode", value_name = "WHICH")]
    #[arg(value_enum, default_value_t)]
    mode: RecordMode,
    /// What to do when recording is slower than the conversation
    #[arg(id = "record.policy", long = "record-policy", value_name = "WHAT")]
    #[arg(value_parser = variant_of::<OverflowPolicy>(), default_value_t)]
    policy: OverflowPolicy,
    /// When recorded data is synced to disk, so that it survives a power failure
    #[arg(id = "record.sync", long = "record-sync", value_name = "WHEN")]
    #[arg(value_parser = variant_of::<Durability>(), default_value_t)]
    sync: Durability,
    /// What is redacted in recordings
    #[arg(id = "record.redact", long = "record-redact", value_name = "WHAT")]
    #[arg(value_parser = variant_of::<Mode>(), default_value_t)]
    redact: Mode,
    /// Also redact the value at this JSON Pointer in messages; `*` matches any one step
    #[arg(id = "record.redact-pointer", long = "record-redact-pointer")]
    #[arg(value_name = "POINTER")]
    pointers: Vec<PointerPattern>,
    /// End a conversation that cannot be recorded, or can no longer be
    #[arg(id = "record.strict", long = "record-strict")]
    strict: bool,
    /// Delete recordings that were last written to longer ago than this, such as 30d or 12h
    #[arg(id = "record.max-age", long = "record-max-age", value_name = "TIME", value_parser = age)]
    max_age: Option<Duration>,
    /// Delete the oldest recordings when those in the folder exceed this in total, such as 10GiB; one
    /// that is being written, or was in the last 2 s, stays. Checked every 10 s, and each second while
    /// much is recorded
    #[arg(id = "record.max-total", long = "record-max-total")]
    #[arg(value_name = "SIZE", value_parser = limits::bytes)]
    max_total: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum RecordMode {
    /// All
    #[default]
    All,
    /// Those in which something failed: the last 16 MiB before it, and everything after
    OnError,
}

/// Creates the recorders of conversations.
#[derive(Debug)]
pub(super) struct RecorderFactory {
    writer: Arc<WriterThread>,
    folder: PathBuf,
    args: RecordArgs,
    redactor: Arc<Redactor>,
}

/// The recording of one conversation.
#[derive(Debug)]
pub(super) struct ActiveRecording {
    stop: StopSignals,
    capture: Arc<StderrCapture>,
    end: oneshot::Receiver<RecordingOutcome>,
}

impl RecordArgs {
    /// Opens the folder for recordings. Errors are printed, and the exit code is returned.
    pub(super) fn open(self) -> Result<RecorderFactory, ExitCode> {
        let Some(folder) = self.folder.clone() else {
            let fault = "recording options need --record";
            return Err(exit::fail(exit::USAGE, &fault));
        };
        check_folder(&folder)?;
        let folder = match folder.as_os_str() == HOME {
            true => recordings::home().map_err(|fault| fault.fail())?,
            false => folder,
        };
        let trouble = |error: std::io::Error| {
            let what = format!("cannot record into {}: {error}", folder.display());
            exit::fail(exit::CANNOT_CREATE, &what)
        };
        // Tried now, so that it fails before a client connects.
        Folder::new(&folder, "", 0).map_err(trouble)?;
        let writer = WriterThread::start().map_err(trouble)?;
        let key = random().map_err(|error| exit::fail(exit::SYSTEM, &error))?;
        let redactor = Redactor::new(self.redact, self.pointers.clone(), key);
        Ok(RecorderFactory {
            writer,
            redactor: Arc::new(redactor),
            args: self,
            folder,
        })
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
        let bounds = Bounds {
            age: self.args.max_age,
            total: self.args.max_total,
        };
        if bounds == Bounds::default() {
            return None;
        }
        let started = Pruner::start(&self.folder, bounds);
        started
            .inspect_err(|error| tracing::warn!("old recordings are not deleted: {error}"))
            .ok()
    }

    /// Whether a conversation that cannot be recorded must end.
    pub(super) const fn is_strict(&self) -> bool {
        self.args.strict
    }

    /// Starts to record a conversation, which `stop` still ends; `label` is the agent's name in the
    /// name of the file.
    pub(super) fn begin(
        &self,
        client: &mut Link,
        agent: &mut Link,
        label: &str,
        dialects: &Dialects,
        stop: &StopSignals,
        tally: Arc<RecorderStats>,
    ) -> Result<(Recorder, ActiveRecording), String> {
        let id = random_hex::<16>().map_err(|error| error.to_string())?;
        let began = unix_micros(SystemTime::now());
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
        let strict = self.args.strict.then(|| (own.clone(), Handle::current()));
        let place = Folder::new(&self.folder, &id, began).map_err(|error| error.to_string())?;
        let plan = RecordingPlan {
            store: Box::new(place.with_durability(self.args.sync)),
            id,
            label: self.redactor.own_text(label).into_owned(),
            client: peer(&client.peer, client_speaks),
            agent: peer(&agent.peer, agent_speaks),
            tables: Some(dialects.tables().to_owned()),
            policy: self.args.policy,
            on_error: self.args.mode == RecordMode::OnError,
            strict: self.args.strict,
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
        let recording = ActiveRecording {
            stop: own,
            capture: Arc::new(StderrCapture::new(remarks)),
            end,
        };
        Ok((recorder, recording))
    }
}

/// Rejects an address: the folder can be left out, so the agent behind `--record` is taken for it.
/// The error is printed, and the exit code is returned.
pub(super) fn check_folder(folder: &Path) -> Result<(), ExitCode> {
    let text = folder.to_string_lossy();
    let port = text.rsplit_once(':').map(|(_, port)| port);
    let is_port = port.is_some_and(|port| port.parse::<u16>().is_ok());
    match is_port || text.contains("://") {
        true => Err(report_agent(&text, "an address")),
        false => Ok(()),
    }
}

/// Prints that the value of `--record` is an agent.
pub(super) fn report_agent(text: &str, what: &str) -> ExitCode {
    let fault = format!(
        "--record {text}: a folder is expected, and this is {what}; put --record behind it or \
         before `--`, or write --record=./DIR"
    );
    exit::fail(exit::USAGE, &fault)
}

/// Records the peers, and when one is lost and comes back.
fn record_links(remarks: &RecorderHandle, client: &mut Link, agent: &mut Link) {
    for (side, link) in [(Side::Client, &mut *client), (Side::Agent, &mut *agent)] {
        let watched = remarks.clone();
        link.guard.watch_presence(Box::new(move |presence| {
            let (event, what) = match presence {
                Presence::Lost(how) => ("lost", how),
                Presence::Restored(from) => ("resumed", from),
            };
            watched.event(EventKind::Link {
                side,
                event: event.to_owned(),
                detail: what.to_owned(),
            });
        }));
    }
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
    let age = parse_duration(text).ok();
    age.filter(|age| !age.is_zero() && age.as_millis().is_multiple_of(60_000))
        .ok_or_else(|| "expected a number of days, hours or minutes: 30d, 12h, 90m".to_owned())
}
