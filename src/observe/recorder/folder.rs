//! Where recordings are kept: a folder, and in it a file for each segment that only we can read.
//!
//! A file is made once and never opened again by us for writing. Segments that are done are packed
//! by a thread that yields to all others, and only while little is recorded: packing costs several
//! times what recording does. Not here: what is in them.

use std::fs::{self, DirBuilder, File};
use std::io::{self, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, Mode, OFlags};

use super::durable::{Durability, Durable};
use crate::recording::{PACKED, PLAIN, calendar, pack};

/// Segments that may wait to be packed. Beyond it: they stay as they are.
const WAITING: usize = 64;

/// How hard segments are packed: zstd's own default.
const LEVEL: i32 = 3;

/// How far the thread that packs stands back.
const NICE: i32 = 15;

/// Bytes recorded in a [`PAUSE`] that are few enough to pack meanwhile.
const LITTLE: u64 = 1 << 20;
/// As above.
const PAUSE: Duration = Duration::from_secs(1);

/// Bytes recorded by this program.
static RECORDED: AtomicU64 = AtomicU64::new(0);

/// Where segments go.
pub trait Place: Send {
    /// Makes segment `number`, which must not be there.
    ///
    /// # Errors
    /// When that is not possible.
    fn begin(&mut self, number: u64) -> io::Result<Box<dyn Write + Send>>;
    /// Nothing more is written to segment `number`.
    fn seal(&mut self, number: u64) {
        let _ = number;
    }
    /// Texts that others want in the recording, each once.
    fn marks(&mut self) -> Vec<String> {
        Vec::new()
    }
    /// Where it is, for a person.
    fn name(&self) -> String;
}

/// A recording in a folder.
#[derive(Debug)]
pub struct Folder {
    folder: PathBuf,
    name: String,
    /// The segment at hand.
    segment: PathBuf,
    durability: Durability,
}

/// The file of a segment.
struct Segment(Durable<File>);

impl Write for Segment {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.0.write(bytes)?;
        RECORDED.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Folder {
    /// The recording called `id` that began at `began` (microseconds since 1970), in `folder`.
    ///
    /// # Errors
    /// When the folder cannot be made, or others may write to it.
    pub fn new(folder: &Path, id: &str, began: u64) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let mode = fs::metadata(folder)?.mode();
        if mode & 0o022 != 0 {
            let what =
                "others may write to this folder; recordings want one of their own (chmod 700)";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        let date = calendar(began).replace(['-', ':'], "");
        let short = id.get(..8).unwrap_or(id);
        let name = format!("{date}-{short}");
        Ok(Self {
            segment: folder.join(&name),
            folder: folder.to_owned(),
            name,
            durability: Durability::default(),
        })
    }

    /// The same, of which the disk is told to keep what is written.
    #[must_use]
    pub const fn kept(mut self, how: Durability) -> Self {
        self.durability = how;
        self
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder
            .join(format!("{}.{number:03}{PLAIN}", self.name))
    }

    fn wishes(&self) -> PathBuf {
        wishes(&self.segment)
    }
}

impl Place for Folder {
    fn begin(&mut self, number: u64) -> io::Result<Box<dyn Write + Send>> {
        self.segment = self.path(number);
        let file = create(&self.segment)?;
        // Who wants to add to it can see that it is being written; nothing depends on it.
        let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        Ok(Box::new(Segment(Durable::new(file, self.durability))))
    }

    fn seal(&mut self, number: u64) {
        static PACKER: OnceLock<Mutex<Option<SyncSender<PathBuf>>>> = OnceLock::new();
        let packer = PACKER.get_or_init(|| Mutex::new(start_packer()));
        if let Some(packer) = &*packer.lock() {
            // What finds no room stays as it is.
            let _ = packer.try_send(self.path(number));
        }
    }

    fn marks(&mut self) -> Vec<String> {
        let path = self.wishes();
        let taken = path.with_extension("taken");
        if fs::rename(&path, &taken).is_err() {
            return Vec::new();
        }
        let texts = fs::read_to_string(&taken).unwrap_or_default();
        // It was renamed by us a moment ago.
        let _ = fs::remove_file(&taken);
        texts.lines().map(str::to_owned).collect()
    }

    fn name(&self) -> String {
        self.segment.display().to_string()
    }
}

/// The file in which marks for the segment at `path` wait while it is being written, one a line.
#[must_use]
pub fn wishes(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".marks");
    PathBuf::from(name)
}

/// Makes a file that was not there, for us alone.
///
/// # Errors
/// When there is something of that name, or none can be made.
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
        // On Linux a thread has a niceness of its own. Without it packing is only less polite.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
        for path in receiver {
            wait_for_quiet();
            if let Err(error) = pack_file(&path) {
                // What was deleted meanwhile needs no packing.
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!("{} stays unpacked: {error}", path.display());
                }
            }
        }
    };
    thread.spawn(packer).ok().map(|_| sender)
}

fn wait_for_quiet() {
    let mut before = RECORDED.load(Ordering::Relaxed);
    loop {
        std::thread::sleep(PAUSE);
        let now = RECORDED.load(Ordering::Relaxed);
        if now - before < LITTLE {
            return;
        }
        before = now;
    }
}

fn pack_file(path: &Path) -> io::Result<()> {
    let plain = path.as_os_str().to_string_lossy();
    let stem = plain.strip_suffix(PLAIN).unwrap_or(&plain);
    let packed = PathBuf::from(format!("{stem}{PACKED}"));
    let part = PathBuf::from(format!("{stem}{PACKED}.part"));
    let mut to = create(&part)?;
    let done = pack(BufReader::new(File::open(path)?), &mut to, LEVEL)
        .and_then(|()| to.sync_all())
        .and_then(|()| fs::rename(&part, &packed));
    match done {
        Ok(()) => fs::remove_file(path),
        Err(error) => {
            // A part of a file is of no use to anybody.
            let _ = fs::remove_file(&part);
            Err(error)
        }
    }
}
