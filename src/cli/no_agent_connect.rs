//! In place of `agent_connect` in a build without the feature `agent-connect`: there are no options,
//! and nothing is set up. `features` has the error about them.

use clap::Args;

use transport::{AddedTransport, Setup};

pub(super) type AgentConnectArgs = Absent;
pub(super) type AgentPermission = Absent;
pub(super) type ConnectPermission = Absent;
pub(super) type ServedPath = Absent;

pub(super) const TRANSPORT: Option<AddedTransport> = None;

/// In place of each type of `agent_connect`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Args)]
pub(super) struct Absent {}

impl Absent {
    pub(super) fn resolve(_: Option<&Self>, _: usize) -> Result<Self, String> {
        Ok(Self {})
    }

    pub(super) fn serve<T>(&self, _: T, _: &Self, _: &mut Setup) {}

    pub(super) fn apply(self, _: &mut Setup) {}
}
