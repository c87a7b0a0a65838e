//! The metrics of the program itself, read at each scrape: its runtimes, and its log.

use tokio::runtime::Handle;

use crate::cli::stderr;
use crate::observe::metrics::{GaugeSource, RuntimeStats};
use crate::transport::Workers;

/// This program.
#[derive(Debug)]
pub(super) struct ProcessGauges {
    /// The runtime of everything except the clients.
    main: Handle,
    workers: Workers,
}

impl ProcessGauges {
    /// For the current runtime, and these workers.
    pub(super) fn new(workers: Workers) -> Self {
        Self {
            main: Handle::current(),
            workers,
        }
    }
}

impl GaugeSource for ProcessGauges {
    fn runtimes(&self) -> Vec<RuntimeStats> {
        let clients = self.workers.runtimes();
        vec![
            stats("main", std::slice::from_ref(&self.main)),
            stats("clients", &clients),
        ]
    }

    fn lost_lines(&self) -> [u64; 2] {
        stderr::dropped_lines()
    }
}

/// The sum of several runtimes.
fn stats(name: &'static str, runtimes: &[Handle]) -> RuntimeStats {
    let mut all = RuntimeStats {
        name,
        ..RuntimeStats::default()
    };
    for metrics in runtimes.iter().map(Handle::metrics) {
        all.workers += metrics.num_workers();
        all.tasks += metrics.num_alive_tasks();
        all.queued += metrics.global_queue_depth();
        let busy = (0..metrics.num_workers()).map(|one| metrics.worker_total_busy_duration(one));
        all.busy += busy.sum::<std::time::Duration>();
    }
    all
}
