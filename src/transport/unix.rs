//! Frames over Unix sockets: `unix:PATH`.
//!
//! The permissions of the socket file are the access control, so it is private to its owner from
//! its first moment. A file left behind by a relay that was killed is replaced; one that is in use,
//! or is no socket, is not touched.
//!
//! Between checking a file and replacing it, and between binding a socket and listening on it, a
//! live socket looks like one left behind. So relays that start at the same moment are serialised
//! by a lock (`flock`) on the directory. A separate lock file would stay behind, or could be
//! removed while another process waits for it; binding another name and renaming it would silently
//! take the path from a relay that has just done the same.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};
use rustix::process::geteuid;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::admission::{StreamListener, admit};
use super::open_error::{self, not_bound};
use super::stream::{self, Room};
use super::{
    Endpoint, FrameStream, IncomingLink, Link, Listener, OpenError, OpenErrorKind, Peer, PeerKind,
    Setup, forward,
};
use auth::{Credentials, Reachability};

/// Connections that the system queues until they are accepted.
const BACKLOG: i32 = 1024;

/// Time limit for locking the directory. The lock is held for a few system calls.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause between two attempts to lock: waiting for the lock would block a thread.
const LOCK_RETRY: Duration = Duration::from_millis(5);

/// Its file is dropped first: while the socket still listens, no other relay replaces the file.
pub(crate) type Bound = StreamListener<(SocketFile, UnixListener, Arc<Semaphore>)>;

/// What a client sends. A client that only ends its stream still reads; one that is gone, with or
/// without its process, may have lost its own connection.
struct ClientStream(stream::Reader<OwnedReadHalf>);

/// The file of a bound socket, removed with it unless the file was replaced.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

/// Connects to `unix:PATH`.
pub(crate) async fn connect(to: &Endpoint, path: &Path, setup: &Setup) -> Result<Link, OpenError> {
    let stream = dial(to, path, setup).await?;
    let peer = stream.peer_cred().map(|peer| peer.uid());
    let is_own = peer.is_ok_and(|user| user == geteuid().as_raw());
    let mut setup = setup.clone();
    if is_own {
        setup.limits = setup.limits.of_own_user();
    }
    let (reader, writer) = stream.into_split();
    let mut link = stream::remote(reader, writer, to.to_string(), &setup);
    if is_own {
        link.peer.kind = PeerKind::SameUser;
    }
    Ok(link)
}

/// Listens at `unix:PATH`.
pub(super) async fn listen(
    at: &Endpoint,
    path: &Path,
    setup: &Setup,
) -> Result<Box<dyn Listener>, OpenError> {
    let (file, socket) = match setup.inherited.unix(path) {
        Some(socket) => {
            let socket = UnixListener::from_std(socket);
            let socket = socket.map_err(|source| not_bound(at, &source))?;
            (SocketFile::inherited(path), socket)
        }
        None => bind_unix(at, path).await?,
    };
    // So many messages that are longer than those of others are read at a time.
    let limits = &setup.limits;
    let room = limits.http_bodies / limits.frame_from_child.max(1);
    let room = Arc::new(Semaphore::new(room.clamp(1, Semaphore::MAX_PERMITS)));
    Ok(Box::new(StreamListener {
        socket: (file, socket, room),
        at: at.clone(),
        setup: setup.clone(),
        next: |bound| Box::pin(next(bound)),
    }))
}

/// Connects a socket.
pub(super) async fn dial(
    to: &Endpoint,
    path: &Path,
    setup: &Setup,
) -> Result<UnixStream, OpenError> {
    address(to, path)?;
    let within = setup.limits.handshake;
    timeout(within, UnixStream::connect(path))
        .await
        .map_err(|_| open_error::timed_out(to, "connecting", within))?
        .map_err(|source| open_error::not_connected(to, &source))
}

/// Listens on a socket file that is private to its owner from its first moment, and replaces a
/// stale file.
///
/// # Errors
/// Why it cannot be created, and what to do.
pub async fn bind_unix(
    at: &Endpoint,
    path: &Path,
) -> Result<(SocketFile, UnixListener), OpenError> {
    let address = address(at, path)?;
    let lock = lock_directory(at, path).await?;
    remove_stale(at, path).await?;
    let socket = bind(&address).map_err(|source| not_bound(at, &source))?;
    let file = SocketFile::new(path);
    drop(lock);
    let socket = UnixListener::from_std(socket).map_err(|source| not_bound(at, &source))?;
    Ok((file, socket))
}

/// Whether such a file could be created, as far as that shows without creating it. A program that
/// already listens there is not disturbed.
pub(super) fn check_path(at: &Endpoint, path: &Path) -> Result<(), OpenError> {
    address(at, path)?;
    let parent = parent(path);
    let there = fs::metadata(parent).map_err(|source| not_bound(at, &source))?;
    if !there.is_dir() {
        return Err(not_bound(at, &io::ErrorKind::NotADirectory.into()));
    }
    access(parent, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|source| not_bound(at, &source.into()))?;
    match fs::symlink_metadata(path) {
        Ok(file) if !file.file_type().is_socket() => Err(not_a_socket(at)),
        _ => Ok(()),
    }
}

async fn next(bound: &Bound) -> io::Result<IncomingLink> {
    let StreamListener {
        socket, at, setup, ..
    } = bound;
    let (stream, _) = socket.1.accept().await?;
    let peer = stream.peer_cred().ok();
    let mut from = at.to_string();
    if let Some(process) = peer.and_then(|peer| peer.pid()) {
        from = format!("{from} (process {process})");
    }
    let credentials = Credentials {
        reachability: Reachability::Socket,
        address: None,
        user: peer.map(|peer| peer.uid()),
        certificate: None,
        token: None,
    };
    let stream = stream.into_std()?;
    let mut setup = setup.clone();
    let is_own = credentials.user == Some(geteuid().as_raw());
    let long = setup.limits.frame_from_network;
    let room = is_own.then(|| Room::new(&socket.2, long));
    if is_own {
        setup.limits = setup.limits.of_own_user();
    }
    let open = |name, setup: &Setup| {
        let (reader, writer) = UnixStream::from_std(stream)?.into_split();
        let (mut rx, tx) = stream::accepted(reader, writer, setup);
        rx.room = room;
        let rx = ClientStream(rx);
        Ok(Link::new(Peer::remote(name, true), rx, tx, ()))
    };
    Ok(admit(from, &credentials, &setup, "unix", open))
}

impl FrameStream for ClientStream {
    forward!(self => self.0; poll_next, poll_lost, has_progressed);

    fn ended_cleanly(&self) -> bool {
        let mut socket = [PollFd::new(self.0.source().as_ref(), PollFlags::empty())];
        let polled = poll(&mut socket, Some(&Timespec::default()));
        polled.is_err() || !socket[0].revents().contains(PollFlags::HUP)
    }

    fn tells_loss(&self) -> bool {
        true
    }
}

impl SocketFile {
    /// A socket file that another process has created and removes.
    fn inherited(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            identity: None,
        }
    }

    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            identity: identity(path),
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_some() && self.identity == identity(&self.path) {
            // Another process may have removed it already.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Device and inode of the file itself, not of the target of a link.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let file = fs::symlink_metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

fn address(endpoint: &Endpoint, path: &Path) -> Result<SockAddr, OpenError> {
    SockAddr::unix(path).map_err(|_| {
        let what = "the path is too long for a socket (about 100 bytes)";
        OpenError::new(OpenErrorKind::Usage, endpoint, what).with_remedy("Choose a shorter path")
    })
}

fn parent(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    parent.unwrap_or_else(|| Path::new("."))
}

/// Locks the directory of `path` until the returned file is dropped. Where it cannot be locked (it
/// may not be read, or the file system has no locks) relays are not serialised.
async fn lock_directory(at: &Endpoint, path: &Path) -> Result<Option<File>, OpenError> {
    let Ok(directory) = File::open(parent(path)) else {
        return Ok(None);
    };
    let locked = timeout(LOCK_TIMEOUT, async {
        while matches!(directory.try_lock(), Err(TryLockError::WouldBlock)) {
            sleep(LOCK_RETRY).await;
        }
    });
    locked.await.map_err(|_| {
        let what = "another program holds the lock of the socket's directory";
        OpenError::new(OpenErrorKind::Unavailable, at, what)
            .with_remedy("Try again, or choose another directory")
    })?;
    Ok(Some(directory))
}

/// Removes a stale socket file.
async fn remove_stale(at: &Endpoint, path: &Path) -> Result<(), OpenError> {
    let file = match fs::symlink_metadata(path) {
        Ok(file) => file,
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(fault) => return Err(not_bound(at, &fault)),
    };
    if !file.file_type().is_socket() {
        return Err(not_a_socket(at));
    }
    match UnixStream::connect(path).await {
        Err(fault) if fault.kind() == io::ErrorKind::ConnectionRefused => {
            tracing::debug!(path = %path.display(), "replacing a stale socket file");
            match fs::remove_file(path) {
                Err(fault) if fault.kind() != io::ErrorKind::NotFound => Err(not_bound(at, &fault)),
                _ => Ok(()),
            }
        }
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
        // A program accepts, is too busy to, or denies access.
        _ => Err(not_bound(at, &io::ErrorKind::AddrInUse.into())),
    }
}

fn not_a_socket(at: &Endpoint) -> OpenError {
    let what = "a file that is not a socket exists there";
    OpenError::new(OpenErrorKind::CannotCreate, at, what)
        .with_remedy("Choose another path; nothing was deleted")
}

/// Binds with mode 0600 from the first moment.
fn bind(address: &SockAddr) -> io::Result<StdListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    bind_private(&socket, address)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Linux gives the file the mode of the socket it is bound to (less the umask), so no state of the
/// process changes and no other thread is affected.
#[cfg(target_os = "linux")]
fn bind_private(socket: &Socket, address: &SockAddr) -> io::Result<()> {
    rustix::fs::fchmod(socket, rustix::fs::Mode::from_raw_mode(0o600))?;
    socket.bind(address)
}

/// On other systems the umask is set. It belongs to the whole process: a file that another thread
/// creates at this moment is private as well, which is safe.
#[cfg(not(target_os = "linux"))]
fn bind_private(socket: &Socket, address: &SockAddr) -> io::Result<()> {
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let bound = socket.bind(address);
    rustix::process::umask(before);
    bound
}
