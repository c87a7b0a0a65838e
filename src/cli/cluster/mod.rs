//! Agents on many machines: the options of `serve` and `gateway`, and `acp-relay cluster`.

mod command;
mod options;

pub(super) use command::{Cluster, GATEWAY_EXAMPLES, run};
pub(super) use options::ClusterArgs;
