//! What the relay tells of itself, as Prometheus reads it: its state, its recorder, what waits in
//! it, its runtimes and its process.
//!
//! Not here: conversations (see `scrape`).

use std::time::Instant;

use super::around::{LOST, Moored, Pulse};
use super::figures::Figures;
use super::ledger::Ledger;
use super::process::Process;
use super::scrape::Written;
use super::series::Sheet;
use super::words::{Come, DIRECTIONS, LINKS, Recorded, Reloaded, SPANS, Unwanted};
use crate::jsonrpc::Side;
use crate::observe::recorder::PruneReason;

impl Ledger {
    pub(super) fn relay(&self, sheet: &mut Sheet<'_>, now: Instant) -> Written {
        sheet.family("build_info", |family| family.count(&[self.version], 1))?;
        sheet.one("start_time_seconds", Some(self.began_unix))?;
        let since = self.draining.get();
        let draining = u64::from(since.is_some());
        sheet.family("draining", |family| family.count(&[], draining))?;
        let lasts = since.map(|since| now.saturating_duration_since(*since));
        sheet.one(
            "drain_duration_seconds",
            Some(lasts.unwrap_or_default().as_secs_f64()),
        )?;
        sheet.family("config_reload_total", |family| {
            Reloaded::ALL.iter().try_for_each(|how| {
                family.count(&[how.name()], self.reloads.at([*how as usize]).get())
            })
        })?;
        sheet.family("config_last_reload_success_timestamp_seconds", |family| {
            family.count(&[], self.reloaded.get())
        })?;
        let spans = self.spans.get().map_or([0; 3], |spans| spans.read());
        sheet.family("trace_spans_total", |family| {
            SPANS
                .into_iter()
                .zip(spans)
                .try_for_each(|(word, count)| family.count(&[word], count))
        })?;
        sheet.family("admin_refused_total", |family| {
            Unwanted::ALL.iter().try_for_each(|why| {
                family.count(&[why.name()], self.unwanted.at([*why as usize]).get())
            })
        })
    }

    pub(super) fn recordings(&self, sheet: &mut Sheet<'_>) -> Written {
        sheet.family("recordings_total", |family| {
            Recorded::ALL.iter().try_for_each(|how| {
                family.count(&[how.name()], self.recordings.at([*how as usize]).get())
            })
        })?;
        let tape = &self.tape;
        sheet.family("recording_bytes_total", |family| {
            family.count(&[], tape.bytes())
        })?;
        sheet.family("recording_events_total", |family| {
            family.count(&[], tape.events())
        })?;
        sheet.family("recording_dropped_total", |family| {
            family.count(&[], tape.dropped())
        })?;
        sheet.family("recording_write_seconds", |family| {
            family.histogram(&[], &tape.writes())
        })?;
        sheet.family("recordings_pruned_total", |family| {
            PruneReason::ALL
                .into_iter()
                .try_for_each(|why| family.count(&[why.name()], why.count()))
        })?;
        sheet.family("redactions_total", |family| {
            let mut all = tape.redactions();
            all.try_for_each(|(rule, count)| family.count(&[rule], count))
        })
    }

    /// What the program knows of itself.
    pub(super) fn program(&self, sheet: &mut Sheet<'_>) -> Written {
        let program = self.surroundings.get();
        let runtimes = program.map_or_else(Vec::new, |program| program.runtimes());
        type Counted = fn(&Pulse) -> usize;
        let counts: [(&str, Counted); 3] = [
            ("tokio_workers", |pulse| pulse.workers),
            ("tokio_alive_tasks", |pulse| pulse.tasks),
            ("tokio_global_queue_depth", |pulse| pulse.queued),
        ];
        for (name, count) in counts {
            sheet.family(name, |family| {
                runtimes
                    .iter()
                    .try_for_each(|pulse| family.count(&[pulse.name], count(pulse) as u64))
            })?;
        }
        sheet.family("tokio_busy_seconds_total", |family| {
            runtimes
                .iter()
                .try_for_each(|pulse| family.number(&[pulse.name], pulse.busy.as_secs_f64()))
        })?;
        let lost = program.map_or([0; 2], |program| program.lost_lines());
        sheet.family("log_lines_lost_total", |family| {
            LOST.into_iter()
                .zip(lost)
                .try_for_each(|(why, count)| family.count(&[why], count))
        })
    }

    /// Links to clients, of which so many are part of a conversation.
    pub(super) fn links(&self, sheet: &mut Sheet<'_>, live: usize, moored: &Moored) -> Written {
        let away = moored.away.min(live);
        let counts = match self.draining.get() {
            None => [live - away, away, 0],
            Some(_) => [0, 0, live],
        };
        sheet.family("links", |family| {
            LINKS
                .into_iter()
                .zip(counts)
                .try_for_each(|(state, count)| family.count(&[state], count as u64))
        })?;
        sheet.family("link_attach_total", |family| {
            Come::ALL.iter().try_for_each(|how| {
                family.count(&[how.name()], self.come.at([*how as usize]).get())
            })
        })
    }

    /// What waits in the relay, and for how much there is room.
    pub(super) fn buffers(
        &self,
        sheet: &mut Sheet<'_>,
        live: &[&Figures],
        moored: &Moored,
    ) -> Written {
        let (tape, tape_room) = self.tape.waiting();
        let room: usize = live.iter().map(|one| one.room).sum();
        let outbox = |to: Side| live.iter().map(|one| one.waiting[to as usize].get()).sum();
        let [to_agent, to_client] = DIRECTIONS;
        let all: [(&str, &str, u64, usize); 4] = [
            (to_agent, "outbox", outbox(Side::Agent), room),
            (to_client, "outbox", outbox(Side::Client), room),
            (to_client, "return", moored.kept as u64, moored.room),
            ("to_file", "recorder", tape as u64, tape_room),
        ];
        sheet.family("buffer_bytes", |family| {
            all.into_iter()
                .try_for_each(|(dir, place, bytes, _)| family.count(&[dir, place], bytes))
        })?;
        sheet.family("buffer_limit_bytes", |family| {
            all.into_iter()
                .try_for_each(|(dir, place, _, room)| family.count(&[dir, place], room as u64))
        })
    }

    pub(super) fn process(sheet: &mut Sheet<'_>) -> Written {
        let process = Process::read();
        #[expect(clippy::cast_precision_loss, reason = "no process has that much")]
        let number = |value: Option<u64>| value.map(|value| value as f64);
        sheet.one("process_resident_memory_bytes", number(process.resident))?;
        sheet.one("process_cpu_seconds_total", process.cpu)?;
        sheet.one("process_open_fds", number(process.open_files))?;
        sheet.one("process_max_fds", number(process.max_files))?;
        sheet.one("process_threads", number(process.threads))
    }
}
