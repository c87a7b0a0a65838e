//! The thread that writes all recordings of this program.
//!
//! It sleeps until there are events, waits a moment for more, and writes all of them.
//! `recording_writer` does the writing.

use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::capture::Recorder;
use super::handle::RecorderHandle;
use super::queue::Queue;
use super::recording_writer::{RecordingPlan, RecordingWriter};

/// How long events may wait before they are written.
const BATCH_DELAY: Duration = Duration::from_millis(20);

/// The interval at which recordings without events are checked.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// The thread, and its queue of conversations.
#[derive(Debug, Default)]
pub struct WriterThread {
    state: Mutex<State>,
    wakeup: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Conversations with new events.
    ready: Vec<Arc<Queue>>,
    /// All conversations.
    all: Vec<Weak<Queue>>,
    /// The thread sleeps until it is notified.
    is_idle: bool,
    /// The thread should not wait for more events.
    urgent: bool,
}

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

    /// Begins a recording: returns its observer, and a handle for events from elsewhere.
    ///
    /// # Errors
    /// When its first file cannot be created.
    pub fn open(self: &Arc<Self>, plan: RecordingPlan) -> io::Result<(Recorder, RecorderHandle)> {
        let began = Instant::now();
        let policy = plan.policy;
        let stats = Arc::clone(&plan.stats);
        let queue = Arc::new(Queue::new(RecordingWriter::begin(plan, began)?));
        stats.add_queue(&queue);
        let mut state = self.lock();
        state.all.retain(|queue| queue.strong_count() > 0);
        state.all.push(Arc::downgrade(&queue));
        drop(state);
        let handle = RecorderHandle {
            queue,
            thread: Arc::clone(self),
            policy,
            began,
            stats,
        };
        Ok((Recorder::new(handle.clone()), handle))
    }

    /// Tells the thread about a conversation with new events, to be written soon or at once.
    pub(super) fn notify(&self, queue: Option<Arc<Queue>>, urgent: bool) {
        let mut state = self.lock();
        state.ready.extend(queue);
        state.urgent |= urgent;
        if state.is_idle || urgent {
            state.is_idle = false;
            drop(state);
            self.wakeup.notify_one();
        }
    }

    fn run(&self) {
        loop {
            let ready = self.wait();
            for queue in &ready {
                with_writer(queue, |work| work.drain(queue));
            }
            if ready.is_empty() {
                self.check_idle();
            }
        }
    }

    /// Waits until there are events; returns an empty list when there were none for a while.
    fn wait(&self) -> Vec<Arc<Queue>> {
        let mut state = self.lock();
        if state.ready.is_empty() {
            state.is_idle = true;
            let empty = |state: &mut State| state.ready.is_empty();
            self.wakeup.wait_while_for(&mut state, empty, IDLE_INTERVAL);
            state.is_idle = false;
        }
        if !state.ready.is_empty() {
            let calm = |state: &mut State| !state.urgent;
            self.wakeup.wait_while_for(&mut state, calm, BATCH_DELAY);
        }
        state.urgent = false;
        std::mem::take(&mut state.ready)
    }

    fn check_idle(&self) {
        let mut all = std::mem::take(&mut self.lock().all);
        let now = Instant::now();
        all.retain(|queue| {
            let Some(queue) = queue.upgrade() else {
                return false;
            };
            with_writer(&queue, |work| {
                work.check_marks(now);
                false
            })
        });
        self.lock().all.append(&mut all);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Calls `does` with the writer, and ends the recording when it returns `true`. Returns whether the
/// recording continues.
fn with_writer(queue: &Queue, does: impl FnOnce(&mut RecordingWriter) -> bool) -> bool {
    let mut slot = queue.writer.lock();
    let Some(writer) = slot.as_mut() else {
        return false;
    };
    if does(writer) {
        if let Some(work) = slot.take() {
            work.report();
        }
        return false;
    }
    true
}
