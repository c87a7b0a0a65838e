//! A socket under HTTP, in clear or with TLS, that fails when the peer reads nothing for
//! `Limits::http_write_timeout`. A WebSocket takes the stream out and checks that by itself.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use super::bare_refusal;
use super::linger::Linger;

/// A client's socket.
#[derive(Debug)]
pub(in crate::transport) struct Socket {
    pub(in crate::transport) stream: Stream,
    stall: Duration,
    /// Runs while the peer reads nothing.
    stall_timer: Option<Pin<Box<Sleep>>>,
    /// What is still to be written in place of a response that hyper made without a body.
    replacement: Option<Bytes>,
    /// The peer has ended its half.
    ended: bool,
    /// Set once the sending half is closed.
    linger: Option<Linger>,
    closing: Arc<AtomicBool>,
}

/// The stream under it: TCP in clear, or TLS.
pub(in crate::transport) type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

impl Socket {
    pub(in crate::transport) fn new(stream: Stream, stall: Duration) -> Self {
        Self {
            stream,
            stall,
            stall_timer: None,
            replacement: None,
            ended: false,
            linger: None,
            closing: Arc::default(),
        }
    }

    /// Becomes true once the sending half is closed.
    pub(super) fn closing(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.closing)
    }

    /// Writes all of `rest`; `length` bytes are reported to hyper as written.
    fn poll_write_replacement(
        &mut self,
        cx: &mut Context<'_>,
        mut rest: Bytes,
        length: usize,
    ) -> Poll<io::Result<usize>> {
        while !rest.is_empty() {
            match Pin::new(&mut self.stream).poll_write(cx, &rest) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => rest.advance(written),
                Poll::Ready(Err(fault)) => return Poll::Ready(Err(fault)),
                Poll::Pending => {
                    self.replacement = Some(rest);
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(length))
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

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buffer.remaining();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        match &read {
            Poll::Ready(Ok(())) if room > 0 && buffer.remaining() == room => self.ended = true,
            Poll::Ready(Err(_)) => self.ended = true,
            _ => {}
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let replacement = self
            .replacement
            .take()
            .or_else(|| bare_refusal::with_body(bytes));
        let written = match replacement {
            Some(rest) => self.poll_write_replacement(cx, rest, bytes.len()),
            None => Pin::new(&mut self.stream).poll_write(cx, bytes),
        };
        self.check_stall(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [only] = slices {
            return self.poll_write(cx, only);
        }
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
        let socket = &mut *self;
        if socket.linger.is_none() {
            let shut = Pin::new(&mut socket.stream).poll_shutdown(cx);
            ready!(socket.check_stall(cx, shut))?;
            socket.closing.store(true, Ordering::Relaxed);
        }
        if socket.ended {
            return Poll::Ready(Ok(()));
        }
        let linger = socket.linger.get_or_insert_with(Linger::new);
        linger.poll(cx, &mut socket.stream).map(Ok)
    }
}
