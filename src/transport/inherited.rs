//! Listening sockets inherited from the service manager, such as systemd (sd_listen_fds(3)).
//!
//! A listener takes the socket that is bound to its own address, whatever its name, and binds one
//! itself if there is none.
//!
//! # Decisions
//!
//! **Only the exact address matches.** A socket at `[::]:9000` would serve a listener for
//! `127.0.0.1:9000` as well, and open to the network what its owner meant for this machine.

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use socket2::{SockAddr, SockRef, Type};

/// Inherited sockets that no listener has taken yet.
#[derive(Clone, Default)]
pub struct Inherited(Arc<Mutex<Vec<OwnedFd>>>);

impl Inherited {
    /// Takes over these sockets. They are closed in child processes.
    #[must_use]
    pub fn new(sockets: Vec<OwnedFd>) -> Self {
        for socket in &sockets {
            let closes = rustix::io::fcntl_setfd(socket, rustix::io::FdFlags::CLOEXEC);
            if let Err(error) = closes {
                tracing::warn!(%error, "an inherited socket stays open in agents");
            }
        }
        Self(Arc::new(Mutex::new(sockets)))
    }

    /// Takes the socket bound to one of these addresses.
    pub(super) fn tcp(&self, addresses: &[SocketAddr]) -> Option<TcpListener> {
        let ours = |at: &SockAddr| at.as_socket().is_some_and(|at| addresses.contains(&at));
        let socket: TcpListener = self.take(ours)?.into();
        socket.set_nonblocking(true).ok()?;
        Some(socket)
    }

    /// Takes the socket bound to this file.
    pub(super) fn unix(&self, path: &Path) -> Option<UnixListener> {
        let socket: UnixListener = self.take(|at| at.as_pathname() == Some(path))?.into();
        socket.set_nonblocking(true).ok()?;
        Some(socket)
    }

    /// The address of a socket that no listener has taken.
    #[must_use]
    pub fn unused(&self) -> Option<String> {
        let sockets = self.lock();
        let first = sockets.first()?;
        let address = SockRef::from(first).local_addr().ok();
        let address = address.and_then(|at| match at.as_socket() {
            Some(at) => Some(at.to_string()),
            None => Some(at.as_pathname()?.display().to_string()),
        });
        Some(address.unwrap_or_else(|| "an address of another kind".to_owned()))
    }

    fn take(&self, wanted: impl Fn(&SockAddr) -> bool) -> Option<OwnedFd> {
        let mut sockets = self.lock();
        let found = sockets.iter().position(|socket| {
            let socket = SockRef::from(socket);
            let is_stream = socket.r#type().is_ok_and(|kind| kind == Type::STREAM);
            is_stream && socket.local_addr().is_ok_and(|address| wanted(&address))
        });
        found.map(|at| sockets.remove(at))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OwnedFd>> {
        self.0.lock()
    }
}

impl fmt::Debug for Inherited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inherited({})", self.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inherited_socket_is_taken_once_by_address() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = tcp.local_addr().unwrap();
        let unix = UnixListener::bind(&path).unwrap();
        let inherited = Inherited::new(vec![tcp.into(), unix.into()]);
        let everywhere = SocketAddr::new("0.0.0.0".parse().unwrap(), at.port());
        assert!(inherited.tcp(&[everywhere]).is_none());
        assert!(inherited.unix(&dir.path().join("other")).is_none());
        let taken = inherited.tcp(&[everywhere, at]).unwrap();
        assert_eq!(taken.local_addr().unwrap(), at);
        assert!(inherited.tcp(&[at]).is_none(), "it is taken");
        assert_eq!(inherited.unused(), Some(path.display().to_string()));
        assert!(inherited.unix(&path).is_some());
        assert_eq!(inherited.unused(), None);
    }
}
