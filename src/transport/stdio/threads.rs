//! Two threads, for stdin and stdout that are no pipes: terminals, files and sockets.
//!
//! A runtime thread that reads stdin cannot be cancelled and would block the exit of the program,
//! so one thread reads and another one writes, each behind a bounded pipe.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;

use rustix::event::{PollFd, PollFlags};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Bytes that wait between a thread and the runtime, in each direction.
const PIPE_SIZE: usize = 64 << 10;

/// The runtime's end of the pipe to the writing thread.
pub(super) struct Stdout {
    pipe: DuplexStream,
    /// How the thread ended.
    ended: oneshot::Receiver<io::Result<()>>,
}

/// Starts the thread that reads stdin, and returns what it reads.
pub(super) fn start_reading() -> io::Result<DuplexStream> {
    let (near, mut far) = duplex(PIPE_SIZE);
    let runtime = Handle::current();
    let read = move || {
        let stdin = rustix::stdio::stdin();
        let mut buffer = vec![0; PIPE_SIZE];
        loop {
            let read = retry(stdin, PollFlags::IN, || {
                rustix::io::read(stdin, &mut buffer[..])
            });
            let count = read.unwrap_or_else(|fault| {
                tracing::warn!(%fault, "stdin cannot be read any more");
                0
            });
            // Writing fails when the reading end was dropped.
            if count == 0 || runtime.block_on(far.write_all(&buffer[..count])).is_err() {
                break;
            }
        }
    };
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(read)?;
    Ok(near)
}

/// Starts the thread that writes stdout.
pub(super) fn start_writing() -> io::Result<Stdout> {
    let (pipe, mut far) = duplex(PIPE_SIZE);
    let (end, ended) = oneshot::channel();
    let runtime = Handle::current();
    let write = move || {
        let stdout = rustix::stdio::stdout();
        let mut buffer = vec![0; PIPE_SIZE];
        let mut copy = || {
            loop {
                let count = runtime.block_on(far.read(&mut buffer))?;
                let mut bytes = &buffer[..count];
                if bytes.is_empty() {
                    return Ok(());
                }
                while !bytes.is_empty() {
                    let write = || rustix::io::write(stdout, bytes);
                    bytes = &bytes[retry(stdout, PollFlags::OUT, write)?..];
                }
            }
        };
        // A failed send means that nothing waits for the end.
        let _ = end.send(copy());
    };
    thread::Builder::new()
        .name("stdout".to_owned())
        .spawn(write)?;
    Ok(Stdout { pipe, ended })
}

/// Repeats an interrupted call, and waits when another process that shares the file has made it
/// non-blocking (a terminal shared by several programs often is).
fn retry<T>(
    file: BorrowedFd<'_>,
    ready: PollFlags,
    mut call: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut waiting = [PollFd::from_borrowed_fd(file, ready)];
                match rustix::event::poll(&mut waiting, None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(fault) => return Err(fault),
                }
            }
            done => return done,
        }
    }
}

impl AsyncWrite for Stdout {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.pipe).poll_write(cx, bytes));
        // The pipe only shows that the thread has ended, and not why.
        Poll::Ready(written.map_err(|broken| match self.ended.try_recv() {
            Ok(Err(fault)) => fault,
            _ => broken,
        }))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ready when all bytes are written and the thread has ended. The file stays open: other
    /// processes may share it, and the exit closes it.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.pipe).poll_shutdown(cx))?;
        let ended = ready!(Pin::new(&mut self.ended).poll(cx));
        Poll::Ready(ended.unwrap_or(Ok(())))
    }
}
