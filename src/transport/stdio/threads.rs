//! Two threads, for stdin and stdout that are no pipes: terminals, files and sockets.
//!
//! A runtime thread that reads stdin cannot be cancelled and would block the exit of the program,
//! so one thread reads and another one writes, each behind a bounded pipe.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::thread;

use futures_util::task::AtomicWaker;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::Handle;

/// Bytes that wait between a thread and the runtime, in each direction.
const PIPE_SIZE: usize = 64 << 10;

/// The runtime's end of the pipe to the writing thread.
pub(super) struct Stdout {
    pipe: DuplexStream,
    accepted: u64,
    progress: Arc<Progress>,
}

/// What the writing thread has done so far.
#[derive(Default)]
struct Progress {
    /// Bytes written to stdout.
    written: AtomicU64,
    /// The thread has ended.
    ended: AtomicBool,
    /// The error it ended with; 0 is none.
    errno: AtomicI32,
    waker: AtomicWaker,
}

/// Starts the thread that reads stdin, and returns what it reads.
pub(super) fn start_reading() -> io::Result<DuplexStream> {
    let (near, mut far) = duplex(PIPE_SIZE);
    let runtime = Handle::current();
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let stdin = rustix::stdio::stdin();
            let mut buffer = vec![0; PIPE_SIZE];
            loop {
                let read = retry(stdin, PollFlags::IN, || {
                    rustix::io::read(stdin, &mut buffer[..])
                });
                match read {
                    Ok(0) => break,
                    Ok(count) => {
                        // It fails when the reading end was dropped.
                        if runtime.block_on(far.write_all(&buffer[..count])).is_err() {
                            break;
                        }
                    }
                    Err(fault) => {
                        // The relay handles it as the end of the stream.
                        tracing::warn!(%fault, "stdin cannot be read any more");
                        break;
                    }
                }
            }
        })?;
    Ok(near)
}

/// Starts the thread that writes stdout.
pub(super) fn start_writing() -> io::Result<Stdout> {
    let (near, mut far) = duplex(PIPE_SIZE);
    let progress = Arc::new(Progress::default());
    let ours = Stdout {
        pipe: near,
        accepted: 0,
        progress: progress.clone(),
    };
    let runtime = Handle::current();
    thread::Builder::new()
        .name("stdout".to_owned())
        .spawn(move || {
            let mut buffer = vec![0; PIPE_SIZE];
            loop {
                let count = runtime.block_on(far.read(&mut buffer)).unwrap_or(0);
                if count == 0 {
                    break;
                }
                if let Err(fault) = write_all(&buffer[..count]) {
                    let errno = fault.raw_os_error();
                    progress.errno.store(errno, Ordering::Release);
                    break;
                }
                progress.written.fetch_add(count as u64, Ordering::Release);
                progress.waker.wake();
            }
            progress.ended.store(true, Ordering::Release);
            // A writer that waits for room in the pipe must learn that there will be none.
            drop(far);
            progress.waker.wake();
        })?;
    Ok(ours)
}

fn write_all(mut bytes: &[u8]) -> Result<(), Errno> {
    let stdout = rustix::stdio::stdout();
    while !bytes.is_empty() {
        let count = retry(stdout, PollFlags::OUT, || rustix::io::write(stdout, bytes))?;
        bytes = &bytes[count..];
    }
    Ok(())
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

impl Stdout {
    /// The error the thread ended with, or a broken pipe.
    fn fault(&self) -> io::Error {
        match self.progress.errno.load(Ordering::Acquire) {
            0 => io::ErrorKind::BrokenPipe.into(),
            errno => io::Error::from_raw_os_error(errno),
        }
    }

    /// Ready when the thread has written all accepted bytes, or has ended.
    fn poll_written(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.progress.waker.register(cx.waker());
        if self.progress.written.load(Ordering::Acquire) == self.accepted {
            Poll::Ready(Ok(()))
        } else if self.progress.ended.load(Ordering::Acquire) {
            Poll::Ready(Err(self.fault()))
        } else {
            Poll::Pending
        }
    }
}

impl AsyncWrite for Stdout {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.pipe).poll_write(cx, bytes);
        written.map(|result| match result {
            Ok(count) => {
                self.accepted += count as u64;
                Ok(count)
            }
            Err(_) => Err(self.fault()),
        })
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_written(cx)
    }

    /// Ready when all bytes are written and the thread has ended. The file stays open: other
    /// processes may share it, and the exit closes it.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.poll_written(cx))?;
        std::task::ready!(Pin::new(&mut self.pipe).poll_shutdown(cx))?;
        if self.progress.ended.load(Ordering::Acquire) {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }
}
