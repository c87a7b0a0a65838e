//! Threads for those who arrive: what one client causes is worked off apart from the others.
//!
//! Each worker is a thread with a runtime of its own, sockets and timers included, and a client's
//! sockets, conversation and agent stay on the worker they were given. Not here: who arrives, and
//! what is done with them.
//!
//! # Why
//!
//! **The system's scheduler keeps them apart.** It lets a thread that has slept run before one that
//! has worked. On threads that share all tasks, whichever wakes for a bystander's message has
//! mostly just carried a flood, owes the processor time, and waits behind the flood's own processes
//! for milliseconds. No budget inside the runtime helps against that; a thread for each does. It
//! also spares a message the way from one thread to another.
//!
//! **A bounded number, and the freest first.** A thread costs some 40 KiB. As long as there are
//! no more clients than workers, each has one alone; after that a flood is felt by those who share
//! its worker, for as long as a turn (see `relay`).

use std::cell::OnceCell;
use std::future::Future;
use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Workers there may be on a small machine. A larger one has two for each processor.
const LEAST: usize = 16;

/// Tasks that a worker runs before it looks at its sockets again. With tokio's 61 one client that
/// never stops talking keeps those it shares a worker with unheard for milliseconds.
const GLANCE: u32 = 4;

thread_local! {
    /// The worker that this thread is.
    static HERE: OnceCell<Worker> = const { OnceCell::new() };
}

/// The workers of a program that serves many; by default there are none, and all run where they are.
#[derive(Clone, Debug, Default)]
pub struct Workers(Option<Arc<Pool>>);

#[derive(Debug)]
struct Pool {
    workers: Mutex<Vec<Worker>>,
    most: usize,
    end: CancellationToken,
    _ends: DropGuard,
}

/// Where a client's work is done. It counts as taken while clones of it are kept.
#[derive(Clone, Debug)]
pub struct Worker {
    runtime: Handle,
    taken: Arc<()>,
}

impl Workers {
    /// Workers for this machine. Each begins when it is first needed.
    #[must_use]
    pub fn new() -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let end = CancellationToken::new();
        Self(Some(Arc::new(Pool {
            workers: Mutex::default(),
            most: LEAST.max(2 * processors),
            _ends: end.clone().drop_guard(),
            end,
        })))
    }

    /// The runtimes of those that have begun.
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

    /// The worker with least to do, for one who has just arrived.
    pub(super) fn pick(&self) -> Worker {
        let Some(pool) = &self.0 else {
            return Worker::here();
        };
        let mut workers = pool.workers.lock();
        let freest = workers.iter().min_by_key(|worker| worker.load()).cloned();
        match freest {
            // The clone at hand is one.
            Some(worker) if worker.load() <= 1 || workers.len() >= pool.most => worker,
            freest => match Worker::begin(workers.len(), pool.end.clone()) {
                Ok(worker) => {
                    workers.push(worker.clone());
                    worker
                }
                Err(error) => {
                    tracing::debug!(%error, "no thread for another worker");
                    freest.unwrap_or_else(Worker::here)
                }
            },
        }
    }
}

impl Worker {
    /// The worker that this is called on; the runtime at hand when it is none.
    pub(super) fn here() -> Self {
        let own = HERE.with(|here| here.get().cloned());
        own.unwrap_or_else(|| Self {
            runtime: Handle::current(),
            taken: Arc::default(),
        })
    }

    /// Runs a task there.
    pub fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let taken = Arc::clone(&self.taken);
        self.runtime.spawn(async move {
            let done = task.await;
            drop(taken);
            done
        })
    }

    /// Starts the thread.
    fn begin(number: usize, end: CancellationToken) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .event_interval(GLANCE)
            .build()?;
        let worker = Self {
            runtime: runtime.handle().clone(),
            taken: Arc::default(),
        };
        let own = worker.clone();
        thread::Builder::new()
            .name(format!("worker-{number}"))
            .spawn(move || {
                HERE.with(|here| {
                    // A new thread has none yet.
                    let _ = here.set(own);
                });
                runtime.block_on(end.cancelled());
            })?;
        Ok(worker)
    }

    /// How many keep it, besides the list of workers and its own thread.
    fn load(&self) -> usize {
        Arc::strong_count(&self.taken).saturating_sub(2)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn everybody_has_a_thread_alone_as_long_as_there_are_threads() {
        let workers = Workers::new();
        let most = workers.0.as_ref().map_or(0, |pool| pool.most);
        let mut busy = Vec::new();
        let mut threads = Vec::new();
        for _ in 0..most {
            let (leave, left) = oneshot::channel::<()>();
            let (tell, told) = oneshot::channel();
            let worker = workers.pick();
            busy.push((
                leave,
                worker.spawn(async move {
                    let here = Worker::here();
                    // Whoever is asked on a worker's thread names that worker.
                    let nested = here.spawn(async { thread::current().id() }).await;
                    drop(here);
                    let told =
                        tell.send((thread::current().id(), nested.expect("it does not panic")));
                    told.expect("the test waits for it");
                    // It goes on until the other end is dropped.
                    let _ = left.await;
                }),
            ));
            let (own, nested) = told.await.expect("it was told");
            assert_eq!(own, nested);
            assert!(!threads.contains(&own), "somebody else is there");
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
        // The one that becomes free is the next.
        let (leave, done) = busy.swap_remove(5);
        drop(leave);
        done.await.expect("it does not panic");
        let next = workers.pick().spawn(async { thread::current().id() }).await;
        assert_eq!(next.expect("it does not panic"), threads[5]);
    }
}
