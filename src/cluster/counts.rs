//! What this process counts of its work with other machines, for its metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Connections over NATS that are open.
pub(super) static CARRIERS: AtomicU64 = AtomicU64::new(0);
/// The hosts that a gateway knows: those that take conversations, and those that drain.
pub(super) static HOSTS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// The conversations that a host took, or refused, and those that no host took.
pub(super) static PLACEMENTS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
/// Renewals that NATS did not take.
pub(super) static FAILED: AtomicU64 = AtomicU64::new(0);
/// What a gateway does not use of what hosts say.
pub(super) static REFUSED: AtomicU64 = AtomicU64::new(0);

/// The values of the metrics `acp_relay_cluster_*`, each with its name and label.
pub fn counts() -> Vec<(&'static str, Option<&'static str>, u64)> {
    let all = [
        ("cluster_carriers", None, &CARRIERS),
        ("cluster_hosts", Some("ready"), &HOSTS[0]),
        ("cluster_hosts", Some("draining"), &HOSTS[1]),
        ("cluster_placements_total", Some("placed"), &PLACEMENTS[0]),
        ("cluster_placements_total", Some("refused"), &PLACEMENTS[1]),
        ("cluster_placements_total", Some("none"), &PLACEMENTS[2]),
        ("cluster_renewals_failed_total", None, &FAILED),
        ("cluster_refused_total", None, &REFUSED),
    ];
    all.map(|(name, label, count)| (name, label, count.load(Relaxed)))
        .into()
}
