//! The ledger, as Prometheus reads it.
//!
//! Not here: who asks (see `cli::admin`), the figures of each agent (see `per_agent`), and what the
//! relay tells of itself (see `own`).

use std::fmt::Error;
use std::sync::Arc;
use std::time::Instant;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::registry::Registry;

use super::cells::{Count, Reading, Table};
use super::figures::{Figures, SIZES};
use super::ledger::{Ledger, duration_at};
use super::series::Sheet;
use super::words::{
    BOUNDS, CODES, Closing, DIRECTIONS, Decision, FAULTS, FLOWS, Judged, KINDS, OUTCOMES, Proof,
    Rejection, SIDES, TRANSLATED, Transport, code_name,
};
use crate::conversation::{DialectEvent, Method, Note, PermissionOutcome};

pub(super) type Written = Result<(), Error>;

/// The place of requests among the kinds.
const REQUEST: usize = 0;

/// One scrape.
#[derive(Debug)]
struct Page {
    ledger: Arc<Ledger>,
    now: Instant,
}

impl Ledger {
    /// All metrics, in OpenMetrics' text form.
    #[must_use]
    pub fn scrape(self: &Arc<Self>, now: Instant) -> String {
        let mut page = String::with_capacity(32 << 10);
        let mut registry = Registry::with_prefix("acp_relay");
        registry.register_collector(Box::new(Page {
            ledger: Arc::clone(self),
            now,
        }));
        text::encode(&mut page, &registry).expect("a string takes all that is written to it");
        page
    }

    fn connections(&self, sheet: &mut Sheet<'_>, live: &[&Figures]) -> Written {
        let ends = || {
            let transports = Transport::ALL.iter();
            transports.flat_map(|transport| [0, 1].map(|side| (side, *transport)))
        };
        sheet.family("connections_open", |family| {
            ends().try_for_each(|(side, transport)| {
                if self.connections.at([side, transport as usize]).get() == 0 {
                    return Ok(());
                }
                let those = live.iter().filter(|one| one.transports[side] == transport);
                family.count(&[SIDES[side], transport.name()], those.count() as u64)
            })
        })?;
        sheet.family("connections_total", |family| {
            ends().try_for_each(|(side, transport)| {
                let count = self.connections.at([side, transport as usize]).get();
                family.count(&[SIDES[side], transport.name()], count)
            })
        })?;
        sheet.family("connections_closed_total", |family| {
            ends().try_for_each(|(side, transport)| {
                Closing::ALL.iter().try_for_each(|how| {
                    let place = [side, transport as usize, *how as usize];
                    let labels = [SIDES[side], transport.name(), how.name()];
                    family.count(&labels, self.closed.at(place).get())
                })
            })
        })?;
        sheet.family("connection_duration_seconds", |family| {
            Transport::ALL
                .iter()
                .zip(&self.lasted)
                .try_for_each(|(transport, lasted)| {
                    family.histogram(&[transport.name()], &lasted.read())
                })
        })?;
        sheet.family("connections_rejected_total", |family| {
            Transport::ALL.iter().try_for_each(|transport| {
                Rejection::ALL.iter().try_for_each(|why| {
                    let count = self.rejected.at([*transport as usize, *why as usize]).get();
                    family.count(&[transport.name(), why.name()], count)
                })
            })
        })?;
        sheet.family("accept_errors_total", |family| {
            Transport::ALL.iter().try_for_each(|transport| {
                let count = self.unaccepted.at([*transport as usize]).get();
                family.count(&[transport.name()], count)
            })
        })?;
        sheet.family("auth_attempts_total", |family| {
            table(
                &self.attempts,
                &names(Proof::ALL, Proof::name),
                &names(Judged::ALL, Judged::name),
                |labels, count| family.count(labels, count),
            )
        })?;
        sheet.family("policy_decisions_total", |family| {
            table(
                &self.decisions,
                &names(Method::ALL, Method::name),
                &names(Decision::ALL, Decision::name),
                |labels, count| family.count(labels, count),
            )
        })?;
        sheet.family("bytes_total", |family| {
            ends().try_for_each(|(side, transport)| {
                each_index(FLOWS, |flow, name| {
                    let past = self.past.bytes.at([side, transport as usize, flow]).get();
                    let those = live.iter().filter(|one| one.transports[side] == transport);
                    let now: u64 = those.map(|one| one.bytes[side][flow].get()).sum();
                    family.count(&[SIDES[side], transport.name(), name], past + now)
                })
            })
        })
    }

    fn messages(&self, sheet: &mut Sheet<'_>, live: &[&Figures]) -> Written {
        let past = &self.past.passed;
        sheet.family("messages_total", |family| {
            each_index(DIRECTIONS, |from, dir| {
                each_index(KINDS, |kind, kind_name| {
                    Method::ALL.iter().try_for_each(|method| {
                        let place = [from, kind, *method as usize];
                        let now = live.iter().map(|one| one.passed.messages.at(place).get());
                        let count = past.messages.at(place).get() + now.sum::<u64>();
                        family.count(&[dir, kind_name, method.name()], count)
                    })
                })
            })
        })?;
        sheet.family("message_bytes", |family| {
            each_index(DIRECTIONS, |from, dir| {
                each_index(KINDS, |kind, name| {
                    let count = |bucket| {
                        let place = [from, kind, bucket];
                        let now = live.iter().map(|one| one.passed.sizes.at(place).get());
                        past.sizes.at(place).get() + now.sum::<u64>()
                    };
                    let now = live
                        .iter()
                        .map(|one| one.passed.bytes.at([from, kind]).get());
                    let sum = past.bytes.at([from, kind]).get() + now.sum::<u64>();
                    #[expect(
                        clippy::cast_precision_loss,
                        reason = "bounds are powers of two; a sum past 2^53 is petabytes"
                    )]
                    let reading = Reading {
                        sum: sum as f64,
                        buckets: (0..=SIZES.len())
                            .map(|at| {
                                let bound =
                                    SIZES.get(at).map_or(f64::INFINITY, |size| *size as f64);
                                (bound, count(at))
                            })
                            .collect(),
                    };
                    family.histogram(&[dir, name], &reading)
                })
            })
        })
    }

    fn requests(&self, sheet: &mut Sheet<'_>, live: &[&Figures]) -> Written {
        sheet.family("requests_total", |family| {
            each_index(DIRECTIONS, |from, dir| {
                Method::ALL.iter().try_for_each(|method| {
                    each_index(OUTCOMES, |outcome, name| {
                        (0..=CODES.len()).try_for_each(|code| {
                            let place = [from, *method as usize, outcome, code];
                            let count = self.requests.at(place).get();
                            family.count(&[dir, method.name(), name, &code_name(code)], count)
                        })
                    })
                })
            })
        })?;
        sheet.family("request_duration_seconds", |family| {
            each_index(DIRECTIONS, |from, dir| {
                Method::ALL.iter().try_for_each(|method| {
                    each_index(OUTCOMES, |outcome, name| {
                        let took = &self.durations[duration_at(from, *method as usize, outcome)];
                        family.histogram(&[dir, method.name(), name], &took.read())
                    })
                })
            })
        })?;
        sheet.family("processing_duration_seconds", |family| {
            each_index(DIRECTIONS, |from, dir| {
                each_index(TRANSLATED, |translated, word| {
                    let past = self.past.passed.pace.of(from, translated);
                    let now = live.iter().map(|one| one.passed.pace.of(from, translated));
                    let all = now.fold(past, Reading::plus);
                    family.histogram(&[dir, word], &all)
                })
            })
        })?;
        sheet.family("requests_in_flight", |family| {
            each_index(DIRECTIONS, |from, dir| {
                Method::ALL.iter().try_for_each(|method| {
                    let place = [from, *method as usize];
                    let open = live.iter().map(|one| one.in_flight.at(place).get()).sum();
                    let asked = [from, REQUEST, *method as usize];
                    let asked = self.past.passed.messages.at(asked).get() > 0
                        || live
                            .iter()
                            .any(|one| one.passed.messages.at(asked).get() > 0);
                    match asked {
                        true => family.count(&[dir, method.name()], open),
                        false => Ok(()),
                    }
                })
            })
        })?;
        sheet.family("permission_wait_seconds", |family| {
            PermissionOutcome::ALL
                .iter()
                .zip(&self.permissions)
                .try_for_each(|(verdict, waited)| {
                    family.histogram(&[verdict.name()], &waited.read())
                })
        })
    }

    fn faults(&self, sheet: &mut Sheet<'_>) -> Written {
        sheet.family("parse_errors_total", |family| {
            table(&self.faults, &SIDES, &FAULTS, |labels, count| {
                family.count(labels, count)
            })
        })?;
        sheet.family("limit_hits_total", |family| {
            table(&self.bounds, &SIDES, &BOUNDS, |labels, count| {
                family.count(labels, count)
            })
        })?;
        sheet.family("synthesised_errors_total", |family| {
            each_index(SIDES, |side, name| {
                (0..=CODES.len()).try_for_each(|code| {
                    let count = self.synthesised.at([side, code]).get();
                    family.count(&[name, &code_name(code)], count)
                })
            })
        })?;
        sheet.family("orphan_responses_total", |family| {
            each(&self.orphans, DIRECTIONS, |dir, count| {
                family.count(&[dir], count)
            })
        })?;
        sheet.family("undeliverable_messages_total", |family| {
            each(&self.undeliverable, DIRECTIONS, |dir, count| {
                family.count(&[dir], count)
            })
        })?;
        sheet.family("notes_total", |family| {
            each_index(Note::NAMES, |at, name| {
                family.count(&[name], self.notes.at([at]).get())
            })
        })?;
        sheet.family("producer_paused_seconds_total", |family| {
            each(&self.paused, SIDES, |side, nanos| match nanos {
                0 => Ok(()),
                nanos => family.number(
                    &[side],
                    std::time::Duration::from_nanos(nanos).as_secs_f64(),
                ),
            })
        })?;
        sheet.family("pauses_total", |family| {
            each(&self.pauses, SIDES, |side, count| {
                family.count(&[side], count)
            })
        })
    }

    fn translations(&self, sheet: &mut Sheet<'_>) -> Written {
        let (events, rules): (Vec<_>, Vec<_>) = self
            .rules
            .read()
            .into_iter()
            .partition(|((_, what, _), _)| DialectEvent::ALL.iter().any(|one| one.name() == what));
        for (name, those) in [
            ("translations_total", rules),
            ("dialect_events_total", events),
        ] {
            sheet.family(name, |family| {
                those.iter().try_for_each(|((dialect, what, side), count)| {
                    family.count(&[dialect, what, side], *count)
                })
            })?;
        }
        Ok(())
    }
}

impl Collector for Page {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Written {
        let sheet = &mut Sheet(encoder);
        let ledger = &self.ledger;
        // Before conversations are held: these ask others.
        let moored = ledger.moored();
        ledger.relay(sheet, self.now)?;
        ledger.recordings(sheet)?;
        ledger.program(sheet)?;
        let live = ledger.live();
        let live: Vec<&Figures> = live.values().map(|figures| &**figures).collect();
        ledger.connections(sheet, &live)?;
        ledger.links(sheet, live.len(), &moored)?;
        ledger.buffers(sheet, &live, &moored)?;
        ledger.messages(sheet, &live)?;
        ledger.requests(sheet, &live)?;
        ledger.per_agent(sheet, &live)?;
        ledger.faults(sheet)?;
        ledger.translations(sheet)?;
        Ledger::process(sheet)
    }
}

fn each<const N: usize>(
    counts: &[Count; N],
    names: [&'static str; N],
    mut write: impl FnMut(&'static str, u64) -> Written,
) -> Written {
    names
        .into_iter()
        .zip(counts)
        .try_for_each(|(name, count)| write(name, count.get()))
}

fn each_index<const N: usize>(
    names: [&'static str; N],
    mut write: impl FnMut(usize, &'static str) -> Written,
) -> Written {
    names
        .into_iter()
        .enumerate()
        .try_for_each(|(at, name)| write(at, name))
}

fn table(
    counts: &Table<Count, 2>,
    rows: &[&str],
    columns: &[&str],
    mut write: impl FnMut(&[&str], u64) -> Written,
) -> Written {
    for (row, row_name) in rows.iter().enumerate() {
        for (column, name) in columns.iter().enumerate() {
            write(&[row_name, name], counts.at([row, column]).get())?;
        }
    }
    Ok(())
}

fn names<W: Copy>(words: &[W], name: fn(W) -> &'static str) -> Vec<&'static str> {
    words.iter().map(|word| name(*word)).collect()
}
