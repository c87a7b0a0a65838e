//! A socket under HTTP, of any kind, that fails when the peer reads nothing for
//! `Limits::http_write_timeout`. A WebSocket takes the stream out and checks that by itself.
//!
//! A client that is refused in the middle of a long body continues to write, because most clients
//! look for a response only after the body. A socket that is closed with unread bytes is reset, and
//! a reset discards the response; so the sending half is closed first, and then the client's end is
//! awaited for a while (RFC 9112, 9.6; nginx calls it `lingering_close`).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

/// How long what a client sends after its response is read and discarded.
const LINGER: Duration = Duration::from_secs(10);

/// A client's socket.
#[derive(Debug)]
pub struct Socket<S = Stream> {
    pub(in crate::http) stream: S,
    stall: Duration,
    /// Runs while the peer reads nothing.
    stall_timer: Option<Pin<Box<Sleep>>>,
    /// The peer has ended its half.
    ended: bool,
    /// Runs once the sending half is closed.
    linger: Option<Pin<Box<Sleep>>>,
}

/// The stream under it: TCP in clear, or TLS.
pub(super) type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    /// A socket that is closed when its peer takes nothing for so long.
    pub fn new(stream: S, stall: Duration) -> Self {
        Self {
            stream,
            stall,
            stall_timer: None,
            ended: false,
            linger: None,
        }
    }

    fn check_stall<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stall_timer = None;
            return written;
        }
        let stall = self.stall;
        let timer = self
            .stall_timer
            .get_or_insert_with(|| Box::pin(sleep(stall)));
        if timer.as_mut().poll(cx).is_ready() {
            let why = "the peer reads nothing";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)));
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Socket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buffer.remaining();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        self.ended |= read.is_err() || room > 0 && buffer.remaining() == room;
        Poll::Ready(read)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check_stall(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.check_stall(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.check_stall(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
            ready!(self.check_stall(cx, shut))?;
            self.linger = Some(Box::pin(sleep(LINGER)));
        }
        let mut bytes = [0; 16 << 10];
        while !self.ended {
            let timer = self.linger.as_mut().map(|timer| timer.as_mut().poll(cx));
            if timer.is_some_and(|timer| timer.is_ready()) {
                break;
            }
            // Its errors end the loop as the client's end does.
            let _ = ready!(self.as_mut().poll_read(cx, &mut ReadBuf::new(&mut bytes)));
        }
        Poll::Ready(Ok(()))
    }
}
