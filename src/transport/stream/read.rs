//! Frames out of a stream of bytes.
//!
//! The bytes of a message are read once and never copied: frames share the read buffer. The
//! buffer grows while a peer sends much and is given back a moment after it has stopped, for most
//! links are idle most of the time. Not here: where a message ends (see `wire::framing`).

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, Sleep, sleep};

use super::Spoken;
use crate::transport::{FrameStream, LinkError, Setup};
use crate::wire::framing::{Cut, Cutter};

/// The buffer of a link that has little to say.
const SMALL: usize = 8 << 10;
/// The most that is asked of one read; the cutter gives larger buffers up.
const LARGE: usize = 64 << 10;
/// A read with less room than this is not worth its system call.
const ROOM: usize = 2 << 10;
/// How long a larger buffer is kept for a peer that says nothing.
const KEPT: Duration = Duration::from_secs(1);

/// The receiving half of a link over a byte stream.
#[derive(Debug)]
pub struct Reader<R> {
    io: R,
    buffer: BytesMut,
    /// The buffer before this one: its memory is free when the frames cut from it are gone.
    spare: BytesMut,
    cutter: Cutter,
    spoken: Spoken,
    told: bool,
    /// Room made before a read.
    want: usize,
    /// Size of the memory behind `buffer`, which its capacity does not tell once frames are cut.
    held: usize,
    stage: Stage,
    /// Runs while a large buffer waits for nothing.
    quiet: Option<Pin<Box<Sleep>>>,
    timing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    /// The peer has ended its stream; what is left in the buffer is still to be taken.
    Ended,
    Done,
}

impl<R> Reader<R> {
    pub(super) fn new(io: R, spoken: Spoken, max: usize, setup: &Setup) -> Self {
        let framing = spoken.get();
        Self {
            io,
            buffer: BytesMut::new(),
            spare: BytesMut::new(),
            cutter: Cutter::new(framing, max, &setup.limits),
            told: framing.is_some(),
            spoken,
            want: SMALL,
            held: 0,
            stage: Stage::Open,
            quiet: None,
            timing: false,
        }
    }

    /// Ends the reading and gives the buffer back.
    fn done(&mut self) {
        self.stage = Stage::Done;
        self.buffer = BytesMut::new();
        self.spare = BytesMut::new();
        self.quiet = None;
    }

    /// Makes room for a read: in the memory of this buffer or of the one before when every frame
    /// cut from it has been dropped, otherwise in new memory.
    fn make_room(&mut self) {
        let part = self.buffer.len();
        if part > self.want {
            // A long message: its memory doubles, so that it is not copied with each read.
            self.buffer.reserve(self.want);
        } else if !self.buffer.try_reclaim(self.want) {
            if self.spare.try_reclaim(part + self.want) {
                self.spare.extend_from_slice(&self.buffer);
                self.buffer.clear();
                std::mem::swap(&mut self.buffer, &mut self.spare);
            } else {
                let mut fresh = BytesMut::with_capacity(part + self.want);
                fresh.extend_from_slice(&self.buffer);
                self.buffer.clear();
                self.spare = std::mem::replace(&mut self.buffer, fresh);
            }
        }
        self.held = self.buffer.capacity();
    }

    fn tell(&mut self) {
        if !self.told
            && let Some(framing) = self.cutter.framing()
        {
            self.spoken.tell(framing);
            self.told = true;
        }
    }

    /// Gives a large buffer back when nothing has come for a while. Called when there is nothing
    /// to read, so that the timer wakes us.
    fn rest(&mut self, cx: &mut Context<'_>) {
        if self.held <= SMALL || !self.buffer.is_empty() {
            return;
        }
        let quiet = self.quiet.get_or_insert_with(|| Box::pin(sleep(KEPT)));
        if !self.timing {
            quiet.as_mut().reset(Instant::now() + KEPT);
            self.timing = true;
        }
        if quiet.as_mut().poll(cx).is_ready() {
            self.buffer = BytesMut::new();
            self.spare = BytesMut::new();
            self.held = 0;
            self.want = SMALL;
            self.quiet = None;
            self.timing = false;
        }
    }
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Reads once; zero bytes are the end of the stream.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.buffer.capacity() - self.buffer.len() < ROOM {
            self.make_room();
        }
        let room = (self.buffer.capacity() - self.buffer.len()).min(LARGE);
        let mut target = (&mut self.buffer).limit(room);
        // The future holds nothing between polls, so making one for each poll loses nothing.
        let read = ready!(pin!(self.io.read_buf(&mut target)).poll(cx))?;
        if read == room {
            self.want = (self.want * 2).min(LARGE);
        }
        self.timing = false;
        Poll::Ready(Ok(read))
    }
}

impl<R: AsyncRead + Send + Unpin> FrameStream for Reader<R> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Cut, LinkError>>> {
        loop {
            if self.stage == Stage::Done {
                return Poll::Ready(None);
            }
            let cut = self.cutter.cut(&mut self.buffer);
            self.tell();
            match cut {
                Ok(Some(cut)) => return Poll::Ready(Some(Ok(cut))),
                Ok(None) => {}
                Err(flaw) => {
                    self.done();
                    return Poll::Ready(Some(Err(LinkError::Framing(flaw))));
                }
            }
            if self.stage == Stage::Ended {
                let last = self.cutter.finish(&mut self.buffer);
                self.done();
                return Poll::Ready(last.map(Ok));
            }
            match self.poll_read(cx) {
                Poll::Ready(Ok(0)) => self.stage = Stage::Ended,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(source)) => {
                    self.done();
                    let context = "reading from the peer";
                    return Poll::Ready(Some(Err(LinkError::Io { context, source })));
                }
                Poll::Pending => {
                    self.rest(cx);
                    return Poll::Pending;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::time::advance;

    use super::*;
    use crate::transport::Tls;

    /// A burst makes the buffer large; a second of silence makes it small again.
    #[tokio::test(start_paused = true)]
    async fn a_quiet_link_gives_its_memory_back() {
        let (near, mut far) = tokio::io::duplex(1 << 20);
        let setup = Setup {
            limits: std::sync::Arc::default(),
            framing: None,
            tls: Tls::default(),
        };
        let mut reader = Reader::new(near, Spoken::new(None), 1 << 24, &setup);
        let line = format!("{{\"x\":\"{}\"}}\n", "x".repeat(5000));
        let burst = line.repeat(100);
        far.write_all(burst.as_bytes()).await.expect("it has room");
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut heard = 0;
        while reader.poll_next(&mut cx).is_ready() {
            heard += 1;
        }
        assert_eq!(heard, 100);
        assert!(reader.held >= LARGE, "{}", reader.held);
        advance(KEPT / 2).await;
        assert!(reader.poll_next(&mut cx).is_pending());
        assert!(reader.held >= LARGE, "it was kept for no time at all");
        advance(KEPT).await;
        assert!(reader.poll_next(&mut cx).is_pending());
        assert_eq!((reader.held, reader.buffer.capacity()), (0, 0));
        // And it goes on.
        far.write_all(line.as_bytes()).await.expect("it has room");
        assert!(reader.poll_next(&mut cx).is_ready());
        assert!(reader.held <= 2 * SMALL, "{}", reader.held);
    }
}
