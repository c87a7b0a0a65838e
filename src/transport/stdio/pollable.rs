//! Pipes and sockets, which the runtime itself can wait for: nearly everybody who starts us gives us
//! one of them. A message then takes no thread and no copy more than over any other transport.
//!
//! Neither is made non-blocking, for the flag belongs to all who share the file, the shell that
//! started us perhaps. A pipe is opened once more, through `/proc`, which gives it a description of
//! our own (proc_pid_fd(5)); a socket is told with each call not to wait (`MSG_DONTWAIT`). Not here:
//! what can be neither (see `threads`).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::sockopt::socket_type;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, SocketType};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::unix::pipe;

/// The most that is read from a socket at once. The room for it has to be cleared first.
const BITE: usize = 16 << 10;

/// A socket that somebody else may wait for, too.
#[derive(Debug)]
pub(super) struct Socket(AsyncFd<OwnedFd>);

/// stdin, when it can be opened once more.
pub(super) fn pipe_in() -> Option<pipe::Receiver> {
    cfg!(target_os = "linux")
        .then(|| pipe::OpenOptions::new().open_receiver("/proc/self/fd/0"))?
        .ok()
}

/// stdout, when it can be opened once more.
pub(super) fn pipe_out() -> Option<pipe::Sender> {
    cfg!(target_os = "linux")
        .then(|| pipe::OpenOptions::new().open_sender("/proc/self/fd/1"))?
        .ok()
}

impl Socket {
    /// `file`, when it is a socket that carries a stream.
    pub(super) fn of(file: BorrowedFd<'_>, interest: Interest) -> Option<Self> {
        if socket_type(file) != Ok(SocketType::STREAM) {
            return None;
        }
        let own = file.try_clone_to_owned().ok()?;
        #[expect(
            deprecated,
            reason = "it is for those who lie about their descriptor; this one is owned"
        )]
        let waited_for = AsyncFd::with_interest(own, interest);
        waited_for.ok().map(Self)
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(cx))?;
            let room = into.remaining().min(BITE);
            let room = into.initialize_unfilled_to(room);
            let read = ready.try_io(|socket| {
                Ok(rustix::net::recv(
                    socket.get_ref(),
                    room,
                    RecvFlags::DONTWAIT,
                )?)
            });
            match read {
                Ok(Ok((_, count))) => {
                    into.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(fault)) if fault.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(fault)) => return Poll::Ready(Err(fault)),
                Err(_would_block) => {}
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.0.poll_write_ready(cx))?;
            let written = ready.try_io(|socket| {
                let mut nothing = SendAncillaryBuffer::default();
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                Ok(rustix::net::sendmsg(
                    socket.as_fd(),
                    pieces,
                    &mut nothing,
                    flags,
                )?)
            });
            match written {
                Ok(Err(fault)) if fault.kind() == io::ErrorKind::Interrupted => {}
                Ok(done) => return Poll::Ready(done),
                Err(_would_block) => {}
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// The file is not ours, and the exit closes it.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
