//! The observer that counts one conversation.
//!
//! What it counts stays with the conversation until a scrape collects it, or the conversation ends.
//! So a message costs no atomic operation; a turn of the loop takes one lock, which only a scrape
//! contends for.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use parking_lot::{ArcMutexGuard, Mutex, RawMutex};

use super::labels::Closing;
use super::open_conversation::OpenConversation;
use super::shared::Metrics;
use super::stats::Parties;
use crate::{Event, Observer};
use conversation::Needs;

/// Counts one conversation. Dropping it counts the end.
pub struct ConversationMetrics {
    metrics: Arc<Metrics>,
    conversation: Arc<Mutex<OpenConversation>>,
    /// Held from the first event of a turn of the conversation's loop to the end of the turn.
    held: Option<ArcMutexGuard<RawMutex, OpenConversation>>,
    number: u64,
    closing: Closing,
    ended: Option<Instant>,
}

impl Metrics {
    /// A conversation begins. The observer counts it until it is dropped.
    #[must_use]
    pub fn begin(self: &Arc<Self>, parties: Parties) -> ConversationMetrics {
        let number = self.next.fetch_add(1, Relaxed);
        for (side, transport) in parties.transports.into_iter().enumerate() {
            let place = [side, transport as usize];
            self.series.connections.count(place);
            // The series stays when the connection does not.
            let _ = self.series.connections_open.at(place);
        }
        let conversation = OpenConversation::new(
            Arc::clone(&self.series),
            Arc::clone(&self.registry),
            parties,
        );
        let conversation = Arc::new(Mutex::new(conversation));
        self.live.lock().insert(number, Arc::clone(&conversation));
        ConversationMetrics {
            metrics: Arc::clone(self),
            conversation,
            held: None,
            number,
            closing: Closing::Stopped,
            ended: None,
        }
    }
}

impl ConversationMetrics {
    fn conversation(&mut self) -> &mut OpenConversation {
        self.held
            .get_or_insert_with(|| self.conversation.lock_arc())
    }
}

impl Observer for ConversationMetrics {
    fn on_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Received(from, frame) => {
                let (conversation, bytes) = (self.conversation(), frame.len() as u64);
                conversation.messages[*from as usize] += 1;
                conversation.bytes[*from as usize] += bytes;
                conversation.bytes(*from, 0, bytes);
            }
            Event::Sent(to, frame) => self.conversation().bytes(*to, 1, frame.len() as u64),
            Event::Note(note) => self.conversation().note(note),
            Event::Forwarded(summary) => self.conversation().passed(summary),
            Event::Paused(side, took) => self.metrics.paused(*side, *took),
            Event::Processed {
                from,
                messages,
                took,
            } => self.conversation().processed(*from, *messages, *took),
            Event::Queued(bytes) => self.conversation().queued = *bytes,
            Event::Away(away) => self.conversation().away = *away,
            Event::Silent(requests) => self.conversation().set_silent(requests),
            Event::Ended(cause, now) => {
                self.closing = Closing::of(cause);
                self.ended = Some(*now);
            }
            Event::Parsed(_) | Event::Settled(_) => {}
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            summaries: true,
            ..Needs::default()
        }
    }

    /// Must be called at the end of each turn: a scrape waits for it.
    fn flush(&mut self) {
        self.held = None;
    }
}

jsonrpc::opaque_debug!(ConversationMetrics(number));

impl Drop for ConversationMetrics {
    fn drop(&mut self) {
        let ended = self.ended;
        let conversation = self.conversation();
        conversation.collect();
        let last = ended.unwrap_or(conversation.last);
        let lasted = last.saturating_duration_since(conversation.parties.since);
        let transports = conversation.parties.transports;
        self.held = None;
        self.metrics
            .ended(self.number, transports, lasted, self.closing);
    }
}
