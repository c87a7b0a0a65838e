//! AGNTCY's Agent Connect Protocol, mapped to ACP: a server that is an ACP client of its agents,
//! and a client of such servers that is an ACP agent.
//!
//! Agent Connect is REST: agents, threads, and runs that are polled, waited for or streamed. A
//! thread is an ACP session, a run is a turn. [`api`] holds the types of the protocol and their
//! meaning in ACP; `server` answers requests, `store` is its database, `webhook` calls the clients'
//! URLs; `shares` divides what is limited among principals; `remote` is the client, and `local_link` the link by which both are reached. `transport`
//! opens both by their endpoints, with the `settings`.

pub mod api;
mod local_link;
mod remote;
mod server;
mod settings;
mod shares;
mod store;
mod transport;
mod webhook;

pub use settings::{AgentConnectConfig, ServedAgent};
pub use transport::TRANSPORT;
