//! Worker threads for clients: the load of one client is isolated from the others.
//!
//! Each worker is a thread with a runtime of its own, sockets and timers included; a client's
//! sockets, conversation and agent stay on the worker they were given.
//!
//! # Decisions
//!
//! **The system's scheduler isolates the clients.** It prefers a thread that has slept over one
//! that has worked. With threads that share all tasks, the thread that wakes for a quiet client's
//! message has mostly just processed a busy one, has used up its time slice, and waits for
//! milliseconds behind the busy client's own processes. No budget inside the runtime helps against
//! that; a thread for each does. It also saves moving a message between threads. On two processors
//! and with one runtime for all, a flood in the same relay multiplied the p99 of another client by 8
//! to 15 (`tests/peers/flood.py`).
//!
//! **A bounded number, and the least loaded first.** A thread costs some 40 KiB. As long as there
//! are no more clients than workers, each has its own; after that a busy client delays those on its
//! worker by at most one turn of the loop (see `proxy`).

use std::cell::OnceCell;
use std::future::Future;
use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use panics::SharedMutex;

/// Minimum of the workers' upper bound; on larger machines it is two for each processor.
const MIN_WORKERS: usize = 16;

/// Tasks that a worker runs before it polls its sockets again. With tokio's default of 61 a busy
/// client delays others on its worker by milliseconds.
const EVENT_INTERVAL: u32 = 4;

thread_local! {
    /// The worker of this thread.
    static CURRENT: OnceCell<Worker> = const { OnceCell::new() };
}

/// The workers of a server; by default there are none, and all tasks run on the current runtime.
#[derive(Clone, Debug, Default)]
pub struct Workers(Option<Arc<Pool>>);

#[derive(Debug)]
struct Pool {
    workers: SharedMutex<Vec<Worker>>,
    max: usize,
    end: CancellationToken,
    _ends: DropGuard,
}

/// Where a client's tasks run. It counts as in use while clones of it exist.
#[derive(Clone, Debug)]
pub struct Worker {
    runtime: Handle,
    in_use: Arc<()>,
}

impl Workers {
    /// Workers for this machine. Each is started when first needed.
    #[must_use]
    pub fn new() -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let end = CancellationToken::new();
        Self(Some(Arc::new(Pool {
            workers: SharedMutex::default(),
            max: MIN_WORKERS.max(2 * processors),
            _ends: end.clone().drop_guard(),
            end,
        })))
    }

    /// The runtimes of the started workers.
    #[must_use]
    pub fn runtimes(&self) -> Vec<Handle> {
        let Some(pool) = &self.0 else {
            return Vec::new();
        };
        let workers = pool.workers.lock();
        workers
            .iter()
            .map(|worker| worker.runtime.clone())
            .collect()
    }

    /// The least loaded worker, for a new client.
    pub fn pick(&self) -> Worker {
        let Some(pool) = &self.0 else {
            return Worker::current();
        };
        let mut workers = pool.workers.lock();
        let least_loaded = workers.iter().min_by_key(|worker| worker.load()).cloned();
        match least_loaded {
            // The clone at hand counts as one.
            Some(worker) if worker.load() <= 1 || workers.len() >= pool.max => worker,
            least_loaded => match Worker::start(workers.len(), pool.end.clone()) {
                Ok(worker) => {
                    workers.push(worker.clone());
                    worker
                }
                Err(error) => {
                    tracing::debug!(%error, "no thread for another worker");
                    least_loaded.unwrap_or_else(Worker::current)
                }
            },
        }
    }
}

impl Worker {
    /// The worker of this thread; outside of workers, the current runtime.
    pub fn current() -> Self {
        let worker = CURRENT.with(|current| current.get().cloned());
        worker.unwrap_or_else(|| Self {
            runtime: Handle::current(),
            in_use: Arc::default(),
        })
    }

    /// Runs a task on it.
    pub fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let in_use = Arc::clone(&self.in_use);
        self.runtime.spawn(async move {
            let done = task.await;
            drop(in_use);
            done
        })
    }

    /// Starts the thread.
    fn start(number: usize, end: CancellationToken) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .event_interval(EVENT_INTERVAL)
            .build()?;
        let worker = Self {
            runtime: runtime.handle().clone(),
            in_use: Arc::default(),
        };
        let current = worker.clone();
        thread::Builder::new()
            .name(format!("worker-{number}"))
            .spawn(move || {
                CURRENT.with(|cell| {
                    // A new thread has none yet.
                    let _ = cell.set(current);
                });
                runtime.block_on(end.cancelled());
            })?;
        Ok(worker)
    }

    /// The number of users, besides the list of workers and its own thread.
    fn load(&self) -> usize {
        Arc::strong_count(&self.in_use).saturating_sub(2)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn clients_have_their_own_threads_up_to_the_maximum() {
        let workers = Workers::new();
        let max = workers.0.as_ref().map_or(0, |pool| pool.max);
        let mut busy = Vec::new();
        let mut threads = Vec::new();
        for _ in 0..max {
            let (leave, left) = oneshot::channel::<()>();
            let (tx, rx) = oneshot::channel();
            let worker = workers.pick();
            busy.push((
                leave,
                worker.spawn(async move {
                    let current = Worker::current();
                    // On a worker's thread, `current` returns that worker.
                    let nested = current.spawn(async { thread::current().id() }).await;
                    drop(current);
                    let sent =
                        tx.send((thread::current().id(), nested.expect("it does not panic")));
                    sent.expect("the test waits for it");
                    // The task runs until the other end is dropped.
                    let _ = left.await;
                }),
            ));
            let (own, nested) = rx.await.expect("it was sent");
            assert_eq!(own, nested);
            assert!(!threads.contains(&own), "another thread is there");
            threads.push(own);
        }
        let first = workers.pick();
        assert!(
            first
                .spawn(async { thread::current().id() })
                .await
                .is_ok_and(|id| threads.contains(&id))
        );
        drop(first);
        // The worker that becomes free is the next.
        let (leave, done) = busy.swap_remove(5);
        drop(leave);
        done.await.expect("it does not panic");
        let next = workers.pick().spawn(async { thread::current().id() }).await;
        assert_eq!(next.expect("it does not panic"), threads[5]);
    }
}
