//! Compresses finished segments.
//!
//! A thread of low priority does it, and only while little is recorded: compression costs several
//! times what recording does.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use super::segment_file::{create, recorded};
use panics::SharedMutex;
use recording::{PACKED, PLAIN, pack};

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

/// Compresses the segment at `path` later. If too many wait it stays uncompressed.
pub(super) fn pack_later(path: PathBuf) {
    static PACKER: OnceLock<SharedMutex<Option<SyncSender<PathBuf>>>> = OnceLock::new();
    let packer = PACKER.get_or_init(|| SharedMutex::new(start_packer()));
    if let Some(packer) = &*packer.lock() {
        let _ = packer.try_send(path);
    }
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
