//! A queue between tasks, bounded in items and in bytes, and the receiving half of a link that
//! reads one.
//!
//! A channel of tokio's counts items only, and ten of them may be ten bytes or a hundred megabytes.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::{FrameStream, LinkError, forward};
use jsonrpc::framing::Decoded;

/// A queue with any number of senders and one receiver.
#[derive(Debug)]
pub(super) struct Queue<T> {
    max_items: usize,
    max_bytes: usize,
    state: Mutex<State<T>>,
}

/// What the peer of a link has sent.
pub(super) type Received = Result<Decoded, LinkError>;

/// The receiving half of a link.
pub(super) struct Receiver(pub(super) Arc<Queue<Received>>);

#[derive(Debug)]
struct State<T> {
    items: VecDeque<(T, usize)>,
    /// Items and bytes in the queue, and those that have room there and are about to come.
    count: usize,
    bytes: usize,
    /// Nothing more is accepted.
    ended: bool,
    /// What follows all items.
    last: Option<T>,
    receiver: Option<Waker>,
    senders: Vec<Waker>,
}

impl<T> Queue<T> {
    pub(super) fn new(max_items: usize, max_bytes: usize) -> Self {
        Self {
            max_items,
            max_bytes,
            state: Mutex::new(State {
                items: VecDeque::new(),
                count: 0,
                bytes: 0,
                ended: false,
                last: None,
                receiver: None,
                senders: Vec::new(),
            }),
        }
    }

    /// Ready when there is room for an item of that size, which any has in an empty queue: `false`
    /// when there never will be, because the queue has ended.
    pub(super) fn poll_room(&self, cx: &Context<'_>, bytes: usize) -> Poll<bool> {
        let mut state = self.state.lock();
        let fits = state.count < self.max_items && state.bytes + bytes <= self.max_bytes;
        if state.ended || state.count == 0 || fits {
            return Poll::Ready(!state.ended);
        }
        if !state
            .senders
            .iter()
            .any(|known| known.will_wake(cx.waker()))
        {
            state.senders.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Counts an item that is put in with `fill`, also after the end.
    pub(super) fn reserve(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.count += 1;
        state.bytes += bytes;
    }

    /// Puts in an item that is counted.
    pub(super) fn fill(&self, item: T, bytes: usize) {
        let mut state = self.state.lock();
        state.items.push_back((item, bytes));
        state.receiver.take().into_iter().for_each(Waker::wake);
    }

    /// Puts an item in, whether there is room or not. After the end it is dropped.
    pub(super) fn put(&self, item: T, bytes: usize) {
        if !self.has_ended() {
            self.reserve(bytes);
            self.fill(item, bytes);
        }
    }

    /// Puts an item in once there is room; `false` when the queue has ended.
    pub(super) async fn push(&self, item: T, bytes: usize) -> bool {
        let open = poll_fn(|cx| self.poll_room(cx, bytes)).await;
        self.put(item, bytes);
        open
    }

    /// The next item; `None` when the queue has ended and holds nothing.
    pub(super) fn poll_take(&self, cx: &Context<'_>) -> Poll<Option<T>> {
        let mut state = self.state.lock();
        if let Some((item, bytes)) = state.items.pop_front() {
            state.count -= 1;
            state.bytes -= bytes;
            state.senders.drain(..).for_each(Waker::wake);
            return Poll::Ready(Some(item));
        }
        if state.ended && state.count == 0 {
            return Poll::Ready(state.last.take());
        }
        state.receiver = Some(cx.waker().clone());
        Poll::Pending
    }

    /// As [`Queue::poll_take`].
    pub(super) async fn take(&self) -> Option<T> {
        poll_fn(|cx| self.poll_take(cx)).await
    }

    /// Ends the queue, with one last item, unless it has ended; what is in it can still be taken.
    pub(super) fn end(&self, last: Option<T>) {
        let mut state = self.state.lock();
        if !state.ended {
            state.ended = true;
            state.last = last;
            state.receiver.take().into_iter().for_each(Waker::wake);
            state.senders.drain(..).for_each(Waker::wake);
        }
    }

    /// Whether the queue has ended; items may still be in it.
    pub(super) fn has_ended(&self) -> bool {
        self.state.lock().ended
    }
}

impl FrameStream for Receiver {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Received>> {
        self.0.poll_take(cx)
    }

    forward!(self => (); poll_lost, ended_cleanly, has_progressed, tells_loss);
}
