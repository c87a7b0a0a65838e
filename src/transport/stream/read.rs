//! Frames out of a stream of bytes.
//!
//! The bytes of a message are read once and not copied: frames share the read buffer. The
//! buffer grows while a peer sends much and is given back a moment after it has stopped, for most
//! links are idle most of the time. A peer whose messages are little beside what it sends around
//! them gets them copied (see `thrift`). Not here: where a message ends (see `wire::framing`).

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, Sleep, sleep};

use super::Spoken;
use super::thrift::Thrift;
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
    cutter: Cutter,
    spoken: Spoken,
    told: bool,
    /// Room made before a read.
    want: usize,
    /// What is known of the memory behind `buffer`.
    memory: Thrift,
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
            cutter: Cutter::new(framing, max, &setup.limits),
            told: framing.is_some(),
            spoken,
            want: SMALL,
            memory: Thrift::default(),
            stage: Stage::Open,
            quiet: None,
            timing: false,
        }
    }

    /// Ends the reading and gives the buffer back.
    fn done(&mut self) {
        self.stage = Stage::Done;
        self.buffer = BytesMut::new();
        self.memory.is_given_back();
        self.quiet = None;
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
        if self.memory.size() <= SMALL || !self.buffer.is_empty() {
            return;
        }
        let quiet = self.quiet.get_or_insert_with(|| Box::pin(sleep(KEPT)));
        if !self.timing {
            quiet.as_mut().reset(Instant::now() + KEPT);
            self.timing = true;
        }
        if quiet.as_mut().poll(cx).is_ready() {
            self.buffer = BytesMut::new();
            self.memory.is_given_back();
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
            self.memory.make_room(&mut self.buffer, self.want);
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
                Ok(Some(cut)) => return Poll::Ready(Some(Ok(self.memory.share(cut)))),
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
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;
    use tokio::time::advance;

    use super::*;
    use crate::transport::Tls;
    use crate::wire::Frame;

    fn reader<R>(io: R) -> Reader<R> {
        let setup = Setup {
            limits: std::sync::Arc::default(),
            framing: None,
            tls: Tls::default(),
        };
        Reader::new(io, Spoken::new(None), 1 << 24, &setup)
    }

    /// The next frame, and of the memory it shares with the buffer, the end and the size; nothing
    /// when it has memory of its own.
    fn next(reader: &mut Reader<&[u8]>) -> Option<(Frame, Option<(usize, usize)>)> {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let Poll::Ready(heard) = reader.poll_next(&mut cx) else {
            panic!("a slice is never waited for");
        };
        let Ok(Cut::Frame(frame)) = heard? else {
            panic!("no frame");
        };
        let buffer = reader.buffer.as_ptr().addr();
        // Nothing but the line's end lies between a frame and what is left of its memory.
        let shared = frame.as_bytes().as_ptr_range().end.addr() + 1 == buffer;
        let end = buffer + reader.buffer.capacity();
        Some((frame, shared.then_some((end, reader.memory.size()))))
    }

    /// Bytes of the frames in `stream`, and of memory, if none of them is let go.
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

    #[test]
    fn blank_lines_around_small_messages_are_not_kept() {
        let stream = format!("{{\"id\":1}}\n{}", (" ".repeat(1023) + "\n").repeat(64)).repeat(300);
        let (bytes, memory) = retained(stream.as_bytes());
        assert_eq!(bytes, 300 * 8);
        assert!(memory <= 256 << 10, "{memory}");
    }

    #[test]
    fn a_stream_of_messages_stays_in_one_memory() {
        let line = format!("{{\"x\":\"{}\"}}\n", "x".repeat(180));
        let stream = line.repeat(20_000);
        let mut reader = reader(stream.as_bytes());
        let mut memories = BTreeMap::new();
        for count in 0..20_000 {
            // Each is let go before the next one is read.
            let (_, shared) = next(&mut reader).expect("there are more");
            let (end, size) = shared.expect("it is not copied");
            if count > 2000 {
                memories.insert(end, size);
            }
        }
        // One, whose end is where the last room was made; the size tells it from another.
        let lowest = memories.keys().next().expect("there is one");
        let highest = memories.keys().last().expect("there is one");
        assert!(highest - lowest <= reader.memory.size(), "{memories:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn what_is_retained_is_a_small_multiple_of_what_is_queued(
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
            prop_assert!(memory <= 8 * bytes + (256 << 10), "{memory} for {bytes}");
        }
    }

    /// A burst makes the buffer large; a second of silence makes it small again.
    #[tokio::test(start_paused = true)]
    async fn a_quiet_link_gives_its_memory_back() {
        let (near, mut far) = tokio::io::duplex(1 << 20);
        let mut reader = reader(near);
        let line = format!("{{\"x\":\"{}\"}}\n", "x".repeat(5000));
        let burst = line.repeat(100);
        far.write_all(burst.as_bytes()).await.expect("it has room");
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut heard = 0;
        while reader.poll_next(&mut cx).is_ready() {
            heard += 1;
        }
        assert_eq!(heard, 100);
        assert!(reader.memory.size() >= LARGE, "{}", reader.memory.size());
        advance(KEPT / 2).await;
        assert!(reader.poll_next(&mut cx).is_pending());
        assert!(
            reader.memory.size() >= LARGE,
            "it was kept for no time at all"
        );
        advance(KEPT).await;
        assert!(reader.poll_next(&mut cx).is_pending());
        assert_eq!((reader.memory.size(), reader.buffer.capacity()), (0, 0));
        // And it goes on.
        far.write_all(line.as_bytes()).await.expect("it has room");
        assert!(reader.poll_next(&mut cx).is_ready());
        assert!(
            reader.memory.size() <= 2 * SMALL,
            "{}",
            reader.memory.size()
        );
    }
}
