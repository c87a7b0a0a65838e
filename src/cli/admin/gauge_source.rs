//! The metrics of the program itself, read at each scrape: its runtimes, and its log.

use tokio::runtime::{Handle, RuntimeMetrics};

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
        let clients = clients.iter().map(|runtime| pulse(&runtime.metrics()));
        let mut all = RuntimeStats {
            name: "clients",
            ..RuntimeStats::default()
        };
        for one in clients {
            all.workers += one.workers;
            all.tasks += one.tasks;
            all.queued += one.queued;
            all.busy += one.busy;
        }
        let main = RuntimeStats {
            name: "main",
            ..pulse(&self.main.metrics())
        };
        vec![main, all]
    }

    fn lost_lines(&self) -> [u64; 2] {
        stderr::dropped_lines()
    }
}

fn pulse(runtime: &RuntimeMetrics) -> RuntimeStats {
    let workers = runtime.num_workers();
    RuntimeStats {
        name: "",
        workers,
        tasks: runtime.num_alive_tasks(),
        queued: runtime.global_queue_depth(),
        busy: (0..workers)
            .map(|worker| runtime.worker_total_busy_duration(worker))
            .sum(),
    }
}
