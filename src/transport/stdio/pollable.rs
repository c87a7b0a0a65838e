//! Pipes and sockets as stdin and stdout, which the runtime itself can wait for: most programs that
//! start the relay give it one of them. A message then takes no thread and no copy more than over
//! any other transport.
//!
//! Neither is made non-blocking, because the flag belongs to all processes that share the file,
//! such as the shell that started the relay. A pipe is opened once more, through `/proc`, which
//! gives it a file description of its own (proc_pid_fd(5)); a socket is read and written with
//! `MSG_DONTWAIT`. Other files go through `threads`.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::sockopt::socket_type;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, SocketType};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::unix::pipe;

/// The most that is read from a socket at once, in bytes. This much has to be cleared first.
const READ_LIMIT: usize = 16 << 10;

/// A socket whose file description may be shared with other processes.
#[derive(Debug)]
pub(super) struct Socket(AsyncFd<OwnedFd>);

/// stdin, when it is a pipe that can be opened once more.
pub(super) fn pipe_in() -> Option<pipe::Receiver> {
    cfg!(target_os = "linux")
        .then(|| pipe::OpenOptions::new().open_receiver("/proc/self/fd/0"))?
        .ok()
}

/// stdout, when it is a pipe that can be opened once more.
pub(super) fn pipe_out() -> Option<pipe::Sender> {
    cfg!(target_os = "linux")
        .then(|| pipe::OpenOptions::new().open_sender("/proc/self/fd/1"))?
        .ok()
}

impl Socket {
    /// `file`, when it is a stream socket.
    pub(super) fn of(file: BorrowedFd<'_>, interest: Interest) -> Option<Self> {
        if socket_type(file) != Ok(SocketType::STREAM) {
            return None;
        }
        let own = file.try_clone_to_owned().ok()?;
        #[expect(
            deprecated,
            reason = "the new name is for unowned descriptors; this one is owned"
        )]
        let registered = AsyncFd::with_interest(own, interest);
        registered.ok().map(Self)
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(cx))?;
            let room = buffer.remaining().min(READ_LIMIT);
            let room = buffer.initialize_unfilled_to(room);
            let read = ready.try_io(|socket| {
                Ok(rustix::net::recv(
                    socket.get_ref(),
                    room,
                    RecvFlags::DONTWAIT,
                )?)
            });
            match read {
                Ok(Ok((_, count))) => {
                    buffer.advance(count);
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
            let sent = ready.try_io(|socket| {
                let mut no_control = SendAncillaryBuffer::default();
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                Ok(rustix::net::sendmsg(
                    socket.as_fd(),
                    pieces,
                    &mut no_control,
                    flags,
                )?)
            });
            match sent {
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

    /// Does nothing: other processes may share the file, and the exit closes it.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
