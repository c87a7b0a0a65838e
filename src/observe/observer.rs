//! The trait of observers, and what they observe.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use conversation::{Cause, MessageSummary, Needs, Note, SilentRequest};
use jsonrpc::{Envelope, Frame, Side};

/// Something that happened in a conversation.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A frame was received from a side.
    Received(Side, &'a Frame),
    /// The envelope of the frame received last. Only sent if an observer needs it.
    Parsed(&'a Envelope),
    /// A frame was handed to the link of a side.
    Sent(Side, &'a Frame),
    /// Something else than a frame that was forwarded.
    Note(&'a Note),
    /// Everything that the last received frame causes is done: so many frames wait now for the
    /// client and for the agent, in the order in which they will be sent.
    Settled([usize; 2]),
    /// A message was forwarded. Only sent if an observer needs summaries, as all that follow.
    Forwarded(&'a MessageSummary),
    /// A side was not read for so long, because others were behind.
    Paused(Side, Duration),
    /// Messages of a side were read at once, and queued for the other one in this time.
    Processed {
        /// The side they came from.
        from: Side,
        /// The number of messages.
        messages: u64,
        /// The time that all of them took.
        took: Duration,
    },
    /// So many bytes wait for the client and for the agent, until more can be done.
    Queued([usize; 2]),
    /// The connection of the client and of the agent is lost, since then, or there is one; and so
    /// many bytes wait for the next one.
    Away([Option<(Instant, usize)>; 2]),
    /// The requests whose answers have not come for long.
    Silent(&'a [SilentRequest]),
    /// The conversation has ended.
    Ended(&'a Cause, Instant),
}

/// An observer of one conversation.
pub trait Observer: Send {
    /// Handles an event. Must return quickly.
    fn on_event(&mut self, event: &Event<'_>);

    /// What it needs besides frames and notes.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Called when no more can be done at the moment. What was collected should not wait for the
    /// next event.
    fn flush(&mut self) {}

    /// Ready unless it is so far behind that nothing more should be received for a while; it then
    /// wakes the task.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = cx;
        Poll::Ready(())
    }
}
