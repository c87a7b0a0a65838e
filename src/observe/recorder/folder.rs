//! The directory of recordings: a file for each segment, which only our user can read.
//!
//! A file is created once and never opened again for writing. Finished segments are compressed by a
//! thread of low priority, and only while little is recorded: compression costs several times what
//! recording does.

use std::fs::{self, DirBuilder, File};
use std::io::{self, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};
use strum::{Display, EnumMessage, IntoStaticStr, VariantArray};

use rustix::fs::{FlockOperation, Mode, OFlags};

use panics::SharedMutex;
use recording::{PACKED, PLAIN, pack, rfc3339};

/// Maximum number of segments that wait for compression. Further ones stay uncompressed.
const WAITING: usize = 64;

/// The compression level: zstd's own default.
const ZSTD_LEVEL: i32 = 3;

/// The niceness of the compressing thread.
const NICE: i32 = 15;

/// Bytes recorded in one [`PAUSE`] below which segments are compressed.
const QUIET_BYTES: u64 = 1 << 20;
/// The interval at which that is checked.
const PAUSE: Duration = Duration::from_secs(1);

/// How long written data may be lost in a power failure.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes recorded by this program.
static RECORDED: AtomicU64 = AtomicU64::new(0);

/// Bytes recorded by this program so far.
pub(super) fn recorded() -> u64 {
    RECORDED.load(Ordering::Relaxed)
}

/// When written data is synced to the disk. It survives the end of the program, but not that of the
/// machine until then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[derive(Display, EnumMessage, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Durability {
    /// When the operating system decides, which may be half a minute later
    #[default]
    #[strum(serialize = "none")]
    System,
    /// A second later
    #[strum(serialize = "1s")]
    Second,
    /// At each write, for which the recorder waits some milliseconds
    Always,
}

/// Maximum length of a peer's name in a file name.
const MAX_NAME: usize = 24;

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

/// A recording in a directory.
#[derive(Debug)]
pub struct Folder {
    folder: PathBuf,
    name: String,
    /// The current segment.
    segment: PathBuf,
    durability: Durability,
}

/// The file of a segment.
struct SegmentFile {
    file: File,
    durability: Durability,
    synced: Instant,
    /// Something was written since.
    is_unsynced: bool,
}

impl SegmentFile {
    fn new(file: File, durability: Durability) -> Self {
        Self {
            file,
            durability,
            synced: Instant::now(),
            is_unsynced: false,
        }
    }
}

impl Write for SegmentFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        RECORDED.fetch_add(count as u64, Ordering::Relaxed);
        self.is_unsynced = self.durability != Durability::System;
        if self.durability == Durability::Always || self.synced.elapsed() >= SYNC_INTERVAL {
            self.flush()?;
        }
        Ok(count)
    }

    /// Syncs what was written, unless the operating system decides about that.
    fn flush(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_unsynced) {
            self.synced = Instant::now();
            self.file.sync_data()?;
        }
        Ok(())
    }
}

impl Drop for SegmentFile {
    fn drop(&mut self) {
        if let Err(error) = self.flush() {
            tracing::warn!("the end of a recording may be lost in a power failure: {error}");
        }
    }
}

impl Folder {
    /// The recording `id` that began at `began` (microseconds since 1970), in `folder`.
    ///
    /// # Errors
    /// When the directory cannot be created, or other users can write to it.
    pub fn new(folder: &Path, id: &str, began: u64) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let mode = fs::metadata(folder)?.mode();
        if mode & 0o022 != 0 {
            let what = "other users can write to this directory; recordings need a private one (chmod 700)";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        let date = rfc3339(began).replace(['-', ':'], "");
        let short = id.get(..8).unwrap_or(id);
        let name = format!("{date}-{short}");
        Ok(Self {
            segment: folder.join(&name),
            folder: folder.to_owned(),
            name,
            durability: Durability::default(),
        })
    }

    /// Sets when the segments are synced to the disk.
    #[must_use]
    pub const fn with_durability(mut self, how: Durability) -> Self {
        self.durability = how;
        self
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder
            .join(format!("{}.{number:03}{PLAIN}", self.name))
    }

    fn marks_path(&self) -> PathBuf {
        marks_path(&self.segment)
    }
}

impl SegmentStore for Folder {
    fn name_peers(&mut self, peers: [&str; 2]) {
        if let Some((date, id)) = self.name.split_once('-') {
            let peers = peers.map(|name| file_name_part(name, MAX_NAME));
            let peers = peers.iter().filter(|part| !part.is_empty());
            let parts = [date]
                .into_iter()
                .chain(peers.map(String::as_str))
                .chain([id]);
            self.name = parts.collect::<Vec<_>>().join("-");
            self.segment = self.folder.join(&self.name);
        }
    }

    fn create(&mut self, number: u64) -> io::Result<Box<dyn Write + Send>> {
        self.segment = self.path(number);
        let file = create(&self.segment)?;
        // The lock shows other programs that the file is in use; nothing depends on it.
        let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        Ok(Box::new(SegmentFile::new(file, self.durability)))
    }

    fn finish(&mut self, number: u64) {
        static PACKER: OnceLock<SharedMutex<Option<SyncSender<PathBuf>>>> = OnceLock::new();
        let packer = PACKER.get_or_init(|| SharedMutex::new(start_packer()));
        if let Some(packer) = &*packer.lock() {
            // If the queue is full the segment stays uncompressed.
            let _ = packer.try_send(self.path(number));
        }
    }

    fn marks(&mut self) -> Vec<String> {
        let path = self.marks_path();
        let taken = path.with_extension("taken");
        if fs::rename(&path, &taken).is_err() {
            return Vec::new();
        }
        let texts = fs::read_to_string(&taken).unwrap_or_default();
        // It was renamed by us just before.
        let _ = fs::remove_file(&taken);
        texts.lines().map(str::to_owned).collect()
    }

    fn name(&self) -> String {
        self.segment.display().to_string()
    }
}

/// The file for marks that are added to the segment at `path` while it is being written, one per
/// line.
#[must_use]
pub fn marks_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".marks");
    PathBuf::from(name)
}

/// A name as a part of a file name: lower-case letters and digits, joined by dashes, `max` at most.
#[must_use]
pub fn file_name_part(name: &str, max: usize) -> String {
    let words = name.split(|character: char| !character.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut part = words.join("-").to_ascii_lowercase();
    part.truncate(max);
    part.trim_end_matches('-').to_owned()
}

/// Creates a new file that only our user can access.
///
/// # Errors
/// When the file exists, or cannot be created.
pub fn create(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY
        | OFlags::CREATE
        | OFlags::EXCL
        | OFlags::APPEND
        | OFlags::NOFOLLOW
        | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(
        path,
        flags,
        Mode::RUSR | Mode::WUSR,
    )?))
}

fn start_packer() -> Option<SyncSender<PathBuf>> {
    let (sender, receiver) = sync_channel::<PathBuf>(WAITING);
    let thread = std::thread::Builder::new().name("packer".to_owned());
    let packer = move || {
        // On Linux each thread has its own niceness. A failure has no other effect.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
        for path in receiver {
            wait_for_quiet();
            if let Err(error) = pack_file(&path) {
                // The file was deleted meanwhile.
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!("{} stays unpacked: {error}", path.display());
                }
            }
        }
    };
    thread.spawn(packer).ok().map(|_| sender)
}

fn wait_for_quiet() {
    let mut before = recorded();
    loop {
        std::thread::sleep(PAUSE);
        let now = recorded();
        if now - before < QUIET_BYTES {
            return;
        }
        before = now;
    }
}

fn pack_file(path: &Path) -> io::Result<()> {
    let plain = path.as_os_str().to_string_lossy();
    let name = plain.strip_suffix(PLAIN).unwrap_or(&plain);
    let packed = PathBuf::from(format!("{name}{PACKED}"));
    let part = PathBuf::from(format!("{name}{PACKED}.part"));
    let mut to = create(&part)?;
    let done = pack(BufReader::new(File::open(path)?), &mut to, ZSTD_LEVEL)
        .and_then(|()| to.sync_all())
        .and_then(|()| fs::rename(&part, &packed));
    match done {
        Ok(()) => fs::remove_file(path),
        Err(error) => {
            // A partial file is useless.
            let _ = fs::remove_file(&part);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_peer_is_no_path_and_has_a_bound() {
        for (name, part) in [
            ("Zed", "zed"),
            (
                "@zed-industries/claude-code-acp",
                "zed-industries-claude-co",
            ),
            ("../../etc/passwd\0\n", "etc-passwd"),
            ("‹redacted:ab12›", "redacted-ab12"),
            ("Ünï日本 \u{202e}.acpr.zst", "n-acpr-zst"),
            ("…", ""),
        ] {
            assert_eq!(file_name_part(name, MAX_NAME), part);
        }
    }

    #[test]
    fn failed_sync_fails_this_write_or_a_later_one() {
        // This device takes all that is written and cannot be synced.
        let file = |how| SegmentFile::new(File::create("/dev/null").unwrap(), how);
        file(Durability::System).write_all(b"a").unwrap();
        file(Durability::Always).write_all(b"a").unwrap_err();
        let mut to = file(Durability::Second);
        to.write_all(b"a").unwrap();
        while to.write_all(b"b").is_ok() {
            std::thread::sleep(SYNC_INTERVAL / 10);
        }
    }
}
