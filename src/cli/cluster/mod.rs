//! Agents on many machines: the options of `serve` and `gateway`, and `acp-relay cluster`.

mod command;
mod options;

pub(super) use command::{Cluster, run};
pub(super) use options::ClusterArgs;
