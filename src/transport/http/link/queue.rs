//! A queue between the tasks of one link, bounded in items and in bytes.
//!
//! A channel of tokio's counts items only, and ten of them may be ten bytes or a hundred megabytes.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

use parking_lot::{Mutex, MutexGuard};

/// Items that may wait.
const MAX_ITEMS: usize = 256;
/// Bytes that may wait, beyond one item.
const MAX_BYTES: usize = 256 << 10;

/// A queue with any number of senders and one receiver.
#[derive(Debug)]
pub(super) struct Queue<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
    /// Nothing more is put in.
    ended: bool,
    receiver: Option<Waker>,
    senders: Vec<Waker>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self(Mutex::new(State {
            items: VecDeque::new(),
            bytes: 0,
            ended: false,
            receiver: None,
            senders: Vec::new(),
        }))
    }
}

impl<T> Queue<T> {
    /// Ready when there is room: `false` when there never will be, because the queue has ended.
    pub(super) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<bool> {
        self.lock().poll_room(cx)
    }

    /// Puts an item in, whether there is room or not. After the end it is dropped.
    pub(super) fn put(&self, item: T, bytes: usize) {
        self.lock().put(item, bytes);
    }

    /// Puts an item in once there is room; `false` when the queue has ended.
    pub(super) async fn push(&self, item: T, bytes: usize) -> bool {
        let mut item = Some(item);
        poll_fn(|cx| {
            let mut state = self.lock();
            let open = std::task::ready!(state.poll_room(cx));
            if let Some(item) = item.take().filter(|_| open) {
                state.put(item, bytes);
            }
            Poll::Ready(open)
        })
        .await
    }

    /// The next item; `None` when the queue has ended and holds nothing.
    pub(super) fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.lock();
        match state.items.pop_front() {
            Some((item, bytes)) => {
                state.bytes -= bytes;
                state.senders.drain(..).for_each(Waker::wake);
                Poll::Ready(Some(item))
            }
            None if state.ended => Poll::Ready(None),
            None => {
                state.receiver = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// As [`Queue::poll_take`].
    pub(super) async fn take(&self) -> Option<T> {
        poll_fn(|cx| self.poll_take(cx)).await
    }

    /// Ends the queue; what is in it can still be taken.
    pub(super) fn end(&self) {
        self.lock().end();
    }

    /// Ends the queue with one last item, unless it has ended.
    pub(super) fn end_with(&self, item: T) {
        let mut state = self.lock();
        state.put(item, 0);
        state.end();
    }

    /// Whether the queue has ended; items may still be in it.
    pub(super) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock()
    }
}

impl<T> State<T> {
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if self.ended {
            return Poll::Ready(false);
        }
        if self.items.len() < MAX_ITEMS && self.bytes < MAX_BYTES {
            return Poll::Ready(true);
        }
        if !self.senders.iter().any(|known| known.will_wake(cx.waker())) {
            self.senders.push(cx.waker().clone());
        }
        Poll::Pending
    }

    fn put(&mut self, item: T, bytes: usize) {
        if !self.ended {
            self.bytes += bytes;
            self.items.push_back((item, bytes));
            self.wake_receiver();
        }
    }

    fn end(&mut self) {
        self.ended = true;
        self.wake_receiver();
        self.senders.drain(..).for_each(Waker::wake);
    }

    fn wake_receiver(&mut self) {
        if let Some(receiver) = self.receiver.take() {
            receiver.wake();
        }
    }
}
