//! The figures of each agent, as Prometheus reads them.
//!
//! Not here: those of connections and messages (see `scrape`).

use std::sync::Arc;

use super::agent::{AgentFigures, EXITS, HOW, STARTS};
use super::cells::{Count, Reading};
use super::figures::Figures;
use super::ledger::Ledger;
use super::scrape::Written;
use super::series::Sheet;
use crate::conversation::{StopReason, TokenKind, ToolKind};

impl Ledger {
    pub(super) fn per_agent(&self, sheet: &mut Sheet<'_>, live: &[&Figures]) -> Written {
        let agents = self.agents();
        let of = |agent: &Arc<AgentFigures>, what: fn(&Figures) -> u64| -> u64 {
            let those = live.iter().filter(|one| Arc::ptr_eq(&one.agent, agent));
            those.map(|one| what(one)).sum()
        };
        sheet.family("agents", |family| {
            agents
                .iter()
                .try_for_each(|agent| family.count(&[&agent.name], agent.running.get()))
        })?;
        sheet.family("turns", |family| {
            agents.iter().try_for_each(|agent| {
                family.count(&[&agent.name], of(agent, |one| one.turns.get()))
            })
        })?;
        sheet.family("sessions_open", |family| {
            agents.iter().try_for_each(|agent| {
                family.count(&[&agent.name], of(agent, |one| one.sessions.get()))
            })
        })?;
        type Counts = fn(&AgentFigures) -> Vec<(&'static str, u64)>;
        let named: [(&str, Counts); 5] = [
            ("sessions_total", |agent| pairs(&HOW, &agent.sessions)),
            ("tool_calls_total", |agent| {
                let kinds: Vec<_> = ToolKind::ALL.iter().map(|kind| kind.name()).collect();
                pairs(&kinds, agent.tool_calls.cells())
            }),
            ("tool_call_results_total", |agent| {
                pairs(&["completed", "failed"], &agent.tool_results)
            }),
            ("agent_spawns_total", |agent| pairs(&STARTS, &agent.starts)),
            ("agent_exits_total", |agent| pairs(&EXITS, &agent.exits)),
        ];
        for (name, counts) in named {
            sheet.family(name, |family| {
                agents.iter().try_for_each(|agent| {
                    counts(agent)
                        .into_iter()
                        .try_for_each(|(word, count)| family.count(&[&agent.name, word], count))
                })
            })?;
        }
        sheet.family("agent_stderr_bytes_total", |family| {
            agents
                .iter()
                .try_for_each(|agent| family.count(&[&agent.name], agent.stderr.get()))
        })?;
        sheet.family("agent_stdout_noise_lines_total", |family| {
            agents
                .iter()
                .try_for_each(|agent| family.count(&[&agent.name], agent.noise.get()))
        })?;
        sheet.family("agent_start_seconds", |family| {
            agents
                .iter()
                .try_for_each(|agent| family.histogram(&[&agent.name], &agent.start.read()))
        })?;
        sheet.family("time_to_first_update_seconds", |family| {
            agents
                .iter()
                .try_for_each(|agent| family.histogram(&[&agent.name], &agent.first_update.read()))
        })?;
        sheet.family("update_gap_seconds", |family| {
            agents.iter().try_for_each(|agent| {
                let own = live.iter().filter(|one| Arc::ptr_eq(&one.agent, agent));
                let now = own.map(|one| one.gaps.read());
                let all = now.fold(agent.gaps.read(), Reading::plus);
                family.histogram(&[&agent.name], &all)
            })
        })?;
        sheet.family("tokens_total", |family| {
            agents.iter().try_for_each(|agent| {
                let kinds = TokenKind::ALL.into_iter().zip(&agent.tokens);
                let mut kinds = kinds.map(|(kind, count)| (kind.name(), count.get()));
                kinds.try_for_each(|(kind, count)| family.count(&[&agent.name, kind], count))
            })
        })?;
        sheet.family("context_used_ratio", |family| {
            agents.iter().try_for_each(|agent| {
                let own = live.iter().filter(|one| Arc::ptr_eq(&one.agent, agent));
                let fullest = own.filter_map(|one| one.context_used()).reduce(f64::max);
                fullest.map_or(Ok(()), |ratio| family.number(&[&agent.name], ratio))
            })
        })?;
        sheet.family("turn_duration_seconds", |family| {
            agents.iter().try_for_each(|agent| {
                StopReason::ALL
                    .iter()
                    .zip(&agent.turns)
                    .try_for_each(|(reason, turns)| {
                        family.histogram(&[&agent.name, reason.name()], &turns.read())
                    })
            })
        })
    }
}

fn pairs(names: &[&'static str], counts: &[Count]) -> Vec<(&'static str, u64)> {
    names
        .iter()
        .copied()
        .zip(counts.iter().map(Count::get))
        .collect()
}
