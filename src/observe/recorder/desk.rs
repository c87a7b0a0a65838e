//! The thread that writes all recordings of this program.
//!
//! It sleeps until there are events, waits a moment for more, and writes all of them.
//! `recording_writer` does the writing.

use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::queue::Queue;
use super::remarks::Remarks;
use super::tap::Recorder;
use super::work::{Plan, Work};

/// How long events may wait before they are written.
const MOMENT: Duration = Duration::from_millis(20);

/// The interval at which recordings without events are checked.
const IDLE: Duration = Duration::from_secs(1);

/// The thread, and its queue of conversations.
#[derive(Debug, Default)]
pub struct Desk {
    tray: Mutex<Tray>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct Tray {
    /// Conversations with new events.
    ready: Vec<Arc<Queue>>,
    /// All conversations.
    all: Vec<Weak<Queue>>,
    /// The thread sleeps until it is notified.
    asleep: bool,
    /// The thread should not wait for more events.
    hurry: bool,
}

impl Desk {
    /// Starts the thread. It ends with the program.
    ///
    /// # Errors
    /// When no further thread can be started.
    pub fn start() -> io::Result<Arc<Self>> {
        let desk = Arc::new(Self::default());
        let own = Arc::clone(&desk);
        std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || own.run())?;
        Ok(desk)
    }

    /// Begins a recording: returns its observer, and a handle for events from elsewhere.
    ///
    /// # Errors
    /// When its first file cannot be created.
    pub fn open(self: &Arc<Self>, plan: Plan) -> io::Result<(Recorder, Remarks)> {
        let began = Instant::now();
        let policy = plan.policy;
        let tally = Arc::clone(&plan.tally);
        let queue = Arc::new(Queue::new(Work::begin(plan, began)?));
        tally.begun(&queue);
        let mut tray = self.lock();
        tray.all.retain(|queue| queue.strong_count() > 0);
        tray.all.push(Arc::downgrade(&queue));
        drop(tray);
        let remarks = Remarks {
            queue,
            desk: Arc::clone(self),
            policy,
            began,
            tally,
        };
        Ok((Recorder::new(remarks.clone()), remarks))
    }

    /// Tells the thread about a conversation with new events, to be written soon or at once.
    pub(super) fn tell(&self, queue: Option<Arc<Queue>>, hurry: bool) {
        let mut tray = self.lock();
        tray.ready.extend(queue);
        tray.hurry |= hurry;
        if tray.asleep || hurry {
            tray.asleep = false;
            drop(tray);
            self.bell.notify_one();
        }
    }

    fn run(&self) {
        loop {
            let ready = self.wait();
            for queue in &ready {
                serve(queue, |work| work.turn(queue));
            }
            if ready.is_empty() {
                self.look_around();
            }
        }
    }

    /// Waits until there are events; returns an empty list when there were none for a while.
    fn wait(&self) -> Vec<Arc<Queue>> {
        let mut tray = self.lock();
        if tray.ready.is_empty() {
            tray.asleep = true;
            let empty = |tray: &mut Tray| tray.ready.is_empty();
            self.bell.wait_while_for(&mut tray, empty, IDLE);
            tray.asleep = false;
        }
        if !tray.ready.is_empty() {
            let calm = |tray: &mut Tray| !tray.hurry;
            self.bell.wait_while_for(&mut tray, calm, MOMENT);
        }
        tray.hurry = false;
        std::mem::take(&mut tray.ready)
    }

    fn look_around(&self) {
        let mut all = std::mem::take(&mut self.lock().all);
        let now = Instant::now();
        all.retain(|queue| {
            let Some(queue) = queue.upgrade() else {
                return false;
            };
            serve(&queue, |work| {
                work.glance(now);
                false
            })
        });
        self.lock().all.append(&mut all);
    }

    fn lock(&self) -> MutexGuard<'_, Tray> {
        self.tray.lock()
    }
}

/// Calls `does` with the writer, and ends the recording when it returns `true`. Returns whether the
/// recording continues.
fn serve(queue: &Queue, does: impl FnOnce(&mut Work) -> bool) -> bool {
    let mut place = queue.work.lock();
    let Some(work) = place.as_mut() else {
        return false;
    };
    if does(work) {
        if let Some(work) = place.take() {
            work.end();
        }
        return false;
    }
    true
}
