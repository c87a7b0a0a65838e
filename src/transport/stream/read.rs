//! Cuts frames out of a byte stream.
//!
//! The bytes of a message are read once and not copied: frames share the read buffer. It grows while
//! a peer sends much and is released a second after the peer has stopped, because most links are idle
//! most of the time. Small messages are copied out of it when they would keep much unused memory
//! alive (see `buffer_pool`).

use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::PollSemaphore;

use super::buffer_pool::BufferPool;
use crate::{FrameStream, LinkError, Setup, forward};
use jsonrpc::Frame;
use jsonrpc::framing::{Decoded, Decoder, Framing};

/// The buffer of a link with little traffic, in bytes. An idle link keeps it, so it is most of what
/// an idle link costs; under load the buffer grows after a few reads.
const SMALL: usize = 2 << 10;
/// The largest single read, in bytes.
const LARGE: usize = 64 << 10;
/// A read with less room than this is not worth its system call.
const MIN_ROOM: usize = 1 << 10;
/// The longest request line of HTTP that is waited for, in bytes.
const MAX_REQUEST_LINE: usize = 8 << 10;
/// How long a larger buffer is kept while the peer sends nothing.
const SHRINK_AFTER: Duration = Duration::from_secs(1);

/// What the two halves of a link know of its beginning.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    /// The framing the peer uses, detected by the reader and used by the writer.
    pub(super) framing: OnceLock<Framing>,
    /// Bytes of the peer were read.
    pub(crate) heard: AtomicBool,
    /// Notified when the first message is sent.
    pub(crate) sent: Notify,
}

/// The receiving half of a link over a byte stream.
#[derive(Debug)]
pub struct Reader<R> {
    input: ReadBuffer<R>,
    cutter: Decoder,
    pub(crate) opening: Arc<Opening>,
    /// The buffer holds no whole message, and nothing was read since.
    needs_read: bool,
    stage: Stage,
    /// The first line was not seen yet, and may be a request of HTTP, which ends the link.
    may_be_http: bool,
    /// Bytes were read since this was last cleared.
    has_progressed: bool,
    /// What it shares with others, if few of them may have a long message at a time.
    pub(crate) room: Option<Room>,
}

/// Room for long messages, which several readers share: one that has begun to read such a message
/// holds a permit until it has the whole of it.
#[derive(Debug)]
pub(crate) struct Room {
    permits: PollSemaphore,
    held: Option<OwnedSemaphorePermit>,
    /// A message of more bytes is long.
    long: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    /// The peer has ended its stream; the rest of the buffer is still to be consumed.
    Ended,
    Done,
}

/// A reader and its buffer.
#[derive(Debug)]
struct ReadBuffer<R> {
    io: R,
    /// Bytes that were read and not consumed yet. Messages cut from it share its memory.
    bytes: BytesMut,
    /// Room made before a read, in bytes.
    read_size: usize,
    /// The memory behind `bytes`.
    pool: BufferPool,
    /// Runs while a large buffer is idle.
    idle_timer: Option<Pin<Box<Sleep>>>,
    timer_runs: bool,
}

impl<R> Reader<R> {
    pub(super) fn new(io: R, opening: Arc<Opening>, max: usize, setup: &Setup) -> Self {
        Self {
            input: ReadBuffer::new(io, BytesMut::new()),
            cutter: Decoder::new(opening.framing.get().copied(), max, &setup.limits),
            opening,
            needs_read: false,
            stage: Stage::Open,
            may_be_http: false,
            has_progressed: false,
            room: None,
        }
    }

    /// Ends the link if the peer begins with a request of HTTP: a web page can make a browser send
    /// one to any port, with a message as its body.
    pub fn refusing_http(mut self) -> Self {
        self.may_be_http = true;
        self
    }

    /// What it reads from.
    pub fn source(&self) -> &R {
        &self.input.io
    }

    /// Ends reading and releases the buffer.
    fn close(&mut self) {
        self.stage = Stage::Done;
        self.room = None;
        self.input.release();
    }

    fn share_framing(&mut self) {
        if self.opening.framing.get().is_none()
            && let Some(framing) = self.cutter.framing()
        {
            // It is detected once.
            let _ = self.opening.framing.set(framing);
        }
    }
}

impl<R: AsyncRead + Send + Unpin> FrameStream for Reader<R> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Decoded, LinkError>>> {
        loop {
            if self.stage == Stage::Done {
                return Poll::Ready(None);
            }
            if self.may_be_http && self.stage == Stage::Open {
                match is_http(&self.input.bytes) {
                    None => self.needs_read = true,
                    Some(false) => self.may_be_http = false,
                    Some(true) => {
                        self.close();
                        let what = "it sent an HTTP request, and this listener takes messages \
                                    alone; HTTP needs a listener at http://";
                        return Poll::Ready(Some(Err(LinkError::Refused(what.to_owned()))));
                    }
                }
            }
            if !self.needs_read {
                let cut = self.cutter.decode(&mut self.input.bytes);
                self.share_framing();
                if let Some(room) = &mut self.room
                    && !matches!(cut, Ok(None))
                {
                    room.held = None;
                }
                match cut {
                    Ok(Some(Decoded::Frame(frame))) => {
                        let text = self.input.pool.share(frame.into_bytes());
                        return Poll::Ready(Some(Ok(Decoded::Frame(Frame::new(text)))));
                    }
                    Ok(Some(invalid)) => return Poll::Ready(Some(Ok(invalid))),
                    Ok(None) => self.needs_read = true,
                    Err(error) => {
                        self.close();
                        return Poll::Ready(Some(Err(LinkError::Framing(error))));
                    }
                }
            }
            if self.stage == Stage::Ended {
                let last = self.cutter.finish(&mut self.input.bytes);
                self.close();
                return Poll::Ready(last.map(Ok));
            }
            if let Some(room) = &mut self.room {
                ready!(room.poll(cx, self.input.bytes.len()));
            }
            match self.input.poll_read(cx) {
                Poll::Ready(Ok(0)) => self.stage = Stage::Ended,
                Poll::Ready(Ok(_)) => {
                    self.needs_read = false;
                    if !self.has_progressed {
                        self.has_progressed = true;
                        self.opening.heard.store(true, Ordering::Relaxed);
                    }
                }
                Poll::Ready(Err(source)) => {
                    self.close();
                    let context = "reading from the peer";
                    return Poll::Ready(Some(Err(LinkError::Io { context, source })));
                }
                Poll::Pending => {
                    self.input.poll_shrink(cx);
                    return Poll::Pending;
                }
            }
        }
    }

    fn has_progressed(&mut self) -> bool {
        // A peer that is not read is not silent.
        let begun = self.input.bytes.len();
        let waits = |room: &Room| room.held.is_none() && begun > room.long;
        let is_awaited = self.room.as_ref().is_some_and(waits);
        std::mem::take(&mut self.has_progressed) || is_awaited
    }

    forward!(self => (); poll_lost, ended_cleanly, tells_loss);
}

impl Room {
    /// Room for as many messages of more than `long` bytes as there are permits.
    pub(crate) fn new(permits: &Arc<Semaphore>, long: usize) -> Self {
        Self {
            permits: PollSemaphore::new(Arc::clone(permits)),
            held: None,
            long,
        }
    }

    /// Ready when a message of which `begun` bytes were read may be read on.
    fn poll(&mut self, cx: &mut Context<'_>, begun: usize) -> Poll<()> {
        if begun <= self.long {
            self.held = None;
        } else if self.held.is_none() {
            // It is never closed.
            self.held = ready!(self.permits.poll_acquire(cx));
        }
        Poll::Ready(())
    }
}

impl<R> ReadBuffer<R> {
    /// `initial` holds bytes of the stream that were read before.
    fn new(io: R, initial: BytesMut) -> Self {
        Self {
            io,
            pool: BufferPool::new(&initial),
            bytes: initial,
            read_size: SMALL,
            idle_timer: None,
            timer_runs: false,
        }
    }

    /// Releases the buffer for good.
    fn release(&mut self) {
        self.bytes = BytesMut::new();
        self.pool.reset();
        self.idle_timer = None;
    }

    /// Releases a large buffer when nothing has arrived for a while. Called when there is nothing
    /// to read, so that the timer wakes the task.
    fn poll_shrink(&mut self, cx: &mut Context<'_>) {
        if self.pool.size() <= SMALL || !self.bytes.is_empty() {
            return;
        }
        let timer = self
            .idle_timer
            .get_or_insert_with(|| Box::pin(sleep(SHRINK_AFTER)));
        if !self.timer_runs {
            timer.as_mut().reset(Instant::now() + SHRINK_AFTER);
            self.timer_runs = true;
        }
        if timer.as_mut().poll(cx).is_ready() {
            self.release();
            self.read_size = SMALL;
            self.timer_runs = false;
        }
    }
}

impl<R: AsyncRead + Unpin> ReadBuffer<R> {
    /// Reads once; zero bytes are the end of the stream.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.pool.shrink(&mut self.bytes);
        if self.bytes.capacity() - self.bytes.len() < MIN_ROOM {
            self.pool.make_room(&mut self.bytes, self.read_size);
        }
        let room = (self.bytes.capacity() - self.bytes.len()).min(LARGE);
        let read = ready!(poll_into(&mut self.io, &mut self.bytes, room, cx))?;
        if read == room {
            self.read_size = (self.read_size * 2).min(LARGE);
        }
        self.timer_runs = false;
        Poll::Ready(Ok(read))
    }
}

/// Whether a stream begins with a request line of HTTP; `None` while that is not known. A line that
/// begins like one and is very long counts as one.
fn is_http(begun: &[u8]) -> Option<bool> {
    let end = memchr::memchr(b'\n', begun);
    let line = &begun[..end.unwrap_or(begun.len())];
    let method = line.iter().take_while(|byte| byte.is_ascii_alphabetic());
    let begins = match method.count() {
        0 => line.is_empty(),
        method => line.get(method).is_none_or(|byte| *byte == b' '),
    };
    match end {
        Some(_) => Some(begins && line.windows(6).any(|part| part == b" HTTP/")),
        None if begins && line.len() <= MAX_REQUEST_LINE => None,
        None => Some(begins),
    }
}

fn poll_into<R: AsyncRead + Unpin>(
    io: &mut R,
    target: &mut BytesMut,
    max: usize,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut target = target.limit(max);
    // The future holds nothing between polls, so making one for each poll loses nothing.
    pin!(io.read_buf(&mut target)).poll(cx)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;
    use tokio::time::advance;

    use super::*;

    /// The longest message, in bytes.
    const MAX: usize = 1 << 20;

    fn reader<R>(io: R) -> Reader<R> {
        Reader::new(io, Arc::default(), MAX, &Setup::default())
    }

    /// The next frame, and the end and the size of the memory it shares with the buffer; `None`
    /// when it has memory of its own.
    fn next(reader: &mut Reader<&[u8]>) -> Option<(Frame, Option<(usize, usize)>)> {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let Poll::Ready(received) = reader.poll_next(&mut cx) else {
            panic!("a slice is never waited for");
        };
        let Ok(Decoded::Frame(frame)) = received? else {
            panic!("no frame");
        };
        let buffer = reader.input.bytes.as_ptr().addr();
        // Nothing but the line end lies between a frame and what is left of its memory.
        let shared = frame.as_bytes().as_ptr_range().end.addr() + 1 == buffer;
        let end = buffer + reader.input.bytes.capacity();
        Some((frame, shared.then_some((end, reader.input.pool.size()))))
    }

    /// Bytes of the frames in `stream`, and of memory, if no frame is dropped.
    fn retained(stream: &[u8]) -> (usize, usize) {
        let mut reader = reader(stream);
        let mut frames = Vec::new();
        let mut memories = BTreeMap::new();
        let (mut bytes, mut copied) = (0, 0);
        while let Some((frame, shared)) = next(&mut reader) {
            bytes += frame.len();
            match shared {
                Some((end, size)) => {
                    memories.insert(end, size);
                }
                None => copied += frame.len(),
            }
            frames.push(frame);
        }
        (bytes, copied + memories.values().sum::<usize>())
    }

    /// Neither a message of the greatest length nor a longer one, which is skipped, leaves its memory
    /// with the link.
    #[test]
    fn large_message_leaves_no_memory_behind() {
        for framing in [Framing::Ndjson, Framing::ContentLength] {
            for length in [MAX - 2, 4 * MAX] {
                let mut stream = BytesMut::new();
                let large = format!("[{}]", "1".repeat(length));
                framing.encode(&Frame::from(large), &mut stream);
                for _ in 0..100_000 {
                    framing.encode(&Frame::from("[2]"), &mut stream);
                }
                let mut reader = reader(&stream[..]);
                let mut cx = Context::from_waker(std::task::Waker::noop());
                let Poll::Ready(Some(Ok(received))) = reader.poll_next(&mut cx) else {
                    panic!("the large message was sent first");
                };
                let is_frame = matches!(received, Decoded::Frame(_));
                assert_eq!(is_frame, length < MAX, "{framing:?}");
                drop(received);
                for _ in 0..50_000 {
                    assert_eq!(next(&mut reader).expect("it was sent").0.as_bytes(), b"[2]");
                }
                let size = reader.input.pool.size();
                assert!(size <= 2 * LARGE, "{framing:?}, {length}: {size}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn retained_memory_is_bounded_by_queued_bytes(
            parts in proptest::collection::vec(
                (prop_oneof![8..40_usize, 100..3000_usize, 8000..90_000_usize],
                 prop_oneof![Just(0_usize), 0..300_usize, 0..90_000_usize],
                 1..12_usize),
                1..6),
        ) {
            let mut stream = Vec::new();
            for (length, gap, count) in parts {
                for _ in 0..count {
                    stream.push(b'{');
                    stream.resize(stream.len() + length, b'x');
                    stream.push(b'\n');
                    stream.resize(stream.len() + gap, b' ');
                    stream.push(b'\n');
                }
            }
            let (bytes, memory) = retained(&stream);
            // Besides what is queued: two buffers, which a gap between messages has made large.
            prop_assert!(memory <= 8 * bytes + (384 << 10), "{memory} for {bytes}");
        }
    }

    /// A burst makes the buffer large; a second of silence makes it small again.
    #[tokio::test(start_paused = true)]
    async fn idle_link_frees_its_buffer() {
        let (near, mut far) = tokio::io::duplex(1 << 20);
        let mut reader = reader(near);
        let line = format!("{{\"x\":\"{}\"}}\n", "x".repeat(5000));
        let burst = line.repeat(100);
        far.write_all(burst.as_bytes()).await.expect("it has room");
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut count = 0;
        while reader.poll_next(&mut cx).is_ready() {
            count += 1;
        }
        assert_eq!(count, 100);
        assert!(
            reader.input.pool.size() >= LARGE,
            "{}",
            reader.input.pool.size()
        );
        advance(SHRINK_AFTER / 2).await;
        assert!(reader.poll_next(&mut cx).is_pending());
        assert!(reader.input.pool.size() >= LARGE, "it was released at once");
        advance(SHRINK_AFTER).await;
        assert!(reader.poll_next(&mut cx).is_pending());
        assert_eq!(
            (reader.input.pool.size(), reader.input.bytes.capacity()),
            (0, 0)
        );
        // Reading goes on.
        far.write_all(b"{}\n").await.expect("it has room");
        assert!(reader.poll_next(&mut cx).is_ready());
        assert!(
            reader.input.pool.size() <= SMALL,
            "{}",
            reader.input.pool.size()
        );
    }
}
