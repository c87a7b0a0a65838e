//! The thread that writes all recordings of this program.
//!
//! It sleeps until there are events, waits a moment for more, and writes all of them.
//! `recording_writer` does the writing.

use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::recording_writer::RecordingWriter;
use panics::{self, Place, SharedMutex};

/// How long events may wait before they are written.
const BATCH_DELAY: Duration = Duration::from_millis(20);

/// The interval at which all recordings are checked for marks and unsynced data.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The thread, and its queue of conversations.
#[derive(Debug, Default)]
pub struct WriterThread {
    state: SharedMutex<State>,
    wakeup: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Conversations with new events.
    ready: Vec<Arc<WriterSlot>>,
    /// All conversations.
    all: Vec<Weak<WriterSlot>>,
    /// The thread sleeps until it is notified.
    is_idle: bool,
    /// The thread should not wait for more events.
    urgent: bool,
}

/// What writes a recording; `None` once everything is written. Only the thread locks it.
pub(super) type WriterSlot = Mutex<Option<RecordingWriter>>;

impl WriterThread {
    /// Starts the thread. It ends with the program.
    ///
    /// # Errors
    /// When no further thread can be started.
    pub fn start() -> io::Result<Arc<Self>> {
        let thread = Arc::new(Self::default());
        let own = Arc::clone(&thread);
        std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || own.run())?;
        Ok(thread)
    }

    /// Adds a recording, of whose events the thread can be notified by the slot that is returned.
    pub(super) fn add(&self, writer: RecordingWriter) -> Arc<WriterSlot> {
        let slot = Arc::new(Mutex::new(Some(writer)));
        let mut state = self.state.lock();
        state.all.retain(|slot| slot.strong_count() > 0);
        state.all.push(Arc::downgrade(&slot));
        slot
    }

    /// Tells the thread about a conversation with new events, to be written soon or at once.
    pub(super) fn notify(&self, slot: Option<Arc<WriterSlot>>, urgent: bool) {
        let mut state = self.state.lock();
        state.ready.extend(slot);
        state.urgent |= urgent;
        if state.is_idle || urgent {
            state.is_idle = false;
            drop(state);
            self.wakeup.notify_one();
        }
    }

    fn run(&self) {
        let mut checked = Instant::now();
        loop {
            for slot in &self.wait() {
                with_writer(slot, RecordingWriter::drain);
            }
            if checked.elapsed() >= CHECK_INTERVAL {
                checked = Instant::now();
                self.check();
            }
        }
    }

    /// Waits until there are events; returns an empty list when there were none for a while.
    fn wait(&self) -> Vec<Arc<WriterSlot>> {
        let mut state = self.state.lock();
        if state.ready.is_empty() {
            state.is_idle = true;
            let empty = |state: &mut State| state.ready.is_empty();
            self.wakeup
                .wait_while_for(state.inner(), empty, CHECK_INTERVAL);
            state.is_idle = false;
        }
        if !state.ready.is_empty() {
            let calm = |state: &mut State| !state.urgent;
            self.wakeup.wait_while_for(state.inner(), calm, BATCH_DELAY);
        }
        state.urgent = false;
        std::mem::take(&mut state.ready)
    }

    fn check(&self) {
        let mut all = std::mem::take(&mut self.state.lock().all);
        all.retain(|slot| {
            let Some(slot) = slot.upgrade() else {
                return false;
            };
            with_writer(&slot, |writer| {
                writer.check();
                false
            })
        });
        self.state.lock().all.append(&mut all);
    }
}

/// Calls `does` with the writer, and ends the recording when it returns `true`. Returns whether the
/// recording continues.
fn with_writer(slot: &WriterSlot, does: impl FnOnce(&mut RecordingWriter) -> bool) -> bool {
    let mut slot = slot.lock();
    let Some(writer) = slot.as_mut() else {
        return false;
    };
    let over = panics::catch(Place::Recording, || does(writer));
    if over.is_none() {
        writer.fail_after_panic();
    }
    if over != Some(false) {
        if let Some(work) = slot.take() {
            work.report();
        }
        return false;
    }
    true
}
